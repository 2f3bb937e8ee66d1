// SPDX-License-Identifier: Apache-2.0
/* The namespace backend, launcher's side: clone3 into the cgroup, maps, and the talk with init. */
#include <errno.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "runtime/backend.h"
#include "runtime/birth.h"
#include "runtime/egress/egress.h"
#include "runtime/gvisor/gvisor.h"
#include "runtime/init/frame.h"
#include "runtime/init_config.h"
#include "runtime/netns.h"
#include "runtime/sandbox_priv.h"
#include "runtime/seccomp.h"
#include "runtime/setup.h"
#include "runtime/sys.h"
#include "runtime/template.h"
#include "runtime/tty.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define OOM_SCORE	"500"
#define FRAMES_PER_TURN 64 /* a hostile init must not keep us busy */

extern const char init_blob[], init_blob_end[];

/* Init's program. Not readable for the payload's user: the kernel then makes its process undumpable
 * at exec, before its first instruction. Made once: sealed, it is the same for all. */
static int init_memfd(struct birth *b, struct err *err)
{
	auto_close int fd = -1;
	int r;

	if (__atomic_load_n(&b->memfd, __ATOMIC_ACQUIRE) > 0)
		return b->memfd;
	fd = memfd_create("warder-init", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before 6.3 */
		fd = memfd_create("warder-init", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_set(err, errno, "sandbox init: memfd_create: %m");
	r = fd_write_all(fd, b->program, (size_t)(b->program_end - b->program));
	if (r == 0 && fchmod(fd, 0111) < 0)
		r = -errno;
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, -r, "sandbox init: %m");
	__atomic_store_n(&b->memfd, take_fd(fd), __ATOMIC_RELEASE);
	return b->memfd;
}

/* What the payload is, with its filter. */
static int ns_config(struct sandbox *s, struct setup *t, struct err *err)
{
	const struct sandbox_plan *p = s->plan;
	struct init_words w = {
		.argv = p->argv,
		.argc = p->argc,
		.env = p->env,
		.env_n = p->env_n,
		.cwd = p->cwd,
		.tty = p->tty,
		.rows = p->tty_rows,
		.cols = p->tty_cols,
		.serve = p->serve,
	};
	int r = seccomp_get(p, s->notify, &w.filter, &w.filter_n, err);

	if (s->notify)
		w.notify = p->seccomp ? INIT_NOTIFY_HELPER : INIT_NOTIFY_SEND;

	return r < 0 ? r : init_config_memfd(&w, &t->config, err);
}

static int ns_map(struct sandbox *s)
{
	return userns_map(s->pid, s->plan->uid, s->plan->gid, s->host_id);
}

static struct birth birth = {
	.program = init_blob,
	.program_end = init_blob_end,
	.steps = setup_steps_ns,
	.workspace = "workspace",
	.has_template = true,
	.config = ns_config,
	.map = ns_map,
};

/* From an open directory of the host every path of the host can be walked. */
static int check_stdio(const int stdio[3], struct err *err)
{
	static const char *const names[] = { "standard input", "standard output",
					     "standard error" };

	for (int i = 0; i < 3; i++) {
		struct stat st;

		if (fstat(stdio[i], &st) < 0)
			return err_set(err, errno, "%s: %m", names[i]);
		if (S_ISDIR(st.st_mode))
			return err_set(err, EISDIR,
				       "%s is a directory: a way out of the sandbox, not passed on",
				       names[i]);
	}
	return 0;
}

/* /dev/stdout opens the pipe anew, as the payload's user. Only pipes: they end with us, while a file
 * or terminal of the operator keeps its owner. */
static void give_pipe(int fd, uint32_t id)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
		(void)!fchown(fd, id, id);
}

