/* SPDX-License-Identifier: Apache-2.0 */
/* A probe that loads and attaches may still never fire, or say what nobody can read: so a scratch sandbox does
 * one of everything, and only what comes out of the rings and is decoded counts. */
#include "userspace/capture/selftest.h"

#include <arpa/inet.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/capture/enforce.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/selftest_group.h"
#include "userspace/event/decode.h"

#define SELFTEST_ID  0xffffffffu      /* nobody else's: ids count from 1 */
#define SELFTEST_SET ENFORCE_SETS_MAX /* sessions count from 1 */
#define ACT_LIMIT_NS (20 * NSEC_PER_SEC)
#define LATE_LIMIT_NS \
	(2 * NSEC_PER_SEC) /* for records still under way when the process has ended */
#define ARENA_BYTES (4u << 20)
#define TEXT_MAX    2 /* conditions on fields */

/* What has to be seen of a step: kind and fields of the decoded event. */
struct expect {
	const char *family, *what;
	enum selftest_step step;
	enum wire_kind kind;
	uint16_t flags; /* WIRE_F_* that must be set */
	uint16_t clear; /* and that must not */
	uint16_t port;	/* remote one; 0 = any */
	bool host;	/* the host may have no such thing: then it is nobody's fault */
	struct {
		enum field_id id;
		const char *text;
	} field[TEXT_MAX];
};

#define ESCAPE_IS(name)                     \
	{                                   \
		{                           \
			F_ESCAPE_TYPE, name \
		}                           \
	}

