// SPDX-License-Identifier: Apache-2.0
/* Where keepers come from. Most of a start is loading probes: one process, the nursery, does it once for all of an
 * agent's sandboxes, and each keeper is its child, by fork. Nothing of any tenant has been in it. Some children are made
 * ahead: they have joined the probes, and wait in <run>/parked for their sandbox. When none waits, the nursery
 * makes one for who asks. A keeper keeps one sandbox and ends with it, whatever becomes of nursery and agent;
 * children that nobody took end with either. */
#include "userspace/cli/agent_park.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/capture/capture.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/run_status.h"

#define DIR_FLAGS  (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define PARK_AGENT 3	 /* descriptor: to the agent */
#define PARK_FDS   3	 /* client, lock, hub */
#define ANSWER_MS  60000 /* the nursery may be loading yet */

static int open_dir(int *ret_fd)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/parked", run_dir()) >= sizeof(path))
		return -ENAMETOOLONG;
	*ret_fd = open(path, DIR_FLAGS);
	return *ret_fd < 0 ? -errno : 0;
}

/* By way of the descriptor: a path of the run directory may be longer than a socket's can be. */
void agent_park_address(struct sockaddr_un *ret, int dir, const char *name)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%.32s", dir, name);
}

/* ---- the agent's side ---- */

/* The number has the length of a session's id: its keeper writes that in its place, for ps(1). */
static int spawn(struct agent_park *p, uint64_t wanted)
{
	static char name[] = "warder", agent[] = "agent", park[] = "park";
	char number[ULID_LEN + 1];
	char *argv[] = { name, agent, park, number, NULL };
	sigset_t none;
	int pair[2], null;
	pid_t pid;

	snprintf(number, sizeof(number), "%0*u", ULID_LEN, (unsigned)MIN(wanted, AGENT_PARKED_MAX));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (int sig = 1; sig < NSIG; sig++)
			signal(sig, SIG_DFL);
		setsid();
		null = open("/dev/null", O_RDWR);
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || chdir("/") < 0 ||
		    (pair[1] != PARK_AGENT && dup2(pair[1], PARK_AGENT) < 0) ||
		    fcntl(PARK_AGENT, F_SETFD, 0) < 0 || close_range(PARK_AGENT + 1, ~0u, 0) < 0)
			_exit(EXIT_WARDER);
		execv("/proc/self/exe", argv);
		_exit(EXIT_WARDER);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return -EAGAIN;
	}
	p->fd = pair[0];
	p->pid = pid;
	return 0;
}

void agent_park_start(struct agent_park *p, uint64_t wanted)
{
	if (!p->pid)
		(void)spawn(p, wanted);
}

bool agent_park_hear(struct agent_park *p)
{
	char words[64];
	ssize_t n = recv(p->fd, words, sizeof(words), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		close(take_fd(p->fd)); /* its end is heard of as a child's */
	return n > 0;
}

bool agent_park_forget(struct agent_park *p, pid_t pid)
{
	if (pid != p->pid)
		return false;
	p->pid = 0;
	agent_park_drain(p);
	return true;
}

void agent_park_drain(struct agent_park *p)
{
	if (p->fd >= 0)
		close(take_fd(p->fd));
	p->pid = 0;
}

/* ---- the worker's side ---- */

/* One that was taken by somebody else, or is dead, does not answer. */
static bool give_to(int dir, const char *name, struct str text, const int fds[PARK_FDS])
{
	auto_close int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = sock, .events = POLLIN };
	struct sockaddr_un at;
	char word;

	agent_park_address(&at, dir, name);
	if (sock < 0 || connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0) {
		if (errno == ECONNREFUSED && strcmp(name, AGENT_NURSERY) != 0)
			unlinkat(dir, name, 0);
		return false;
	}
	return fd_send(sock, text.p, text.n, fds, PARK_FDS, 0) >= 0 &&
	       poll(&p, 1, ANSWER_MS) == 1 && recv(sock, &word, 1, 0) == 1;
}

bool agent_park_give(const struct agent_request *q, int client, int lock, int hub)
{
	const int fds[PARK_FDS] = { client, lock, hub };
	auto_buf struct buf text = { 0 };
	auto_dir DIR *d = NULL;
	auto_close int dir = -1;
	struct dirent *de;
	int copy;

	if (agent_request_print(&text, q) < 0 || open_dir(&dir) < 0)
		return false;
	copy = openat(dir, ".", DIR_FLAGS);
	d = copy < 0 ? NULL : fdopendir(copy);
	if (!d && copy >= 0)
		close(copy);
	while (d && (de = readdir(d)))
		if (de->d_name[0] != '.' && strcmp(de->d_name, AGENT_NURSERY) != 0 &&
		    give_to(dir, de->d_name, (struct str){ text.p, text.n }, fds))
			return true;
	return give_to(dir, AGENT_NURSERY, (struct str){ text.p, text.n }, fds);
}
