/* SPDX-License-Identifier: Apache-2.0 */
// ours: cli
/* warder, with an engine that somebody has taken over: on SIGUSR1 it does what WARDER_TAKEOVER names, as a line of
 * "what: errno" on stderr each, or is ended for it. By the linker, in this program alone (Makefile): the shipped one has
 * no such door. */
#include "userspace/main.c"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "userspace/action/action.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/api/upstream.h"
#include "userspace/pipeline/engine_part.h"
#include "userspace/pipeline/hub_streams.h"

void __real_engine_check_stopped(struct engine *e);
void __wrap_engine_check_stopped(struct engine *e);
void __real_hub_stream_first(struct hub *h, int in, int out, int err, bool tty);
void __wrap_hub_stream_first(struct hub *h, int in, int out, int err, bool tty);
int __wrap_upstream_ask(struct upstream *u, int channel, int http, const struct agent_request *q);
int __real_upstream_ask(struct upstream *u, int channel, int http, const struct agent_request *q);

static bool is_taken(const char *what)
{
	const char *wanted = getenv("WARDER_TAKEOVER");

	return wanted && !strcmp(wanted, what);
}

static void say(const char *what, long r)
{
	dprintf(STDERR_FILENO, "%s: %s\n", what, r < 0 ? strerrorname_np(errno) : "done");
}

/* ---- what is refused ---- */

static void ask_to_kill(struct engine *e, const char *what, pid_t pid)
{
	struct action_proc a = { .tgid = (uint32_t)pid };
	int fd = e->opt->session.target.proc_fd;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) < 0 || poll(&p, 1, 10000) != 1 ||
	    recv(fd, &a, sizeof(a), MSG_DONTWAIT) != sizeof(a))
		a.result = -ETIMEDOUT;
	errno = -a.result;
	say(what, a.result);
}

/* Of the test: what belongs to others. */
static void read_files(struct engine *e)
{
	char list[4096], path[4096], *at = list, *name;

	snprintf(list, sizeof(list), "%s", getenv("WARDER_TAKEOVER_FILES"));
	while ((name = strsep(&at, ":"))) {
		snprintf(path, sizeof(path), "read %s", name);
		say(path, open(name, O_RDONLY | O_CLOEXEC));
		snprintf(path, sizeof(path), "write %s", name);
		say(path, open(name, O_WRONLY | O_CLOEXEC));
	}
	say("read above its record", openat(e->opt->bundle_fd, "..", O_RDONLY | O_DIRECTORY));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)getppid());
	say("memory of the root part", open(path, O_RDWR | O_CLOEXEC));
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)getppid());
	say("descriptors of the root part", open(path, O_RDONLY | O_DIRECTORY));
	say("a program",
	    open("/bin/true", O_RDONLY | O_CLOEXEC) < 0 ? -1 : access("/bin/true", X_OK));
}

static void quiet(struct engine *e)
{
	read_files(e);
	say("setreuid", syscall(SYS_setreuid, 0, 0));
	say("setfsuid", syscall(SYS_setfsuid, 0));
	say("ambient capability", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 1, 0, 0));
	say("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
	say("fork", syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
	say("socket", socket(AF_INET, SOCK_STREAM, 0));
	say("limits of the root part",
	    syscall(SYS_prlimit64, getppid(), RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }, NULL));
	ask_to_kill(e, "kill the root part", getppid());
	ask_to_kill(e, "kill process 1", 1);
	ask_to_kill(e, "kill itself", getpid());
}

/* The agent, as anybody else may. */
static void ask_agent(struct engine *e)
{
	static const char *const words[] = { "true" };
	static char packet[AGENT_FRAME_MAX];
	const struct agent_request q = { .op = AGENT_RUN, .argv = (const char **)words, .argc = 1 };
	struct buf text = { 0 };
	ssize_t n = -1;
	int fd;

	(void)e;
	if (agent_connect(&fd) == 0 && agent_request_print(&text, &q) == 0 &&
	    agent_send(fd, text.p, text.n, -1, 0) == 0)
		n = agent_recv(fd, packet, NULL, 0);
	dprintf(STDERR_FILENO, "agent: %.*s\n", (int)(n > 0 ? n : 0), packet);
}

/* ---- what it is ended for ---- */

static void call_execve(struct engine *e)
{
	(void)e;
	say("execve", execl("/bin/true", "true", (char *)NULL));
}

static void call_ptrace(struct engine *e)
{
	(void)e;
	say("ptrace", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
}

static void call_kill(struct engine *e)
{
	(void)e;
	say("kill", kill(getppid(), SIGKILL));
}

static void call_setresuid(struct engine *e)
{
	(void)e;
	say("setresuid", syscall(SYS_setresuid, 0, 0, 0));
}

static void call_unshare(struct engine *e)
{
	(void)e;
	say("unshare", syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */));
}

static void call_bpf(struct engine *e)
{
	(void)e;
	say("bpf", syscall(SYS_bpf, 0, NULL, 0));
}

static void call_process_vm(struct engine *e)
{
	(void)e;
	say("process_vm_readv", syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
}

static void send_type(struct engine *e, uint32_t type)
{
	const struct engine_msg msg = { .type = type };

	(void)!send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static void send_unknown(struct engine *e)
{
	send_type(e, 4711);
}

static void send_record(struct engine *e)
{
	send_type(e, ENGINE_RECORD);
}

static void send_sign(struct engine *e)
{
	send_type(e, ENGINE_SIGN);
}

static void send_done(struct engine *e)
{
	send_type(e, ENGINE_DONE);
}

static void send_short(struct engine *e)
{
	(void)!send(e->fd, "abc", 3, MSG_NOSIGNAL);
}

static void send_no_process(struct engine *e)
{
	(void)!send(e->opt->session.target.proc_fd, "abc", 3, MSG_NOSIGNAL);
}

static const struct {
	const char *name;
	void (*fn)(struct engine *e);
} acts[] = {
	{ "quiet", quiet },
	{ "agent", ask_agent },
	{ "execve", call_execve },
	{ "ptrace", call_ptrace },
	{ "kill", call_kill },
	{ "setresuid", call_setresuid },
	{ "unshare", call_unshare },
	{ "bpf", call_bpf },
	{ "process_vm_readv", call_process_vm },
	{ "unknown", send_unknown },
	{ "record", send_record },
	{ "sign", send_sign },
	{ "done", send_done },
	{ "short", send_short },
	{ "no-process", send_no_process },
};

/* Its signals are blocked: it looks when it wakes for something else. */
void __wrap_engine_check_stopped(struct engine *e)
{
	const char *what = getenv("WARDER_TAKEOVER");
	static bool done;
	sigset_t set;

	__real_engine_check_stopped(e);
	if (done || !what || sigpending(&set) < 0 || !sigismember(&set, SIGUSR1))
		return;
	done = true;
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (!strcmp(what, acts[i].name))
			acts[i].fn(e);
	dprintf(STDERR_FILENO, "%s: over\n", what);
}

/* ---- a hub, and the API's front ---- */

void __wrap_hub_stream_first(struct hub *h, int in, int out, int err, bool tty)
{
	static struct hub_msg m = { .type = 4711 };

	__real_hub_stream_first(h, in, out, err, tty);
	if (is_taken("hub"))
		hub_send(h->keeper, &m, -1);
}

int __wrap_upstream_ask(struct upstream *u, int channel, int http, const struct agent_request *q)
{
	if (is_taken("api"))
		(void)!send(channel, "xyz", 3, MSG_NOSIGNAL);
	return __real_upstream_ask(u, channel, http, q);
}
