/* SPDX-License-Identifier: Apache-2.0 */
/* What this kernel gives, found by doing it: load a few instructions, attach them, make them fire, look
 * whether they did. Versions lie (back-ports), and an LSM program loads and attaches on kernels where
 * it never runs. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"

#define PROBE_PROG "warder_probe"

struct probe_ctx {
	struct btf *btf;
	char v2[256]; /* where cgroup v2 is mounted; "" = nowhere */
	bool v2_hybrid;
	int cgroup_fd; /* a cgroup of our own, -1 = none */
	char cgroup[320];
	struct capture_feature *row;
};

#define INSN(op, d, s, o, i) \
	((struct bpf_insn){ .code = (op), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV_IMM(d, i)	INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define MOV_REG(d, s)	INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define CALL(f)		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT()		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define STORE_IMM(d, i) INSN(BPF_ST | BPF_MEM | BPF_W, d, 0, 0, i)
#define MAP_VALUE(d, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_VALUE, 0, fd), INSN(0, 0, 0, 0, 0)
#define MAP_FD(d, fd) \
	INSN(BPF_LD | BPF_DW | BPF_IMM, d, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)

static bool say(struct probe_ctx *x, bool ok, const char *text)
{
	snprintf(x->row->detail, sizeof(x->row->detail), "%s", text);
	return ok;
}

static bool say_errno(struct probe_ctx *x, const char *what, int e, const char *help)
{
	if (e == EPERM && geteuid() != 0)
		return say(x, false, "needs root to find out");
	snprintf(x->row->detail, sizeof(x->row->detail), "%s: %s; %s", what, strerror(e), help);
	return false;
}

/* ---- tracing programs ---- */

static int btf_id(struct probe_ctx *x, const char *name, uint32_t kind)
{
	return x->btf ? btf__find_by_name_kind(x->btf, name, kind) : -ENOENT;
}

static int load_tracing(enum bpf_prog_type type, enum bpf_attach_type attach, int id,
			const struct bpf_insn *insns, size_t n)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach,
		    .attach_btf_id = (uint32_t)id);
	int fd;

	if (id < 0)
		return -ENOENT;
	fd = bpf_prog_load(type, PROBE_PROG, "GPL", insns, n, &opts);
	return fd < 0 ? -errno : fd;
}

static void act(void)
{
	auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)syscall(SYS_getppid);
	(void)fd;
}

/* Load, attach, act: 1 = it fired, 0 = it did not, else -errno of the step that *ret_step names. */
static int fires(enum bpf_prog_type type, enum bpf_attach_type attach, int id,
		 const char **ret_step)
{
	LIBBPF_OPTS(bpf_map_create_opts, mopts, .map_flags = BPF_F_MMAPABLE);
	auto_close int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, PROBE_PROG, 4, 8, 1, &mopts);
	auto_close int prog = -1;
	auto_close int link = -1;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	volatile uint32_t *fired;
	int r;

	*ret_step = "map";
	if (map < 0)
		return -errno;
	fired = mmap(NULL, page, PROT_READ, MAP_SHARED, map, 0);
	if (fired == MAP_FAILED)
		return -errno;
	struct bpf_insn insns[] = { MAP_VALUE(1, map), STORE_IMM(1, 1), MOV_IMM(0, 0), EXIT() };

	*ret_step = "load";
	prog = r = load_tracing(type, attach, id, insns, ARRAY_SIZE(insns));
	if (r >= 0) {
		*ret_step = "attach";
		link = r = bpf_raw_tracepoint_open(NULL, prog);
		if (r < 0)
			r = -errno;
	}
	if (r >= 0) {
		act();
		r = fired[0] == 1;
	}
	munmap((void *)(uintptr_t)fired, page);
	return r;
}