/* User namespaces for the id-mapped binds, found again by their place in the plan. */
static int mount_ids(struct sandbox *s, struct setup *t, struct err *err)
{
	const struct sandbox_plan *p = s->plan;

	for (size_t i = 0; i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];
		int r;

		if (!op->ids)
			continue;
		r = userns_for_mount(op->owner, op->group, s->host_id,
				     op->kind == ROOT_IMAGE && p->container ? USERNS_OTHERS
				     : t->gvisor			    ? t->gvisor->root_id
									    : 0,
				     &t->ids[i]);
		if (r < 0)
			return err_set(err, -r, "bind '%s': id map: %m", op->source);
	}
	return 0;
}

static void setup_close(struct setup *t)
{
	for (size_t i = 0; i < PLAN_ROOT_MAX; i++)
		if (t->ids[i] >= 0)
			close(t->ids[i]);
	if (t->config >= 0)
		close(t->config);
	if (t->netns >= 0)
		close(t->netns);
	if (t->secrets >= 0)
		close(t->secrets);
	if (t->made_workspace >= 0)
		close(t->made_workspace);
	if (t->made_scratch >= 0)
		close(t->made_scratch);
}

/* The frame if it is one; -EAGAIN for junk, -EPIPE at the end. With `ret_fd` a descriptor may come with it;
 * else one that does is dropped by the kernel. */
static int frame_read(struct sandbox *s, struct init_frame *f, int flags, int *ret_fd)
{
	ssize_t n = fd_recv(s->control, f, sizeof(*f), ret_fd, ret_fd != NULL, flags | MSG_TRUNC);

	if (n < 0 && n != -ECONNRESET)
		return (int)n;
	if (n <= 0)
		return -EPIPE;
	if (n != (ssize_t)sizeof(*f) || f->magic != INIT_FRAME_MAGIC)
		return -EBADMSG;
	f->step[sizeof(f->step) - 1] = 0;
	f->text[sizeof(f->text) - 1] = 0;
	return 0;
}

int birth_send(struct sandbox *s, uint32_t type, int sig, uint32_t id)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = type, .signal = sig, .id = id };
	ssize_t n = send(s->control, &f, sizeof(f), MSG_NOSIGNAL | MSG_DONTWAIT);

	return n == (ssize_t)sizeof(f) ? 0 : n < 0 ? -errno : -EIO;
}

int birth_send_fd(struct sandbox *s, uint32_t type, int fd)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC, .type = type };
	ssize_t n = fd_send(s->control, &f, sizeof(f), &fd, 1, MSG_DONTWAIT);

	return n == (ssize_t)sizeof(f) ? 0 : n < 0 ? (int)n : -EIO;
}

/* The command's block and its three descriptors, in this order. */
static int exec_send(int sock, const struct sandbox_exec *x, int config)
{
	struct init_frame f = { .magic = INIT_FRAME_MAGIC,
				.type = FRAME_EXEC,
				.id = x->id,
				.alone = x->tty,
				.code = x->rows << 16 | x->cols };
	const int fds[INIT_EXEC_FDS] = { config, x->stdio[0], x->stdio[1], x->stdio[2] };
	ssize_t n = fd_send(sock, &f, sizeof(f), fds, ARRAY_SIZE(fds), MSG_DONTWAIT);

	return n == (ssize_t)sizeof(f) ? 0 : n < 0 ? (int)n : -EIO;
}

/* A frame within this time; one that is there already in any case. */
static int frame_wait(struct sandbox *s, struct init_frame *f, uint64_t end, int *ret_fd)
{
	for (;;) {
		struct pollfd pfd = { .fd = s->control, .events = POLLIN };
		int r = frame_read(s, f, MSG_DONTWAIT, ret_fd);
		uint64_t now;

		if (r != -EAGAIN && r != -EINTR)
			return r;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return -ETIMEDOUT;
		poll(&pfd, 1, (int)((end - now) / NSEC_PER_MSEC) + 1);
	}
}

static int exec_error(const struct sandbox_plan *p, int code, struct err *err)
{
	const char *name = p->argv[0];

	switch (code) {
	case ENOENT:
	case ENOTDIR:
		return err_set(err, ENOENT, "command '%s': not found in the sandbox", name);
	case ENOEXEC:
		return err_set(err, ENOEXEC, "command '%s': not an executable format", name);
	case EACCES:
	case EPERM:
	case EISDIR:
		return err_set(err, EACCES, "command '%s': cannot be executed: %m", name);
	default:
		return err_set(err, code, "command '%s': %m", name);
	}
}