/* clang-format off */
static const struct expect expects[] = {
	{ "lineage", "a process made", STEP_FORK, WIRE_FORK, .flags = 0 },
	{ "lineage", "a task that leaves the sandbox's cgroup", STEP_LEAVE, WIRE_ESCAPE, .field = ESCAPE_IS("cgroup_leave") },
	{ "process", "a program that runs", STEP_EXEC, WIRE_EXEC, .field = { { F_OUTCOME, "success" } } },
	{ "process", "a program that is refused", STEP_EXEC_FAILS, WIRE_EXEC, .field = { { F_ERRNO, "EACCES" } } },
	{ "process", "the end of a process", STEP_FORK, WIRE_EXIT, .flags = 0 },
	{ "file", "a file opened for writing", STEP_OPEN, WIRE_FILE_OPEN, .field = { { F_OUTCOME, "success" } } },
	{ "file", "bytes written to an inherited file", STEP_WRITE, WIRE_FILE_WRITE, .field = { { F_FILE_OP, "first" } } },
	{ "file", "bytes written, at close", STEP_WRITE, WIRE_FILE_WRITE, .field = { { F_FILE_OP, "total" } } },
	{ "file", "a shared mapping", STEP_MMAP, WIRE_FILE_MMAP, .flags = 0 },
	{ "file", "a rename", STEP_NAMES, WIRE_FILE_RENAME, .flags = 0 },
	{ "net", "a connect over IPv4", STEP_TCP4, WIRE_NET_CONNECT, .field = { { F_NET_FAMILY, "inet" }, { F_OUTCOME, "success" } } },
	/* Without the address from the cgroup's hook there would be none, or the caller's. */
	{ "net", "a refused connect over IPv4", STEP_TCP4, WIRE_NET_CONNECT, .clear = WIRE_F_TOCTOU, .field = { { F_NET_FAMILY, "inet" }, { F_ERRNO, "ECONNREFUSED" } } },
	{ "net", "a refused connect over IPv6", STEP_TCP6, WIRE_NET_CONNECT, .clear = WIRE_F_TOCTOU, .host = true, .field = { { F_NET_FAMILY, "inet6" }, { F_ERRNO, "ECONNREFUSED" } } },
	{ "net", "a listener", STEP_TCP4, WIRE_NET_LISTEN, .field = { { F_NET_FAMILY, "inet" } } },
	{ "net", "an accept", STEP_TCP4, WIRE_NET_ACCEPT, .field = { { F_NET_FAMILY, "inet" } } },
	{ "net", "the end of a TCP flow", STEP_TCP4, WIRE_NET_CLOSE, .field = { { F_NET_FAMILY, "inet" }, { F_NET_PROTO, "tcp" } } },
	{ "net", "a connect over IPv6", STEP_TCP6, WIRE_NET_CONNECT, .host = true, .field = { { F_NET_FAMILY, "inet6" }, { F_OUTCOME, "success" } } },
	{ "net", "a datagram over IPv4", STEP_UDP4, WIRE_NET_SEND, .field = { { F_NET_FAMILY, "inet" } } },
	{ "net", "a datagram over IPv6", STEP_UDP6, WIRE_NET_SEND, .host = true, .field = { { F_NET_FAMILY, "inet6" } } },
	{ "net", "a datagram of a socket that was passed in", STEP_PASSED, WIRE_NET_SEND, .port = SELFTEST_PASSED_PORT, .host = true },
	{ "net", "the end of a UDP socket", STEP_UDP4, WIRE_NET_CLOSE, .field = { { F_NET_FAMILY, "inet" }, { F_NET_PROTO, "udp" } } },
	{ "io_uring", "a file opened by io_uring", STEP_URING, WIRE_FILE_OPEN, WIRE_F_IOURING, .host = true },
	{ "io_uring", "bytes written by io_uring", STEP_URING, WIRE_FILE_WRITE, WIRE_F_IOURING, .host = true },
	{ "net", "a datagram sent by io_uring on a socket that was passed in", STEP_URING, WIRE_NET_SEND, WIRE_F_IOURING, .port = SELFTEST_URING_PORT, .host = true },
	{ "dns", "a query", STEP_DNS, WIRE_DNS_QUERY, .field = { { F_DNS_NAME, "selftest.warder.invalid" } } },
	{ "dns", "an answer", STEP_DNS, WIRE_DNS_ANSWER, .field = { { F_DNS_RCODE, "NXDOMAIN" } } },
	{ "oom", "a process killed for its memory", STEP_OOM, WIRE_OOM, .flags = 0 },
	{ "limit", "too many open files", STEP_LIMIT, WIRE_LIMIT, .field = { { F_LIMIT_TYPE, "nofile" } } },
	{ "signal", "a signal", STEP_SIGNAL, WIRE_SIGNAL, .field = { { F_SIGNAL_NAME, "SIGTERM" } } },
	{ "escape", "a namespace made", STEP_NETNS, WIRE_ESCAPE, .field = ESCAPE_IS("unshare") },
	{ "escape", "setns", STEP_SETNS, WIRE_ESCAPE, .field = ESCAPE_IS("setns") },
	{ "escape", "a call that seccomp refused", STEP_SECCOMP, WIRE_ESCAPE, .field = ESCAPE_IS("chroot") },
	{ "net", "a socket that seccomp refused", STEP_SECCOMP, WIRE_NET_SOCKET, .field = { { F_NET_FAMILY, "inet" }, { F_ERRNO, "EPERM" } } },
	{ "escape", "a 32-bit call", STEP_INT80, WIRE_ESCAPE, .host = true, .field = ESCAPE_IS("foreign_abi") },
	{ "escape", "a mount", STEP_MOUNT, WIRE_ESCAPE, .field = ESCAPE_IS("mount") },
	{ "escape", "a change of the mount tree", STEP_MOUNT, WIRE_MOUNT, .flags = 0 },
	{ "metadata", "a metadata service sought over IPv4", STEP_METADATA4, WIRE_ESCAPE, .field = { { F_ESCAPE_TYPE, "metadata" }, { F_ESCAPE_DETAIL, "169.254.169.254:80" } } },
	{ "metadata", "a metadata service sought over IPv6", STEP_METADATA6, WIRE_ESCAPE, .host = true, .field = { { F_ESCAPE_TYPE, "metadata" }, { F_ESCAPE_DETAIL, "[fd00:ec2::254]:80" } } },
	{ "prevent", "a connect that is refused", STEP_DENY_CONNECT, WIRE_NET_CONNECT, WIRE_F_DENIED, .host = false },
	{ "prevent", "a symbolic link that is refused", STEP_DENY_FILE, WIRE_FILE_LINK, WIRE_F_DENIED, .host = false },
	{ "metadata", "a datagram to a metadata service", STEP_METADATA_SEND, WIRE_ESCAPE, .field = { { F_ESCAPE_TYPE, "metadata" }, { F_ESCAPE_DETAIL, "169.254.169.254:81" } } },
};
/* clang-format on */

