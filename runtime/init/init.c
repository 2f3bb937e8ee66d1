// SPDX-License-Identifier: Apache-2.0
/* Process 1 of a sandbox. Runs as the payload's user without any right, starts the payload, reaps,
 * forwards signals and says how it ended. Trusted only until the payload runs: the launcher believes
 * nothing that it could not check. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/init/filter.h"
#include "runtime/init/frame.h"

#define PATH_LOOKUP_MAX 4096
#define EXIT_INTERNAL	125

struct block {
	const struct init_config *head;
	char **argv;
	char **envp;
	const char *cwd;
	struct sock_fprog filter;
};

static void tell(uint32_t type, int code, int sig, uint32_t alone, const char *text)
{
	struct init_frame f = {
		.magic = INIT_FRAME_MAGIC, .type = type, .code = code, .signal = sig, .alone = alone
	};

	if (text)
		memcpy(f.text, text, strnlen(text, sizeof(f.text) - 1));
	send(INIT_CONTROL_FD, &f, sizeof(f), MSG_NOSIGNAL);
}

/* Pointers to n strings that lie behind each other; returns what follows them. */
static char *pointers(char **v, char *s, const char *end, uint32_t n)
{
	for (uint32_t i = 0; i < n && s < end; i++) {
		v[i] = s;
		s += strnlen(s, (size_t)(end - s)) + 1;
	}
	v[n] = NULL;
	return s;
}

/* The block comes from the launcher through a sealed memfd; private, since exec wants char *. */
static int block_open(struct block *b)
{
	struct stat st;
	char *base, *end;
	size_t n;

	if (fstat(INIT_CONFIG_FD, &st) < 0 || st.st_size < (off_t)sizeof(struct init_config))
		return -1;
	base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, INIT_CONFIG_FD,
		    0);
	if (base == MAP_FAILED)
		return -1;
	close(INIT_CONFIG_FD);
	b->head = (const struct init_config *)base;
	if (b->head->magic != INIT_CONFIG_MAGIC || b->head->size != (uint64_t)st.st_size ||
	    b->head->argc == 0)
		return -1;
	n = ((size_t)b->head->argc + b->head->envc + 2) * sizeof(char *);
	b->argv = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->argv == MAP_FAILED)
		return -1;
	b->envp = b->argv + b->head->argc + 1;
	end = base + b->head->size;
	pointers(b->envp, pointers(b->argv, base + b->head->strings_off, end, b->head->argc), end,
		 b->head->envc);
	b->cwd = base + b->head->cwd_off;
	b->filter.len = (unsigned short)b->head->filter_n;
	b->filter.filter = (struct sock_filter *)(base + b->head->filter_off);
	return 0;
}

static const char *env_get(char **envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* execvpe without its habit of handing anything unknown to a shell: that hides what is wrong.
 * Returns the errno that tells most. */
static int exec_lookup(const struct block *b)
{
	const char *name = b->argv[0], *path = env_get(b->envp, "PATH");
	size_t len = strlen(name);
	int found = ENOENT;

	if (strchr(name, '/')) {
		execve(name, b->argv, b->envp);
		return errno;
	}
	while (path) {
		const char *end = strchr(path, ':');
		size_t n = end ? (size_t)(end - path) : strlen(path);
		char full[PATH_LOOKUP_MAX];

		if (n + len + 2 < sizeof(full)) {
			memcpy(full, path, n);
			full[n] = '/';
			memcpy(full + n + !!n, name, len + 1); /* "" in PATH: where we are */
			execve(full, b->argv, b->envp);
			if (errno == EACCES)
				found = EACCES;
			else if (errno != ENOENT && errno != ENOTDIR)
				return errno;
		}
		path = end ? end + 1 : NULL;
	}
	return found;
}

/* In the child. `fd` closes at exec, which tells init that it worked. */
static void payload(const struct block *b, int fd)
{
	sigset_t none;
	int e = 0;

	setsid();
	if (chdir(b->cwd) < 0)
		e = errno;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (!e && b->filter.len && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &b->filter) < 0)
		e = -errno; /* ours, not the command's: negative */
	else if (!e)
		e = exec_lookup(b);
	(void)!write(fd, &e, sizeof(e));
	_exit(EXIT_INTERNAL);
}