/* Its own /workspace, to be looked at when it is dead: a file system without a mount lives as long as somebody has
 * it open. */
static void hold_workspace(struct sandbox *s, const struct birth *b)
{
	auto_close int root = -1;
	char path[64];

	for (size_t i = 0; i < s->plan->root_n; i++)
		if (s->plan->root[i].kind == ROOT_BIND &&
		    !strcmp(s->plan->root[i].target, "/workspace"))
			return;
	if (s->workspace >= 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/root", (int)s->pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root >= 0)
		s->workspace = sys_openat2(root, b->workspace, O_PATH | O_DIRECTORY,
					   RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
}

/* By who runs before the payload does, and believed no more than others: it is to be what it says. */
static int take_listener(struct sandbox *s, int *fd, int code)
{
	char path[64], link[64] = "";

	if (s->listener_told || s->notify == SECCOMP_NOTIFY_NONE)
		return -EPROTO;
	s->listener_told = true;
	if (*fd < 0) {
		s->listener_error = code > 0 && code <= 4095 ? code : EIO;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	if (readlink(path, link, sizeof(link) - 1) < 0 ||
	    strcmp(link, "anon_inode:seccomp notify") != 0)
		return -EPROTO;
	s->listener = take_fd(*fd);
	return 0;
}

/* One word of the set-up task or of init: SANDBOX_STARTING, SANDBOX_RUNNING, -errno. `fd` came with it, or -1. */
static int follow_frame(struct sandbox *s, const struct birth *b, struct init_frame *f, int *fd,
			struct err *err)
{
	int r;

	switch (f->type) {
	case FRAME_USERNS:
		r = s->mapped ? -EPROTO : b->map(s);
		s->mapped = true;
		hold_workspace(s, b); /* it has its root, and waits for us */
		dirs_hold(s);
		if (r == 0)
			r = birth_send(s, FRAME_MAPPED, 0, 0);
		if (r < 0)
			return err_set(err, -r, "sandbox set-up: id maps: %m");
		return SANDBOX_STARTING;
	case FRAME_TTY:
		r = s->tty < 0 ? tty_check(*fd) : -EPROTO;
		if (r < 0)
			return err_set(err, -r, "sandbox set-up: its terminal: %m");
		s->tty = take_fd(*fd);
		return SANDBOX_STARTING;
	case FRAME_LISTENER:
		r = take_listener(s, fd, f->code);
		if (r < 0)
			return err_set(err, -r, "sandbox set-up: its filter's listener: %m");
		return SANDBOX_STARTING;
	case FRAME_STARTED:
		if (s->notify && !s->listener_told && !b->frame)
			return err_set(err, EPROTO,
				       "sandbox set-up: its filter's listener did not come");
		hold_workspace(s, b); /* where there is no user namespace */
		dirs_hold(s);
		if (s->plan->tty && s->tty < 0)
			return err_set(err, EPROTO, "sandbox set-up: its terminal did not come");
		return SANDBOX_RUNNING;
	case FRAME_EXEC_FAILED:
		if (f->code <= 0 || f->code > 4095)
			f->code = EIO;
		s->exec_failed = true;
		return exec_error(s->plan, f->code, err);
	case FRAME_FAILED:
		if (f->code <= 0 || f->code > 4095)
			f->code = EIO;
		return err_set(err, f->code, "sandbox set-up: %s%s'%s': %m", f->step,
			       f->step[0] ? " " : "", f->text);
	default:
		if (b->frame)
			return b->frame(s, f, *fd, err);
		return err_set(err, EPROTO, "sandbox set-up: unexpected frame %u", f->type);
	}
}

/* One that is made for it. */
static bool has_own_netns(const struct sandbox_plan *p)
{
	return p->net != SANDBOX_NET_HOST && p->net != SANDBOX_NET_GIVEN;
}

/* A process that starts a second sandbox will start a third. */
static void prepare_next(const struct sandbox_plan *p)
{
	static int before;

	if (has_own_netns(p) && __atomic_fetch_or(&before, 1, __ATOMIC_RELAXED))
		netns_prepare();
}

/* Those numbers are the command's, if they are not from it; the text has the true one. */
static int own_errno(const struct sandbox *s, int r)
{
	return !s->exec_failed && (r == -ENOENT || r == -EACCES || r == -ENOEXEC) ? -EIO : r;
}

/* Is there a descriptor to come? */
static bool may_bring(const struct sandbox *s, const struct birth *b)
{
	return b->frame || (s->plan->tty && s->tty < 0) || (s->notify && !s->listener_told);
}

/* Answers the set-up task until the payload runs, something has failed, or the time is over. */
int birth_follow(struct sandbox *s, const struct birth *b, int timeout_ms, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NSEC_PER_MSEC;
	int r;

	do {
		auto_close int fd = -1;
		struct init_frame f;

		r = frame_wait(s, &f, end, may_bring(s, b) ? &fd : NULL);
		if (r == -ETIMEDOUT)
			return SANDBOX_STARTING;
		if (r < 0)
			r = err_set(err, r == -EPIPE ? EIO : -r,
				    r == -EPIPE ? "sandbox set-up: ended without a word"
						: "sandbox set-up: %m");
		else
			r = follow_frame(s, b, &f, &fd, err);
	} while (r == SANDBOX_STARTING);
	prepare_next(s->plan);
	return own_errno(s, r);
}

static int clone_setup(struct sandbox *s, struct setup *t, bool has_template, struct err *err)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_INTO_CGROUP | CLONE_NEWNS | CLONE_NEWPID |
			 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
		.pidfd = (uint64_t)(uintptr_t)&s->pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)s->cgroup.leaf,
	};
	sigset_t all, old;
	int e;

	if (has_own_netns(s->plan) && t->netns < 0)
		args.flags |= CLONE_NEWNET;
	/* No handler of ours may run in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	s->pid = has_template ? template_clone(t, &args) : 0;
	if (s->pid == 0)
		s->pid = sys_clone3(&args);
	if (s->pid == 0)
		setup_run(t);
	e = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (s->pid < 0)
		return err_set(err, e, "sandbox set-up: clone3 into '%s': %m", s->cgroup.path);
	return 0;
}

/* Should the host as a whole run out of memory, a sandbox goes first. Written here, while the set-up
 * task is busy, and before it can be answered. */
static int oom_score(const struct sandbox *s, struct err *err)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)s->pid);
	r = file_write_at(AT_FDCWD, path, OOM_SCORE);
	/* Already ended: ns_follow has the better story. */
	if (r < 0 && r != -ENOENT && r != -ESRCH)
		return err_set(err, -r, "sandbox set-up: '%s': %m", path);
	return 0;
}