struct selftest {
	struct capture *capture;
	struct decoder *decoder;
	struct arena arena;
	bool seen[ARRAY_SIZE(expects)];
	struct selftest_page *page;
};

/* ---- reading ---- */

static bool field_is(const struct event *ev, enum field_id id, const char *text)
{
	return event_has(ev, id) && str_eqz(ev->v[id].s, text);
}

static bool is_it(const struct expect *x, const struct event *ev)
{
	if (ev->kind != x->kind || (ev->hdr.flags & (x->flags | x->clear)) != x->flags)
		return false;
	if (x->port && (!event_has(ev, F_NET_DST_PORT) || ev->v[F_NET_DST_PORT].u != x->port))
		return false;
	for (size_t i = 0; i < TEXT_MAX; i++)
		if (x->field[i].text && !field_is(ev, x->field[i].id, x->field[i].text))
			return false;
	return true;
}

static void look(struct selftest *t, const struct event *ev)
{
	if (ev->hdr.sandbox != SELFTEST_ID)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(expects); i++)
		t->seen[i] |= is_it(&expects[i], ev);
}

static int take(void *arg, const void *rec, size_t len)
{
	struct selftest *t = arg;
	struct event ev;
	int r;

	arena_reset(&t->arena);
	for (r = decoder_feed(t->decoder, rec, len, &t->arena, &ev); r > 0;
	     r = decoder_more(t->decoder, &t->arena, &ev))
		look(t, &ev);
	return r < 0 ? r : 0;
}

/* Done, and not seen yet? */
static bool is_missing(const struct selftest *t, size_t i)
{
	return !t->seen[i] && t->page->done[expects[i].step] == 1;
}

static bool all_seen(const struct selftest *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(expects); i++)
		if (is_missing(t, i))
			return false;
	return true;
}

/* Until the process has ended and all is seen; what its sockets and io_uring leave comes a little later. */
static int watch_it(struct selftest *t, int pidfd)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ACT_LIMIT_NS, now;
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	bool ended = false;
	size_t held;
	int r;

	for (;;) {
		r = capture_drain(t->capture, false, take, t, &held);
		now = clock_ns(CLOCK_MONOTONIC);
		if (r < 0 || now > end)
			return r < 0 ? r : ended ? 0 : -ETIMEDOUT;
		if (ended && !held && all_seen(t))
			return 0;
		poll(&p, 1, 1);
		if (!ended && p.revents) {
			ended = true;
			end = now + LATE_LIMIT_NS;
			p.fd = -1;
		}
	}
}

/* ---- the scratch sandbox ---- */

/* A program that only ends. Its file has no name and belongs to nobody. */
static int make_program(void){ static const struct { Elf64_Ehdr e;
Elf64_Phdr p;
uint8_t code[12];
}
elf = {
	.e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT },
	       .e_type = ET_EXEC,
	       .e_version = EV_CURRENT,
	       .e_phoff = sizeof(Elf64_Ehdr),
	       .e_ehsize = sizeof(Elf64_Ehdr),
	       .e_phentsize = sizeof(Elf64_Phdr),
	       .e_phnum = 1,
	       .e_entry = 0x400000 + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
#if defined(__x86_64__)
	       .e_machine = EM_X86_64 },
	/* exit_group(0) */
	.code = { 0xb8, 0xe7, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05 },
#else
	       .e_machine = EM_AARCH64 },
	.code = { 0xc8, 0x0b, 0x80, 0xd2, 0, 0, 0x80, 0xd2, 0x01, 0, 0, 0xd4 },
#endif
	.p = { .p_type = PT_LOAD,
	       .p_flags = PF_R | PF_X,
	       .p_vaddr = 0x400000,
	       .p_filesz = sizeof(elf),
	       .p_memsz = sizeof(elf),
	       .p_align = 4096 },
};
auto_close int fd = memfd_create("warder-selftest", MFD_CLOEXEC | 0x10 /* MFD_EXEC, 6.3 */);