static bool probe_fires(struct probe_ctx *x, enum bpf_prog_type type, enum bpf_attach_type attach,
			const char *target, uint32_t kind, const char *help)
{
	const char *step;
	int r = fires(type, attach, btf_id(x, target, kind), &step);

	if (r > 0)
		return say(x, true, "loads, attaches and fires");
	if (r < 0)
		return say_errno(x, step, -r, help);
	snprintf(x->row->detail, sizeof(x->row->detail), "loads and attaches but never fires; %s",
		 help);
	return false;
}

static bool probe_tp_btf(struct probe_ctx *x)
{
	return probe_fires(x, BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP, "btf_trace_sys_exit",
			   BTF_KIND_TYPEDEF, "needs CONFIG_BPF_EVENTS, BTF and CAP_PERFMON");
}

static bool probe_fentry(struct probe_ctx *x)
{
	return probe_fires(x, BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, "security_file_open",
			   BTF_KIND_FUNC, "needs CONFIG_FUNCTION_TRACER; the portable tier works");
}

static bool probe_fmod_ret(struct probe_ctx *x)
{
	return probe_fires(x, BPF_PROG_TYPE_TRACING, BPF_MODIFY_RETURN, "security_file_open",
			   BTF_KIND_FUNC,
			   "without it files and exec are killed after the act, not prevented");
}

static bool probe_lsm(struct probe_ctx *x)
{
	return probe_fires(x, BPF_PROG_TYPE_LSM, BPF_LSM_MAC, "bpf_lsm_file_open", BTF_KIND_FUNC,
			   "needs CONFIG_BPF_LSM and lsm=...,bpf on the command line");
}

/* A program of the portable tier with one more helper: does the verifier take it? */
static bool probe_helper(struct probe_ctx *x, const struct bpf_insn *insns, size_t n,
			 const char *help)
{
	auto_close int fd =
		load_tracing(BPF_PROG_TYPE_TRACING, BPF_TRACE_RAW_TP,
			     btf_id(x, "btf_trace_sys_exit", BTF_KIND_TYPEDEF), insns, n);

	if (fd < 0)
		return say_errno(x, "load", -fd, help);
	return say(x, true, "accepted in tp_btf");
}

static bool probe_send_signal(struct probe_ctx *x)
{
	struct bpf_insn insns[] = { MOV_IMM(1, 0), CALL(BPF_FUNC_send_signal), MOV_IMM(0, 0),
				    EXIT() };

	return probe_helper(x, insns, ARRAY_SIZE(insns), "without it rules kill from user space");
}

static int storage_map(void)
{
	struct btf *btf = btf__new_empty();
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC);
	int id, fd;

	if (!btf)
		return -ENOMEM;
	id = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	if (id < 0 || btf__load_into_kernel(btf) < 0) {
		btf__free(btf);
		return -EINVAL;
	}
	opts.btf_fd = (uint32_t)btf__fd(btf);
	opts.btf_key_type_id = (uint32_t)id;
	opts.btf_value_type_id = (uint32_t)id;
	fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, PROBE_PROG, 4, 4, 0, &opts);
	if (fd < 0)
		fd = -errno;
	btf__free(btf);
	return fd;
}

static bool probe_task_storage(struct probe_ctx *x)
{
	auto_close int map = storage_map();

	if (map < 0)
		return say_errno(x, "map", -map, "needs Linux 5.12 or newer");
	struct bpf_insn insns[] = {
		CALL(BPF_FUNC_get_current_task_btf),
		MOV_REG(2, 0),
		MAP_FD(1, map),
		MOV_IMM(3, 0),
		MOV_IMM(4, BPF_LOCAL_STORAGE_GET_F_CREATE),
		CALL(BPF_FUNC_task_storage_get),
		MOV_IMM(0, 0),
		EXIT(),
	};

	return probe_helper(x, insns, ARRAY_SIZE(insns), "needs Linux 5.12 or newer");
}