static void reap(struct sandbox *s)
{
	siginfo_t si;

	if (s->pidfd < 0)
		return;
	while (waitid(P_PIDFD, (id_t)s->pidfd, &si, WEXITED | __WALL) < 0 && errno == EINTR)
		;
	close(take_fd(s->pidfd));
}

void birth_done(struct sandbox *s)
{
	reap(s);
	if (s->control >= 0)
		close(take_fd(s->control));
}

/* Before the payload exists: it never sees a network that is half there. */
static int way_out(struct sandbox *s, struct setup *t, struct err *err)
{
	if (!s->plan->egress)
		return 0;
	if (!s->egress)
		return err_set(err, ENOTCONN, "network: nobody is the way out of this sandbox");
	if (t->netns < 0) { /* one was taken, or none could be made */
		netns_prepare();
		t->netns = netns_take();
	}
	if (t->netns < 0)
		return err_set(err, EAGAIN, "network: no namespace could be made");
	return egress_connect(s->egress, t->netns, err);
}

/* The one that was given or made ahead; -1: the host's, or a new one with the clone. */
static int take_netns(struct sandbox *s, struct setup *t, struct err *err)
{
	const struct sandbox_container *c = s->plan->container;

	if (has_own_netns(s->plan)) {
		t->netns = netns_take();
		return way_out(s, t, err);
	}
	if (s->plan->net == SANDBOX_NET_HOST)
		return 0;
	t->netns = fcntl(c->netns_fd, F_DUPFD_CLOEXEC, 3);
	return t->netns < 0 ? err_set(err, errno, "network namespace '%s': %m", c->netns) : 0;
}

