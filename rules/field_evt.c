// SPDX-License-Identifier: Apache-2.0
/* Falco's evt.* out of our events: a kind stands for the system calls that lead to it. */
#include "rules/field_get.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define UNUSED(x) ((void)(x))

#define CALLS(kind, ...)                                                                    \
	{                                                                                   \
		kind, (const char *const[]){ __VA_ARGS__ },                                 \
			sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *) \
	}

/* The first one stands in when the event does not name its call, or names one that is not here
 * (io_uring_enter: a rule about openat must see an open through io_uring too). */
static const struct kind_calls calls[] = {
	CALLS(WIRE_EXEC, "execve", "execveat"),
	CALLS(WIRE_FORK, "clone", "clone3", "fork", "vfork"),
	CALLS(WIRE_EXIT, "procexit"),
	CALLS(WIRE_FILE_OPEN, "openat", "open", "openat2", "creat", "open_by_handle_at"),
	CALLS(WIRE_FILE_WRITE, "write", "pwrite64", "writev", "pwritev", "pwritev2", "sendfile",
	      "splice", "copy_file_range"),
	CALLS(WIRE_FILE_MKNOD, "mknodat", "mknod"),
	CALLS(WIRE_FILE_MMAP, "mmap"),
	CALLS(WIRE_FILE_RENAME, "renameat2", "rename", "renameat"),
	CALLS(WIRE_FILE_DELETE, "unlinkat", "unlink", "rmdir"),
	CALLS(WIRE_FILE_LINK, "linkat", "link", "symlink", "symlinkat"),
	CALLS(WIRE_FILE_ATTR, "fchmodat", "chmod", "fchmod", "chown", "fchown", "lchown",
	      "fchownat", "setxattr", "truncate", "ftruncate"),
	CALLS(WIRE_FILE_MKDIR, "mkdirat", "mkdir"),
	CALLS(WIRE_MOUNT, "mount", "umount", "umount2"),
	CALLS(WIRE_NET_CONNECT, "connect"),
	CALLS(WIRE_NET_SOCKET, "socket"),
	CALLS(WIRE_NET_BIND, "bind"),
	CALLS(WIRE_NET_LISTEN, "listen"),
	CALLS(WIRE_NET_ACCEPT, "accept4", "accept"),
	CALLS(WIRE_NET_SEND, "sendto", "sendmsg", "sendmmsg"),
	CALLS(WIRE_NET_CLOSE, "close"),
	CALLS(WIRE_SIGNAL, "kill", "tkill", "tgkill"),
	CALLS(WIRE_ESCAPE, "escape", "setns", "unshare", "mount", "umount", "umount2", "pivot_root",
	      "chroot", "ptrace", "bpf", "init_module", "finit_module", "delete_module",
	      "open_by_handle_at", "process_vm_readv", "process_vm_writev", "keyctl", "add_key",
	      "request_key", "io_uring_setup", "perf_event_open", "userfaultfd", "clone", "clone3",
	      "kexec_load", "reboot", "swapon", "personality", "pidfd_getfd", "mknod", "mknodat",
	      "socket", "seccomp", "quotactl", "setuid", "setresuid", "capset"),
};

const struct kind_calls *kind_calls_of(uint16_t kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].kind == kind)
			return &calls[i];
	return NULL;
}

/* An escape names its call in most cases; its type names one where it does not. */
static struct str escape_call(const struct event *ev)
{
	static const struct {
		const char *type, *call;
	} map[] = { { "module", "init_module" },
		    { "process_vm", "process_vm_readv" },
		    { "io_uring", "io_uring_setup" },
		    { "socket_family", "socket" },
		    { "clone_ns", "clone" },
		    { "kexec", "kexec_load" },
		    { "swap", "swapon" },
		    { "umount", "umount2" } };
	struct str t = event_str(ev, F_ESCAPE_TYPE);

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (str_eqz(t, map[i].type))
			return str_from(map[i].call);
	return t.n ? t : STR("escape");
}

void get_evt_type(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	const struct kind_calls *c = kind_calls_of((uint16_t)ev->kind);
	struct str call;

	UNUSED(a);
	if (!c)
		return;
	call = event_str(ev, F_SYSCALL);
	if (c->n > 1 && call.n)
		for (size_t i = 0; i < c->n; i++)
			if (str_eqz(call, c->call[i])) {
				val_str(v, call);
				return;
			}
	if (ev->kind == WIRE_ESCAPE)
		val_str(v, escape_call(ev));
	else if (ev->kind == WIRE_FILE_LINK && str_eqz(event_str(ev, F_FILE_OP), "symbolic"))
		val_strz(v, "symlinkat");
	else
		val_strz(v, c->call[0]);
}

/* From 1: a placeholder macro of Falco's files relies on "evt.num=0" being never true. */
void get_evt_num(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	val_u64(v, event_u64(e->ev, F_SEQ) + 1);
}

void get_evt_source(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(e);
	UNUSED(a);
	val_strz(v, "syscall");
}

void get_evt_dir(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(e);
	UNUSED(a);
	val_strz(v, "<");
}