static bool probe_bpf_loop(struct probe_ctx *x)
{
	int r = libbpf_probe_bpf_helper(BPF_PROG_TYPE_SOCKET_FILTER, BPF_FUNC_loop, NULL);

	return say(x, r == 1, r == 1 ? "found" : "needs Linux 5.17 or newer");
}

/* ---- maps ---- */

static bool probe_ringbuf(struct probe_ctx *x)
{
	auto_close int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, PROBE_PROG, 0, 0,
					   (uint32_t)sysconf(_SC_PAGESIZE), NULL);

	if (fd < 0)
		return say_errno(x, "map", errno, "needs Linux 5.8 or newer");
	return say(x, true, "found");
}

static bool probe_map_mmap(struct probe_ctx *x)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	auto_close int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, PROBE_PROG, 4, 8, 1, &opts);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t value = 42, key = 0;
	volatile uint64_t *p;
	bool ok;

	if (fd < 0)
		return say_errno(x, "map", errno, "needs Linux 5.5 or newer");
	p = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return say_errno(x, "mmap", errno, "needs Linux 5.5 or newer");
	ok = bpf_map_update_elem(fd, &key, &value, BPF_ANY) == 0 && *p == 42;
	munmap((void *)(uintptr_t)p, page);
	return say(x, ok,
		   ok ? "the engine reads counters and rings without privilege"
		      : "a mapped value does not follow the map");
}

/* ---- control groups ---- */

static bool probe_cgroup_v2(struct probe_ctx *x)
{
	if (!x->v2[0])
		return say(x, false, "not mounted: mount -t cgroup2 none /sys/fs/cgroup");
	snprintf(x->row->detail, sizeof(x->row->detail), "at %.100s%s", x->v2,
		 x->v2_hybrid ? " (hybrid: limits come from v1 controllers)" : "");
	return true;
}

static bool probe_cgroup_kill(struct probe_ctx *x)
{
	if (x->cgroup_fd < 0)
		return say(x, false, "no cgroup could be made to look; needs root and cgroup v2");
	if (faccessat(x->cgroup_fd, "cgroup.kill", W_OK, 0) < 0)
		return say(x, false, "needs Linux 5.14 or newer");
	return say(x, true, "found");
}

static bool probe_cgroup_prog(struct probe_ctx *x, enum bpf_prog_type type,
			      enum bpf_attach_type attach)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach);
	struct bpf_insn insns[] = { MOV_IMM(0, 1), EXIT() };
	auto_close int prog = bpf_prog_load(type, PROBE_PROG, "GPL", insns, 2, &opts);
	auto_close int link = -1;

	if (prog < 0)
		return say_errno(x, "load", errno, "needs CONFIG_CGROUP_BPF");
	if (x->cgroup_fd < 0)
		return say(x, false, "loads; no cgroup v2 to attach it to");
	link = bpf_link_create(prog, x->cgroup_fd, attach, NULL);
	if (link < 0)
		return say_errno(x, "attach", errno, "needs CONFIG_CGROUP_BPF and cgroup v2");
	return say(x, true, "loads and attaches");
}

static bool probe_connect4(struct probe_ctx *x)
{
	return probe_cgroup_prog(x, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT);
}

static bool probe_sendmsg4(struct probe_ctx *x)
{
	return probe_cgroup_prog(x, BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_SENDMSG);
}

static bool probe_skb(struct probe_ctx *x)
{
	return probe_cgroup_prog(x, BPF_PROG_TYPE_CGROUP_SKB, BPF_CGROUP_INET_EGRESS);
}

/* ---- the host ---- */

static bool probe_kernel(struct probe_ctx *x)
{
	struct utsname u;

	if (uname(&u) < 0)
		return say(x, false, "uname failed");
	snprintf(x->row->detail, sizeof(x->row->detail), "%.64s %.32s; tested from 6.1 on",
		 u.release, u.machine);
	return true;
}