if (fd < 0)
	fd = memfd_create("warder-selftest", MFD_CLOEXEC);
if (fd < 0 || fd_write_all(fd, &elf, sizeof(elf)) < 0)
	return -1;
return take_fd(fd);
}

/* A file system that is mounted nowhere, and gone with its last descriptor. */
static int make_dir(void)
{
	auto_close int fs = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", "1m", 0) < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
}

static int start(pid_t *ret_pid, int *ret_pidfd, int cgroup_fd, const struct selftest_job *job,
		 struct err *err)
{
	int pidfd = -1;
	struct clone_args args = { .flags = CLONE_INTO_CGROUP | CLONE_PIDFD,
				   .exit_signal = SIGCHLD,
				   .pidfd = (uintptr_t)&pidfd,
				   .cgroup = (uint64_t)cgroup_fd };
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return err_set(err, errno, "a process in the scratch sandbox: %m");
	if (pid == 0)
		selftest_act(job);
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

static const struct capture_family_state *find_family(const struct capture *c, const char *name)
{
	for (size_t i = 0; i < c->families_n; i++)
		if (!strcmp(c->families[i].name, name))
			return &c->families[i];
	return NULL;
}

/* Where the kernel side refuses things, it has to show that it does. */
static int forbid(struct selftest *t, struct sandbox_cfg *cfg, struct selftest_job *job,
		  struct err *err)
{
	const struct capture_family_state *f = find_family(t->capture, "prevent");
	struct enforce_entry v[] = {
		{ .id = 1,
		  .verdict = ENFORCE_DENY,
		  .by = ENFORCE_BY_ADDR,
		  .addr = { .family = AF_INET, .bits = 32 } },
		{ .id = 2,
		  .verdict = ENFORCE_DENY,
		  .by = ENFORCE_BY_KIND,
		  .kinds = ENFORCE_KIND(WIRE_FILE_LINK) },
	};
	int r;

	if (!f)
		return 0;
	inet_pton(AF_INET, SELFTEST_DENIED_IP, v[0].addr.ip);
	job->denies = true;
	job->denies_files = !strcmp(f->tier, "full");
	r = capture_enforce_load(t->capture, SELFTEST_SET, v, job->denies_files ? 2 : 1, err);
	if (r == 0)
		cfg->enforce = SELFTEST_SET;
	return r;
}

static int act_and_watch(struct selftest *t, const struct selftest_group *g,
			 struct selftest_job *job, struct err *err)
{
	struct sandbox_cfg cfg = { .id = SELFTEST_ID, .flags = SANDBOX_F_WATCH };
	auto_close int pidfd = -1;
	pid_t pid = -1;
	int r;

