// SPDX-License-Identifier: Apache-2.0
/* Ways to the end of a system call that need no tracepoint: what the kernel offers, attaching to many
 * functions at once, and making them fire. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "bpf/abi/maps.h"
#include "userspace/capture/hooks.h"
#include "userspace/capture/ktypes.h"

#define SYMS_MAX   512
#define SYM_LENGTH 48

static bool has_func(const struct hooks *h, const char *name)
{
	return ktypes_func(h->types, name) >= 0;
}

/* `return 0`, to ask whether this type of program is allowed at all. */
static int load_nothing(enum bpf_prog_type type, enum bpf_attach_type attach, int btf_id)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach,
		    .attach_btf_id = (uint32_t)btf_id);
	int fd = bpf_prog_load(type, "warder_probe", "GPL", insns, 2, &opts);

	return fd < 0 ? -errno : fd;
}

static void not_this(struct hooks *h, enum way way, const char *what, int e)
{
	h->may[way] = false;
	snprintf(h->why[way], sizeof(h->why[way]), "%s: %s", what, strerror(e));
}

/* A name that no kernel has: whoever can attach to many functions at all says that it is not there. */
static void probe_multi(struct hooks *h)
{
	auto_close int prog = load_nothing(BPF_PROG_TYPE_KPROBE, BPF_TRACE_KPROBE_MULTI, 0);
	const char *syms[] = { "warder_no_such_function" };
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	int fd;

	if (prog < 0) {
		not_this(h, WAY_MULTI, "kretprobe.multi", -prog);
		return;
	}
	opts.kprobe_multi.syms = syms;
	opts.kprobe_multi.cnt = 1;
	opts.kprobe_multi.flags = BPF_F_KPROBE_MULTI_RETURN;
	fd = bpf_link_create(prog, 0, BPF_TRACE_KPROBE_MULTI, &opts);
	if (fd >= 0)
		close(fd);
	else if (errno == EOPNOTSUPP)
		not_this(h, WAY_MULTI, "kretprobe.multi needs CONFIG_FPROBE", EOPNOTSUPP);
	else if (errno == EPERM)
		not_this(h, WAY_MULTI, "kretprobe.multi", EPERM);
}

static void probe_fexit(struct hooks *h)
{
	int id = ktypes_func(h->types, "x64_sys_call");
	auto_close int fd = -1;

	if (id < 0) {
		not_this(h, WAY_FEXIT, "fexit/x64_sys_call", ENOENT);
		return;
	}
	fd = load_nothing(BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT, id);
	if (fd < 0)
		not_this(h, WAY_FEXIT, "fexit/x64_sys_call", -fd);
}

static void probe_prevent(struct hooks *h)
{
	int id = ktypes_func(h->types, "security_file_open");
	auto_close int fd = -1;

	if (id >= 0)
		fd = load_nothing(BPF_PROG_TYPE_TRACING, BPF_MODIFY_RETURN, id);
	if (fd >= 0)
		return;
	h->may_prevent = false;
	snprintf(h->why_no_prevent, sizeof(h->why_no_prevent), "fmod_ret/security_file_open: %s",
		 strerror(id < 0 ? ENOENT : -fd));
}

void ways_probe(struct hooks *h)
{
	if (h->may_prevent)
		probe_prevent(h);
	if (h->may[WAY_MULTI])
		probe_multi(h);
	if (h->may[WAY_FEXIT])
		probe_fexit(h);
}

/* ---- kretprobe.multi ---- */

static const char *const names[] = {
#define CALL(name, ...)	  #name,
#define CALL64(name, ...) #name,
#include "bpf/abi/calls.def.h"
};

/* Entry points of 32-bit calls that have one of their own. */
static const char *const names32[] = {
#define CALL(name, ...)	  #name,
#define CALL32(name, ...) #name,
#include "bpf/abi/calls.def.h"
};

/* A kernel has so many return probes of one link under way at a time (four for each function and two
 * CPUs); whoever lets many threads wait in one of these must not use up those of the others. */