static bool probe_root(struct probe_ctx *x)
{
	if (geteuid() != 0)
		return say(x, false,
			   "not root: run with sudo; what follows cannot be told for certain");
	return say(x, true, "effective user id 0");
}

static bool probe_btf(struct probe_ctx *x)
{
	if (x->btf)
		return say(x, true, "/sys/kernel/btf/vmlinux");
	return say(x, false, "no /sys/kernel/btf/vmlinux: needs CONFIG_DEBUG_INFO_BTF=y");
}

struct probe {
	const char *name;
	const char *what;
	bool required;
	bool (*run)(struct probe_ctx *x);
};

/* clang-format off */
static const struct probe probes[] = {
	{ "kernel",          "kernel release",                                    false, probe_kernel },
	{ "root",            "privilege to load programs",                        true,  probe_root },
	{ "btf",             "kernel type information: one object for all kernels", true, probe_btf },
	{ "ringbuf",         "ring buffers for records",                          true,  probe_ringbuf },
	{ "map_mmap",        "counters readable without privilege",               true,  probe_map_mmap },
	{ "tp_btf",          "typed tracepoints: system calls, exec, exit",       true,  probe_tp_btf },
	{ "task_storage",    "membership inherited from parent to child",         true,  probe_task_storage },
	{ "bpf_loop",        "path and argument walks",                           true,  probe_bpf_loop },
	{ "send_signal",     "kill from inside the kernel",                       false, probe_send_signal },
	{ "cgroup_v2",       "a control group for each sandbox",                  true,  probe_cgroup_v2 },
	{ "cgroup_kill",     "whole sandbox killed by one write",                 true,  probe_cgroup_kill },
	{ "cgroup_connect4", "connections, with the kernel's copy of the address", true, probe_connect4 },
	{ "cgroup_sendmsg4", "UDP datagrams",                                     true,  probe_sendmsg4 },
	{ "cgroup_skb",      "DNS packets",                                       true,  probe_skb },
	{ "fmod_ret",        "full tier: prevention in the kernel",               false, probe_fmod_ret },
	{ "fentry",          "full tier: no tax on other system calls",           false, probe_fentry },
	{ "lsm",             "BPF LSM hooks",                                     false, probe_lsm },
};
/* clang-format on */

static void find_v2(struct probe_ctx *x)
{
	auto_file FILE *f = fopen("/proc/self/mounts", "re");
	char line[1024], path[256], type[64];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %255s %63s", path, type) != 2)
			continue;
		if (strcmp(type, "cgroup2") == 0 && !x->v2[0])
			snprintf(x->v2, sizeof(x->v2), "%s", path);
		if (strcmp(type, "cgroup") == 0)
			x->v2_hybrid = true;
	}
}

static void make_cgroup(struct probe_ctx *x)
{
	x->cgroup_fd = -1;
	if (!x->v2[0])
		return;
	snprintf(x->cgroup, sizeof(x->cgroup), "%s/warder-doctor-%d", x->v2, getpid());
	if (mkdir(x->cgroup, 0755) < 0) {
		x->cgroup[0] = '\0';
		return;
	}
	x->cgroup_fd = open(x->cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

size_t capture_features(struct capture_feature *rows, size_t max)
{
	struct probe_ctx x = { .btf = NULL };
	size_t i;

	libbpf_log_begin(true);
	x.btf = btf__load_vmlinux_btf();
	find_v2(&x);
	make_cgroup(&x);
	for (i = 0; i < ARRAY_SIZE(probes) && i < max; i++) {
		x.row = &rows[i];
		memset(x.row, 0, sizeof(*x.row));
		x.row->name = probes[i].name;
		x.row->what = probes[i].what;
		x.row->required = probes[i].required;
		x.row->ok = probes[i].run(&x);
	}
	if (x.cgroup_fd >= 0)
		close(x.cgroup_fd);
	if (x.cgroup[0])
		rmdir(x.cgroup);
	btf__free(x.btf);
	libbpf_log_end();
	return i;
}