	r = forbid(t, &cfg, job, err);
	if (r == 0)
		r = capture_watch(t->capture, g->leaf, &cfg, err);
	if (r < 0) {
		capture_enforce_clear(t->capture, SELFTEST_SET);
		return r;
	}
	r = start(&pid, &pidfd, g->leaf, job, err);
	if (r == 0) {
		r = watch_it(t, pidfd);
		if (r < 0)
			err_set(err, r, "the scratch sandbox: %s", strerror(-r));
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	capture_unwatch(t->capture, g->leaf);
	capture_enforce_clear(t->capture, SELFTEST_SET);
	return r;
}

static int run(struct selftest *t, bool all, struct err *err)
{
	auto_close int file = memfd_create("warder-selftest", MFD_CLOEXEC);
	auto_close int program = make_program();
	auto_close int dir = make_dir();
	auto_close int passed = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct selftest_group g;
	struct selftest_job job = { .page = t->page,
				    .all = all,
				    .file = file,
				    .passed = passed,
				    .dir = dir,
				    .program = program };
	size_t held;
	int r;

	if (file < 0 || dir < 0)
		return err_set(err, file < 0 ? errno : -dir, "self-test: a file in memory: %m");
	r = selftest_group_open(&g, all, err);
	if (r < 0)
		return err_wrap(err, r, "self-test");
	job.outside = g.outside;
	job.tasks = g.limited_tasks;
	r = act_and_watch(t, &g, &job, err);
	selftest_group_close(&g);
	if (r < 0)
		return err_wrap(err, r, "self-test");
	/* Nothing of this is for whoever reads next. */
	r = capture_drain(t->capture, true, take, t, &held);
	return r < 0 ? err_set(err, r, "self-test: %s", strerror(-r)) : 0;
}

/* ---- the verdict ---- */

static void judge(const struct selftest *t, size_t i, bool all, struct capture_test *ret)
{
	const struct expect *x = &expects[i];
	int done = t->page->done[x->step];
	bool asked = all || x->step < STEP_FIRST_SLOW;

	*ret = (struct capture_test){ .family = x->family, .what = x->what };
	if (t->seen[i])
		return;
	ret->seen = CAPTURE_UNTRIED;
	if (!asked) {
		snprintf(ret->why, sizeof(ret->why), "not tried: warder doctor does");
	} else if (done == 1) {
		ret->seen = CAPTURE_UNSEEN;
		snprintf(ret->why, sizeof(ret->why), "was done and no event came");
	} else if (done == -EBADE) {
		ret->seen = CAPTURE_UNSEEN;
		snprintf(ret->why, sizeof(ret->why), "was not refused");
	} else if (x->step == STEP_DENY_FILE && done == -ENOTSUP) {
		snprintf(ret->why, sizeof(ret->why), "not in this tier: killed, not prevented");
	} else if (x->host || (x->step == STEP_OOM && done == -ENOTSUP)) {
		snprintf(ret->why, sizeof(ret->why), "not on this host: %s", strerror(-done));
	} else {
		ret->seen = CAPTURE_UNSEEN;
		snprintf(ret->why, sizeof(ret->why), "could not be tried: %s",
			 done ? strerror(-done) : "the scratch sandbox did not come to it");
	}
}

/* A family that was refused when it was chosen has its own reason already. */
static void blame(struct capture *c, const struct capture_test *test)
{
	for (size_t i = 0; i < c->families_n; i++) {
		struct capture_family_state *f = &c->families[i];

		if (strcmp(f->name, test->family) || !f->ok)
			continue;
		f->ok = false;
		snprintf(f->detail, sizeof(f->detail), "self-test: %s %s", test->what, test->why);
	}
}

static void blame_all(struct capture *c, const char *why)
{
	for (size_t i = 0; i < c->families_n; i++) {
		if (!c->families[i].ok)
			continue;
		c->families[i].ok = false;
		snprintf(c->families[i].detail, sizeof(c->families[i].detail), "%.159s", why);
	}
}

int capture_selftest(struct capture *c, bool all, struct capture_test *rows, size_t max,
		     struct err *err)
{
	struct selftest t = { .capture = c };
	struct err why = { 0 };
	size_t n = 0;
	int r;

	t.page = mmap(NULL, sizeof(*t.page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	r = t.page == MAP_FAILED ? -ENOMEM : decoder_new(&t.decoder);
	if (r < 0) {
		err_set(&why, r, "self-test: out of memory");
	} else {
		arena_init(&t.arena, ARENA_BYTES);
		r = run(&t, all, &why);
		arena_done(&t.arena);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(expects); i++) {
		struct capture_test row;

		if (!find_family(c, expects[i].family))
			continue;
		judge(&t, i, all, &row);
		if (row.seen == CAPTURE_UNSEEN)
			blame(c, &row);
		if (row.seen == CAPTURE_UNSEEN && expects[i].step == STEP_SECCOMP)
			*(expects[i].kind == WIRE_NET_SOCKET ? &c->sockets_unseen
							     : &c->refused_unseen) = true;
		if (n < max)
			rows[n++] = row;
	}
	decoder_free(t.decoder);
	if (t.page != MAP_FAILED)
		munmap(t.page, sizeof(*t.page));
	if (r == 0)
		return (int)n;
	blame_all(c, err_text(&why));
	return err_set(err, r, "%s", err_text(&why));
}