/* What init holds of the payload must not outlive the payload: its pipes would never end. */
static void let_go_of_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
			close(fd);
	if (null > 2)
		close(null);
}

/* Starts the payload and says how that went. Init gives up its own calls before it looks at the
 * outcome. The payload's pid, or -1 when there is none. */
static pid_t start(const struct block *b)
{
	int pipefd[2], e = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(pipefd, O_CLOEXEC) < 0) {
		tell(FRAME_FAILED, errno, 0, 0, "pipe");
		return -1;
	}
	pid = fork();
	if (pid == 0)
		payload(b, pipefd[1]);
	if (pid < 0) {
		tell(FRAME_FAILED, errno, 0, 0, "fork");
		return -1;
	}
	close(pipefd[1]);
	let_go_of_stdio();
	if (init_filter_install() < 0) {
		tell(FRAME_FAILED, errno, 0, 0, "filter of init");
		return -1;
	}
	do {
		n = read(pipefd[0], &e, sizeof(e));
	} while (n < 0 && errno == EINTR);
	if (n == 0) {
		tell(FRAME_STARTED, 0, 0, 0, NULL);
		return pid;
	}
	if (n == (ssize_t)sizeof(e) && e > 0)
		tell(FRAME_EXEC_FAILED, e, 0, 0, b->argv[0]);
	else
		tell(FRAME_FAILED, n == (ssize_t)sizeof(e) ? -e : EIO, 0, 0, "payload filter");
	return -1;
}

/* Reaps all that is dead. True when nobody is left. */
static int reap(pid_t main_pid, int *ret_ended, int *ret_status)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid == main_pid) {
			*ret_ended = 1;
			*ret_status = status;
		}
		if (pid == 0 || (pid < 0 && errno != EINTR))
			return pid < 0;
	}
}

static void take_frame(pid_t main_pid, int ended)
{
	struct init_frame f;
	ssize_t n = recv(INIT_CONTROL_FD, &f, sizeof(f), MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		_exit(0); /* the launcher is gone, and so must all of us be */
	if (n != (ssize_t)sizeof(f) || f.magic != INIT_FRAME_MAGIC)
		return;
	if (f.type == FRAME_SIGNAL && !ended && f.signal > 0 && f.signal < NSIG)
		kill(-main_pid, f.signal);
}

static void serve(pid_t main_pid, int sigfd)
{
	struct pollfd pfd[] = { { .fd = sigfd, .events = POLLIN },
				{ .fd = INIT_CONTROL_FD, .events = POLLIN } };
	int ended = 0, told = 0, status = 0;

	for (;;) {
		int alone = reap(main_pid, &ended, &status);

		if (ended && !told) {
			told = 1;
			if (WIFSIGNALED(status))
				tell(FRAME_EXIT, 0, WTERMSIG(status), (uint32_t)alone, NULL);
			else
				tell(FRAME_EXIT, WEXITSTATUS(status), 0, (uint32_t)alone, NULL);
		}
		if (ended && alone)
			_exit(0);
		if (poll(pfd, 2, -1) < 0)
			continue;
		if (pfd[0].revents) {
			struct signalfd_siginfo si;

			(void)!read(sigfd, &si, sizeof(si));
		}
		if (pfd[1].revents)
			take_frame(main_pid, ended);
	}
}

int main(void)
{
	struct block b = { 0 };
	sigset_t set;
	int sigfd;
	pid_t pid;

	/* The program's file is not readable for us, which made us undumpable from the first
	 * instruction; this is the belt to those braces. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	fcntl(INIT_CONTROL_FD, F_SETFD, FD_CLOEXEC);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (sigfd < 0 || block_open(&b) < 0) {
		tell(FRAME_FAILED, errno, 0, 0, "configuration");
		return EXIT_INTERNAL;
	}
	pid = start(&b);
	if (pid < 0)
		return EXIT_INTERNAL;
	serve(pid, sigfd);
}