/* ---- results ---- */

static bool is_failed(const struct event *ev)
{
	struct str o = event_str(ev, F_OUTCOME);

	return str_eqz(o, "failure") || str_eqz(o, "denied");
}

void get_evt_res(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;

	UNUSED(a);
	if (event_has(ev, F_ERRNO))
		val_str(v, ev->v[F_ERRNO].s);
	else if (str_eqz(event_str(ev, F_OUTCOME), "pending"))
		val_strz(v, "EINPROGRESS");
	else if (is_failed(ev))
		val_strz(v, "EPERM");
	else
		val_strz(v, "SUCCESS");
}

static int64_t errno_of(struct str name)
{
	static const struct {
		const char *name;
		int no;
	} map[] = { { "EPERM", EPERM },
		    { "ENOENT", ENOENT },
		    { "EINTR", EINTR },
		    { "EIO", EIO },
		    { "EBADF", EBADF },
		    { "EAGAIN", EAGAIN },
		    { "ENOMEM", ENOMEM },
		    { "EACCES", EACCES },
		    { "EBUSY", EBUSY },
		    { "EEXIST", EEXIST },
		    { "ENOTDIR", ENOTDIR },
		    { "EISDIR", EISDIR },
		    { "EINVAL", EINVAL },
		    { "EROFS", EROFS },
		    { "ENOSYS", ENOSYS },
		    { "ELOOP", ELOOP },
		    { "ENETUNREACH", ENETUNREACH },
		    { "EHOSTUNREACH", EHOSTUNREACH },
		    { "ECONNREFUSED", ECONNREFUSED },
		    { "ETIMEDOUT", ETIMEDOUT },
		    { "EINPROGRESS", EINPROGRESS },
		    { "EADDRINUSE", EADDRINUSE },
		    { "EAFNOSUPPORT", EAFNOSUPPORT } };

	for (size_t i = 0; i < ARRAY_SIZE(map); i++)
		if (str_eqz(name, map[i].name))
			return map[i].no;
	return 1;
}

void get_evt_rawres(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	struct val res = { 0 };

	get_evt_res(e, a, &res);
	if (!str_eqz(res.s, "SUCCESS"))
		val_i64(v, -errno_of(res.s));
	else if (ev->kind == WIRE_FILE_OPEN && event_has(ev, F_FILE_FD))
		val_i64(v, ev->v[F_FILE_FD].i);
	else
		val_i64(v, 0);
}

void get_evt_failed(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	val_u64(v, is_failed(e->ev));
}

/* ---- arguments ---- */

static bool has_flag(const struct event *ev, const char *name)
{
	if (!event_has(ev, F_FILE_FLAGS))
		return false;
	for (size_t i = 0; i < ev->v[F_FILE_FLAGS].list.n; i++)
		if (str_eqz(ev->v[F_FILE_FLAGS].list.v[i], name))
			return true;
	return false;
}

void get_open_read(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;

	UNUSED(a);
	if (ev->kind != WIRE_FILE_OPEN)
		return;
	val_u64(v,
		has_flag(ev, "O_RDONLY") || has_flag(ev, "O_RDWR") || !event_u64(ev, F_FILE_WRITE));
}

void get_open_exec(struct eval *e, const struct access *a, struct val *v)
{
	UNUSED(a);
	if (e->ev->kind == WIRE_FILE_OPEN)
		val_u64(v,
			event_u64(e->ev, F_FILE_CREATED) && (event_u64(e->ev, F_FILE_MODE) & 0111));
}

void get_arg_flags(struct eval *e, const struct access *a, struct val *v)
{
	static const struct str exec_flags[] = {
		{ "EXE_UPPER_LAYER", 15 },
		{ "EXE_FROM_MEMFD", 14 },
	};
	const struct event *ev = e->ev;

	UNUSED(a);
	if (ev->kind == WIRE_EXEC) {
		bool upper = event_u64(ev, F_PROC_DROPPED), memfd = event_u64(ev, F_PROC_MEMFD);

		if (upper || memfd)
			val_list(v, upper ? exec_flags : exec_flags + 1,
				 (size_t)upper + (size_t)memfd, sizeof(struct str), V_STR);
	} else if (event_has(ev, F_FILE_FLAGS)) {
		val_list(v, ev->v[F_FILE_FLAGS].list.v, ev->v[F_FILE_FLAGS].list.n,
			 sizeof(struct str), V_STR);
	}
}