int birth_begin(struct sandbox *s, struct birth *b, const struct gvisor_setup *gvisor,
		const int stdio[3], struct err *err)
{
	int pair[2], r;
	struct setup t = {
		.plan = s->plan,
		.steps = b->steps,
		.gvisor = gvisor,
		.host_id = s->host_id,
		.config = -1,
		.leaf = s->cgroup.leaf,
		.netns = -1,
		.secrets = take_fd(s->secrets.mount),
		.made_workspace = take_fd(s->made.workspace),
		.made_scratch = take_fd(s->made.scratch),
		.stdio = { stdio[0], stdio[1], stdio[2] },
		.scratch = -1,
		.dev = -1,
		.proc = -1,
		.proc_sys = -1,
	};

	memcpy(t.v1_tasks, s->cgroup.v1_tasks, sizeof(t.v1_tasks));
	for (size_t i = 0; i < PLAN_ROOT_MAX; i++)
		t.ids[i] = -1;
	r = check_stdio(stdio, err);
	if (r == 0)
		r = mount_ids(s, &t, err);
	if (r == 0)
		r = b->config(s, &t, err);
	if (r == 0)
		r = t.init = init_memfd(b, err);
	if (r >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = err_set(err, errno, "sandbox set-up: socketpair: %m");
	if (r < 0) {
		setup_close(&t);
		return own_errno(s, r);
	}
	s->control = pair[0];
	t.control = pair[1];
	t.peer = pair[0];
	r = take_netns(s, &t, err);
	if (r < 0) {
		close(pair[1]);
		setup_close(&t);
		return -EIO;
	}
	for (int i = 0; i < 3; i++)
		give_pipe(stdio[i], s->host_id);
	r = clone_setup(s, &t, b->has_template, err);
	close(pair[1]);
	setup_close(&t);
	if (r == 0)
		r = oom_score(s, err);
	return own_errno(s, r);
}

static int ns_begin(struct sandbox *s, const int stdio[3], struct err *err)
{
	return birth_begin(s, &birth, NULL, stdio, err);
}

static int ns_follow(struct sandbox *s, int timeout_ms, struct err *err)
{
	return birth_follow(s, &birth, timeout_ms, err);
}

/* The payload has ended: remember how, believing only what is possible. */
static void take_exit(struct sandbox *s, const struct init_frame *f)
{
	s->ended = true;
	s->alone = f->alone != 0;
	if (f->signal > 0 && f->signal < NSIG) {
		s->exit_signal = f->signal;
		s->exit_code = 128 + f->signal;
	} else {
		s->exit_code = f->code & 0xff;
	}
}

/* What ran the payload has ended, and nobody knows how the payload did. */
static void take_death(struct sandbox *s, const struct init_frame *f)
{
	s->ended = s->died = true;
	s->death_code = f->code & 0xff;
	s->death_signal = f->signal > 0 && f->signal < NSIG ? f->signal : 0;
	s->exit_signal = SIGKILL;
	s->exit_code = 128 + SIGKILL;
}

/* About a command that was asked for by ns_exec. */
static void take_exec(struct sandbox *s, const struct init_frame *f, int *fd)
{
	struct sandbox_exec_event ev = { .id = f->id, .code = f->code, .tty = -1 };

	switch (f->type) {
	case FRAME_TTY:
		if (tty_check(*fd) < 0)
			return;
		ev.what = SANDBOX_EXEC_TTY;
		ev.tty = take_fd(*fd);
		break;
	case FRAME_STARTED:
		ev.what = SANDBOX_EXEC_STARTED;
		break;
	case FRAME_EXEC_FAILED:
		ev.what = SANDBOX_EXEC_FAILED;
		if (ev.code <= 0 || ev.code > 4095)
			ev.code = EIO;
		break;
	case FRAME_EXIT:
		ev.what = SANDBOX_EXEC_DONE;
		ev.code &= 0xff;
		if (f->signal > 0 && f->signal < NSIG) {
			ev.signal = f->signal;
			ev.code = 128 + f->signal;
		}
		break;
	default:
		return;
	}
	if (s->on_exec)
		s->on_exec(s->on_exec_arg, &ev);
	else if (ev.tty >= 0)
		close(ev.tty);
}

/* The keeper has it from the sentry. */
static void take_checkpoint(struct sandbox *s, const struct init_frame *f)
{
	s->checkpoint.done = true;
	s->checkpoint.code = f->code < 0 || f->code > 4095 ? EIO : f->code;
	snprintf(s->checkpoint.text, sizeof(s->checkpoint.text), "%s", f->text);
}

int birth_dispatch(struct sandbox *s)
{
	for (int i = 0; i < FRAMES_PER_TURN && !s->ended; i++) {
		auto_close int fd = -1;
		struct init_frame f;
		int r = frame_read(s, &f, MSG_DONTWAIT, s->on_exec ? &fd : NULL);

		if (r == -EAGAIN || r == -EINTR)
			return SANDBOX_RUNNING;
		if (r == -EBADMSG)
			continue;
		if (r < 0)
			return r;
		if (f.id)
			take_exec(s, &f, &fd);
		else if (f.type == FRAME_EXIT)
			take_exit(s, &f);
		else if (f.type == FRAME_DIED)
			take_death(s, &f);
		else if (f.type == FRAME_CHECKPOINTED && s->checkpoint.asked)
			take_checkpoint(s, &f);
	}
	return s->ended ? SANDBOX_EXITED : SANDBOX_RUNNING;
}

int birth_exec(struct sandbox *s, const struct sandbox_exec *x, int config, struct err *err)
{
	int r = check_stdio(x->stdio, err);

	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		give_pipe(x->stdio[i], s->host_id);
	r = exec_send(s->control, x, config);
	return r < 0 ? err_set(err, -r, "sandbox init: %m") : 0;
}

/* Init takes it when it gets to it: what comes of it is told by ns_dispatch. */
static int ns_exec(struct sandbox *s, const struct sandbox_exec *x, struct err *err)
{
	struct init_words w = {
		.argv = x->argv,
		.env = x->env,
		.env_n = x->env_n,
		.cwd = x->cwd ? x->cwd : s->plan->cwd,
		.tty = x->tty,
		.rows = x->rows,
		.cols = x->cols,
		.serve = true,
	};
	auto_close int config = -1;
	int r;

	while (w.argv[w.argc])
		w.argc++;
	r = init_config_memfd(&w, &config, err);
	return r < 0 ? r : birth_exec(s, x, config, err);
}

int birth_exec_signal(struct sandbox *s, uint32_t id, int sig)
{
	return birth_send(s, FRAME_SIGNAL, sig, id);
}

int birth_signal(struct sandbox *s, int sig)
{
	return birth_send(s, FRAME_SIGNAL, sig, 0);
}

void birth_prepare(struct sandbox *s)
{
	if (has_own_netns(s->plan))
		netns_prepare();
}

const struct backend backend_ns = {
	.name = "ns",
	.what = "Linux namespaces, shared kernel",
	.root = "",
	.prepare = birth_prepare,
	.begin = ns_begin,
	.follow = ns_follow,
	.dispatch = birth_dispatch,
	.signal = birth_signal,
	.exec = ns_exec,
	.exec_signal = birth_exec_signal,
	.done = birth_done,
};