static bool can_block(const char *name)
{
	static const char *const list[] = { "open",	    "openat",  "openat2",  "creat",
					    "accept",	    "accept4", "connect",  "clone",
					    "clone3",	    "execve",  "execveat", "vfork",
					    "sendto",	    "sendmsg", "sendmmsg", "io_uring_enter",
					    "ia32_sys_call" };

	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* Where a cgroup program refuses a datagram and cannot send the signal itself (to 6.12), it is sent at the end of
 * the call. Nothing else is told of these here (in the portable tier more is), so they are looked at only for that. */
static bool is_send(const char *name)
{
	return strcmp(name, "sendto") == 0 || strcmp(name, "sendmsg") == 0 ||
	       strcmp(name, "sendmmsg") == 0;
}

struct syms {
	char text[SYMS_MAX][SYM_LENGTH];
	const char *p[SYMS_MAX];
	__u64 cookies[SYMS_MAX];
	uint32_t n;
};

static void add(const struct hooks *h, struct syms *s, const char *prefix, const char *name)
{
	if (s->n == SYMS_MAX)
		return;
	snprintf(s->text[s->n], SYM_LENGTH, "%s%s", prefix, name);
	if (!has_func(h, s->text[s->n]))
		return;
	s->cookies[s->n] = 0;
	s->p[s->n] = s->text[s->n];
	s->n++;
}

static void add_x32(const struct hooks *h, struct syms *s)
{
	uint32_t at = s->n;

	add(h, s, "", "x32_sys_call");
	if (s->n > at)
		s->cookies[at] = COOKIE_X32;
}

static void collect(const struct hooks *h, struct syms *s, bool blocking, bool sentences)
{
	bool all32 = has_func(h, "ia32_sys_call");

	s->n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (can_block(names[i]) == blocking && (sentences || !is_send(names[i])))
			add(h, s, "__x64_sys_", names[i]);
	if (blocking && sentences)
		add(h, s, "__x64_sys_", "io_uring_enter");
	if (blocking && all32)
		add(h, s, "", "ia32_sys_call");
	if (blocking)
		add_x32(h, s);
	for (size_t i = 0; !all32 && i < ARRAY_SIZE(names32); i++) {
		if (can_block(names32[i]) != blocking || (is_send(names32[i]) && !sentences))
			continue;
		add(h, s, "__ia32_sys_", names32[i]);
		add(h, s, "__ia32_compat_sys_", names32[i]);
	}
}

int ways_attach_multi(struct hooks *h, int prog_fd, bool sentences, struct err *err)
{
	auto_free struct syms *s = malloc(sizeof(*s));
	LIBBPF_OPTS(bpf_link_create_opts, opts);

	if (!s)
		return err_set(err, ENOMEM, "kretprobe.multi: out of memory");
	for (size_t i = MULTI_CALLS; i <= MULTI_BLOCKING; i++) {
		collect(h, s, i == MULTI_BLOCKING, sentences);
		opts.kprobe_multi.syms = s->p;
		opts.kprobe_multi.cookies = s->cookies;
		opts.kprobe_multi.cnt = s->n;
		opts.kprobe_multi.flags = BPF_F_KPROBE_MULTI_RETURN;
		h->multi[i] = bpf_link_create(prog_fd, 0, BPF_TRACE_KPROBE_MULTI, &opts);
		if (h->multi[i] < 0)
			return err_set(err, errno, "kretprobe.multi on %u functions: %m", s->n);
	}
	return 0;
}

int ways_attach_names(struct hooks *h, int prog_fd, struct err *err)
{
	static const char *const all[NAME_HOOK_COUNT] = {
#define NAME_HOOK_SYM(name, hook) [NAME_HOOK_##name] = "security_path_" #hook,
		NAME_HOOKS(NAME_HOOK_SYM)
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts);
	const char *syms[NAME_HOOK_COUNT];
	__u64 cookies[NAME_HOOK_COUNT];
	uint32_t n = 0;

	for (size_t i = 0; i < NAME_HOOK_COUNT; i++) {
		if (!has_func(h, all[i]))
			continue;
		syms[n] = all[i];
		cookies[n++] = i;
	}
	opts.kprobe_multi.syms = syms;
	opts.kprobe_multi.cookies = cookies;
	opts.kprobe_multi.cnt = n;
	h->multi[MULTI_NAMES] = bpf_link_create(prog_fd, 0, BPF_TRACE_KPROBE_MULTI, &opts);
	if (h->multi[MULTI_NAMES] < 0)
		return err_set(err, errno, "kprobe.multi on %u hooks: %m", n);
	return 0;
}

/* ---- making them fire ---- */

/* In a child: a filter stays for good, and where 32-bit calls are switched off one is the end. */
static void act(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_personality, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };

	prctl(PR_SET_DUMPABLE, 0);
	syscall(SYS_personality, 0xffffffffUL); /* only asks */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0)
		syscall(SYS_personality, 0xffffffffUL);
#if defined(__x86_64__)
	long r = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
#endif
}

void ways_trigger(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		act();
		_exit(0);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
}