void get_arg_mode(struct eval *e, const struct access *a, struct val *v)
{
	static const struct {
		unsigned bit;
		const char *name;
	} bits[] = { { S_IXOTH, "S_IXOTH" }, { S_IWOTH, "S_IWOTH" }, { S_IROTH, "S_IROTH" },
		     { S_IXGRP, "S_IXGRP" }, { S_IWGRP, "S_IWGRP" }, { S_IRGRP, "S_IRGRP" },
		     { S_IXUSR, "S_IXUSR" }, { S_IWUSR, "S_IWUSR" }, { S_IRUSR, "S_IRUSR" },
		     { S_ISVTX, "S_ISVTX" }, { S_ISGID, "S_ISGID" }, { S_ISUID, "S_ISUID" } };
	size_t room = 160, n = 0;
	char *p;

	UNUSED(a);
	if (!event_has(e->ev, F_FILE_MODE))
		return;
	p = eval_scratch(e, room);
	if (!p)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		if (e->ev->v[F_FILE_MODE].u & bits[i].bit)
			n += (size_t)snprintf(p + n, room - n, "%s%s", n ? "|" : "", bits[i].name);
	val_str(v, (struct str){ p, n });
}

struct num_name {
	uint64_t n;
	const char *name;
};

static void arg0_name(const struct event *ev, const char *type, const struct num_name *map,
		      size_t n, struct val *v)
{
	if (!event_has(ev, F_ESCAPE_ARG0) || !str_eqz(event_str(ev, F_ESCAPE_TYPE), type))
		return;
	for (size_t i = 0; i < n; i++)
		if ((ev->v[F_ESCAPE_ARG0].u & 0xffffffff) == map[i].n) {
			val_strz(v, map[i].name);
			return;
		}
}

/* include/uapi/linux/ptrace.h */
void get_arg_request(struct eval *e, const struct access *a, struct val *v)
{
	static const struct num_name map[] = {
		{ 0, "PTRACE_TRACEME" },	{ 1, "PTRACE_PEEKTEXT" },
		{ 2, "PTRACE_PEEKDATA" },	{ 3, "PTRACE_PEEKUSR" },
		{ 4, "PTRACE_POKETEXT" },	{ 5, "PTRACE_POKEDATA" },
		{ 6, "PTRACE_POKEUSR" },	{ 7, "PTRACE_CONT" },
		{ 8, "PTRACE_KILL" },		{ 9, "PTRACE_SINGLESTEP" },
		{ 12, "PTRACE_GETREGS" },	{ 13, "PTRACE_SETREGS" },
		{ 14, "PTRACE_GETFPREGS" },	{ 15, "PTRACE_SETFPREGS" },
		{ 16, "PTRACE_ATTACH" },	{ 17, "PTRACE_DETACH" },
		{ 24, "PTRACE_SYSCALL" },	{ 0x4200, "PTRACE_SETOPTIONS" },
		{ 0x4204, "PTRACE_GETREGSET" }, { 0x4205, "PTRACE_SETREGSET" },
		{ 0x4206, "PTRACE_SEIZE" },	{ 0x4207, "PTRACE_INTERRUPT" },
	};

	UNUSED(a);
	arg0_name(e->ev, "ptrace", map, ARRAY_SIZE(map), v);
}

void get_arg_domain(struct eval *e, const struct access *a, struct val *v)
{
	static const struct num_name map[] = {
		{ 16, "AF_NETLINK" }, { 17, "AF_PACKET" },    { 21, "AF_RDS" }, { 29, "AF_CAN" },
		{ 30, "AF_TIPC" },    { 31, "AF_BLUETOOTH" }, { 38, "AF_ALG" }, { 39, "AF_NFC" },
		{ 40, "AF_VSOCK" },   { 44, "AF_XDP" },
	};

	UNUSED(a);
	arg0_name(e->ev, "socket_family", map, ARRAY_SIZE(map), v);
}

void get_arg_bpf_cmd(struct eval *e, const struct access *a, struct val *v)
{
	static const struct num_name map[] = {
		{ 0, "BPF_MAP_CREATE" },      { 1, "BPF_MAP_LOOKUP_ELEM" },
		{ 2, "BPF_MAP_UPDATE_ELEM" }, { 5, "BPF_PROG_LOAD" },
		{ 6, "BPF_OBJ_PIN" },	      { 7, "BPF_OBJ_GET" },
		{ 8, "BPF_PROG_ATTACH" },     { 28, "BPF_LINK_CREATE" },
	};

	UNUSED(a);
	arg0_name(e->ev, "bpf", map, ARRAY_SIZE(map), v);
}

void get_evt_args(struct eval *e, const struct access *a, struct val *v)
{
	const struct event *ev = e->ev;
	struct str path = event_str(ev, F_FILE_PATH), old = event_str(ev, F_FILE_OLD_PATH);
	struct str detail = event_str(ev, F_ESCAPE_DETAIL);
	size_t room = path.n + old.n + detail.n + 64, n = 0;
	char *p;

	UNUSED(a);
	if (!path.n && !old.n && !detail.n)
		return;
	p = eval_scratch(e, room);
	if (!p)
		return;
	if (old.n)
		n += (size_t)snprintf(p, room, "oldpath=%.*s ", (int)old.n, old.p);
	if (path.n)
		n += (size_t)snprintf(p + n, room - n, "path=%.*s ", (int)path.n, path.p);
	if (detail.n)
		n += (size_t)snprintf(p + n, room - n, "detail=%.*s ", (int)detail.n, detail.p);
	val_str(v, (struct str){ p, n ? n - 1 : 0 });
}
