// SPDX-License-Identifier: Apache-2.0
/* Names that a condition may use. The schema's own fields come from event/fields.h; Falco's names
 * are rows here. A few names exist in both with different meanings (proc.exe): a rule that uses an
 * evt.* field speaks Falco, every other rule speaks the schema. */
#include "rules/field_get.h"

#include <pthread.h>
#include "userspace/base/option.h"

struct field_row native_fields[F_COUNT];

static enum rtype native_type(enum field_type t)
{
	switch (t) {
	case FT_U64:
	case FT_HEX:
		return RT_U64;
	case FT_I64:
		return RT_I64;
	case FT_BOOL:
		return RT_BOOL;
	case FT_TIME:
		return RT_TIME;
	case FT_IP:
		return RT_IP;
	default:
		return RT_STR;
	}
}

static void native_fill(void)
{
	/* Fields with few values: most events would still have to be run through most rules. */
	static const int low[] = { F_KIND,	 F_VANTAGE,    F_OUTCOME,   F_ERRNO,
				   F_SYSCALL,	 F_PROC_STDIN, F_FILE_TYPE, F_FILE_OP,
				   F_FILE_FLAGS, F_NET_FAMILY, F_NET_PROTO, F_DNS_TYPE,
				   F_DNS_RCODE,	 F_PROC_UID,   F_PROC_GID };

	for (int f = 0; f < F_COUNT; f++) {
		const struct field_def *d = &event_fields[f];
		struct field_row *r = &native_fields[f];

		*r = (struct field_row){ .name = d->name,
					 .type = native_type(d->type),
					 .fams = d->families,
					 .slot = f,
					 .get = get_slot,
					 .doc = d->doc };
		if (d->type == FT_STRLIST)
			r->flags = FR_LIST | FR_ARG;
		if (d->type == FT_ANCESTORS) {
			r->get = get_ancestor_exe;
			r->flags = FR_ANY | FR_ARG;
		}
		if (d->type == FT_ANSWERS) {
			r->get = get_answers;
			r->flags = FR_ANY;
		}
		if (f == F_KIND)
			r->flags |= FR_CONST;
		for (size_t i = 0; i < ARRAY_SIZE(low); i++)
			if (low[i] == f)
				r->flags |= FR_LOW;
	}
}

void native_fields_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, native_fill);
}

#define SLOT(name, type, fams, slot, doc)                \
	{                                                \
		name, type, 0, fams, slot, get_slot, doc \
	}
#define LOW(name, type, fams, slot, doc)                      \
	{                                                     \
		name, type, FR_LOW, fams, slot, get_slot, doc \
	}
#define VIRT(name, type, flags, fams, get, doc)       \
	{                                             \
		name, type, flags, fams, -1, get, doc \
	}
#define ABSENT(name, type)                                 \
	{                                                  \
		name, type, FR_ABSENT, 0, -1, get_none, "" \
	}
#define ABSENT_ARG(name, type)                                      \
	{                                                           \
		name, type, FR_ABSENT | FR_ARG, 0, -1, get_none, "" \
	}
#define SUBJ  FAM_SUBJECT
#define PROC  FAM_PROC
#define FILE_ FAM_FILE
#define NETD  (FAM_NET | FAM_DNS)

/* clang-format off */
const struct field_row falco_fields[] = {
	/* event */
	VIRT("evt.type", RT_STR, FR_LOW | FR_CONST, FAM_KERNEL, get_evt_type, "system call of the event"),
	VIRT("syscall.type", RT_STR, FR_LOW | FR_CONST, FAM_KERNEL, get_evt_type, "system call of the event"),
	VIRT("evt.num", RT_U64, FR_LOW, FAM_ALL, get_evt_num, "number of the event, from 1"),
	SLOT("evt.time", RT_TIME, FAM_ALL, F_TIME, "time of the event"),
	SLOT("evt.rawtime", RT_U64, FAM_ALL, F_TIME, "time of the event, ns"),
	SLOT("evt.time.iso8601", RT_TIME, FAM_ALL, F_TIME, "time of the event"),
	SLOT("evt.datetime", RT_TIME, FAM_ALL, F_TIME, "time of the event"),
	SLOT("evt.hostname", RT_STR, FAM_ALL, F_HOST, "name of the host"),
	VIRT("evt.source", RT_STR, FR_LOW | FR_CONST, FAM_ALL, get_evt_source, "syscall"),
	VIRT("evt.dir", RT_STR, FR_LOW | FR_CONST | FR_OLD, FAM_KERNEL, get_evt_dir, "always <"),
	VIRT("evt.res", RT_STR, FR_LOW, SUBJ, get_evt_res, "SUCCESS or the name of the error"),
	VIRT("evt.rawres", RT_I64, FR_LOW, SUBJ, get_evt_rawres, "result, negative errno on failure"),
	VIRT("evt.failed", RT_BOOL, 0, SUBJ, get_evt_failed, "the call failed"),
	SLOT("evt.is_open_write", RT_BOOL, FILE_, F_FILE_WRITE, "opened for writing"),
	VIRT("evt.is_open_read", RT_BOOL, 0, FILE_, get_open_read, "opened for reading"),
	SLOT("evt.is_open_create", RT_BOOL, FILE_, F_FILE_CREATED, "opened with O_CREAT"),
	VIRT("evt.is_open_exec", RT_BOOL, 0, FILE_, get_open_exec, "created with an execute bit"),
	VIRT("evt.arg.flags", RT_STR, FR_LOW | FR_ANY, PROC | FILE_, get_arg_flags, "open or exec flags"),
	SLOT("evt.arg.name", RT_STR, FILE_, F_FILE_PATH, "path of the call"),
	SLOT("evt.arg.path", RT_STR, FILE_, F_FILE_PATH, "path of the call"),
	SLOT("evt.arg.pathname", RT_STR, FILE_, F_FILE_PATH, "path of the call"),
	SLOT("evt.arg.filename", RT_STR, FILE_ | PROC, F_FILE_PATH, "path of the call"),
	SLOT("evt.arg.target", RT_STR, FILE_, F_FILE_OLD_PATH, "what a symlink points to"),
	SLOT("evt.arg.linkpath", RT_STR, FILE_, F_FILE_PATH, "path of a new symlink"),
	SLOT("evt.arg.oldpath", RT_STR, FILE_, F_FILE_OLD_PATH, "path before"),
	SLOT("evt.arg.newpath", RT_STR, FILE_, F_FILE_PATH, "path after"),
	VIRT("evt.arg.mode", RT_STR, FR_MEMO, FILE_, get_arg_mode, "mode by S_* names"),
	LOW("evt.arg.uid", RT_U64, FILE_, F_FILE_UID, "uid of the call"),
	SLOT("evt.arg.gid", RT_U64, FILE_, F_FILE_GID, "gid of the call"),
	VIRT("evt.arg.request", RT_STR, 0, FAM_ESCAPE, get_arg_request, "ptrace request"),
	VIRT("evt.arg.domain", RT_STR, 0, FAM_ESCAPE, get_arg_domain, "socket family AF_*"),
	VIRT("evt.arg.cmd", RT_STR, 0, FAM_ESCAPE, get_arg_bpf_cmd, "bpf command"),
	VIRT("evt.args", RT_STR, FR_MEMO, FAM_KERNEL, get_evt_args, "arguments of the call"),
	ABSENT_ARG("evt.arg", RT_STR), ABSENT("evt.buffer", RT_STR), ABSENT("evt.cpu", RT_U64),
	ABSENT("evt.category", RT_STR), ABSENT("evt.latency", RT_U64), ABSENT("evt.count", RT_U64),
	ABSENT("evt.info", RT_STR), ABSENT("evt.buflen", RT_U64), ABSENT("evt.is_io", RT_BOOL),
	ABSENT("evt.is_wait", RT_BOOL), ABSENT("evt.pluginname", RT_STR),
	ABSENT("evt.plugininfo", RT_STR), ABSENT("evt.asynctype", RT_STR),
	ABSENT("evt.reltime", RT_U64), ABSENT("evt.arg.data", RT_STR), ABSENT("evt.arg.fd", RT_I64),
	ABSENT("evt.arg.exe", RT_STR), ABSENT("evt.arg.env", RT_STR), ABSENT("evt.abspath", RT_STR),
	ABSENT("evt.arg.dev", RT_STR), ABSENT("evt.arg.type", RT_STR), ABSENT("evt.arg.pid", RT_I64),
	ABSENT("evt.arg.euid", RT_STR), ABSENT("evt.arg.filetype", RT_STR),

	/* process */
	SLOT("proc.name", RT_STR, SUBJ, F_PROC_COMM, "15-byte task name"),
	SLOT("proc.exepath", RT_STR, SUBJ, F_PROC_EXE, "resolved path of the executable"),
	VIRT("proc.exe", RT_STR, 0, SUBJ, get_argv0, "argv[0]"),
	VIRT("proc.argv0", RT_STR, 0, SUBJ, get_argv0, "argv[0], as the process chose it"),
	VIRT("proc.args", RT_STR, FR_MEMO | FR_ARG, SUBJ, get_args, "arguments after argv[0], joined"),
	VIRT("proc.cmdline", RT_STR, FR_MEMO, SUBJ, get_cmdline, "proc.name and the arguments"),
	VIRT("proc.exeline", RT_STR, FR_MEMO, SUBJ, get_exeline, "argv, joined"),
	VIRT("proc.cmdnargs", RT_U64, 0, SUBJ, get_nargs, "number of arguments after argv[0]"),
	VIRT("proc.cmdlenargs", RT_U64, 0, SUBJ, get_lenargs, "bytes of the arguments after argv[0]"),
	SLOT("proc.cwd", RT_STR, SUBJ, F_PROC_CWD, "working directory"),
	SLOT("proc.pid", RT_I64, SUBJ, F_PROC_PID, "process id on the host"),
	SLOT("proc.vpid", RT_I64, SUBJ, F_PROC_NSPID, "process id in the sandbox"),
	SLOT("proc.ppid", RT_I64, SUBJ, F_PROC_PPID, "parent's process id on the host"),
	SLOT("proc.pname", RT_STR, SUBJ, F_PROC_PCOMM, "task name of the parent"),
	SLOT("proc.pexepath", RT_STR, SUBJ, F_PROC_PEXE, "executable of the parent"),
	VIRT("proc.pexe", RT_STR, 0, SUBJ, get_pargv0, "argv[0] of the parent"),
	VIRT("proc.pcmdline", RT_STR, FR_MEMO, SUBJ, get_pcmdline, "command line of the parent"),
	VIRT("proc.aname", RT_STR, FR_ANY | FR_ARG, SUBJ, get_aname, "task names of the ancestors"),
	VIRT("proc.aexepath", RT_STR, FR_ANY | FR_ARG, SUBJ, get_aexepath, "executables of the ancestors"),
	VIRT("proc.aexe", RT_STR, FR_ANY | FR_ARG, SUBJ, get_aexepath, "executables of the ancestors"),
	VIRT("proc.apid", RT_U64, FR_ANY | FR_ARG, SUBJ, get_apid, "process ids of the ancestors"),
	VIRT("proc.tty", RT_U64, FR_LOW, SUBJ, get_tty, "terminal as a number, 0 = none"),
	SLOT("proc.is_exe_upper_layer", RT_BOOL, PROC, F_PROC_DROPPED, "executable was written in the sandbox"),
	SLOT("proc.is_exe_from_memfd", RT_BOOL, PROC, F_PROC_MEMFD, "executable is a memfd"),
	SLOT("proc.exe_ino", RT_U64, PROC, F_PROC_EXE_INO, "inode of the executable"),
	SLOT("proc.pid.ts", RT_U64, SUBJ, F_PROC_START, "start of the process"),
	VIRT("proc.duration", RT_U64, 0, SUBJ, get_duration, "ns since the process started"),
	SLOT("thread.tid", RT_I64, SUBJ, F_PROC_TID, "thread id on the host"),
	VIRT("thread.cap_effective", RT_STR, FR_MEMO, PROC, get_cap_effective, "effective capabilities by name"),
	VIRT("thread.cap_permitted", RT_STR, FR_MEMO, PROC, get_cap_permitted, "permitted capabilities by name"),
	ABSENT("thread.cap_inheritable", RT_STR), ABSENT("thread.vtid", RT_I64),
	ABSENT("thread.ismain", RT_BOOL), ABSENT("thread.cgroups", RT_STR),
	ABSENT_ARG("thread.cgroup", RT_STR), ABSENT("proc.sid", RT_I64), ABSENT("proc.vpgid", RT_I64),
	ABSENT("proc.sname", RT_STR), ABSENT("proc.sid.exe", RT_STR), ABSENT("proc.sid.exepath", RT_STR),
	ABSENT("proc.vpgid.name", RT_STR), ABSENT("proc.vpgid.exe", RT_STR),
	ABSENT("proc.vpgid.exepath", RT_STR), ABSENT("proc.pgid", RT_I64), ABSENT("proc.pgid.name", RT_STR),
	ABSENT_ARG("proc.env", RT_STR), ABSENT_ARG("proc.aenv", RT_STR), ABSENT("proc.ppid.duration", RT_U64),
	ABSENT("proc.ppid.ts", RT_U64), ABSENT("proc.pvpid", RT_I64), ABSENT("proc.loginshellid", RT_I64),
	ABSENT("proc.is_container_healthcheck", RT_BOOL), ABSENT("proc.is_sid_leader", RT_BOOL),
	ABSENT("proc.is_vpgid_leader", RT_BOOL), ABSENT("proc.is_pgid_leader", RT_BOOL),
	ABSENT("proc.is_exe_writable", RT_BOOL), ABSENT("proc.is_exe_lower_layer", RT_BOOL),
	SLOT("proc.exe_ino.ctime", RT_TIME, PROC, F_PROC_EXE_CTIME, "change of the executable's inode"),
	SLOT("proc.exe_ino.mtime", RT_TIME, PROC, F_PROC_EXE_MTIME, "change of the executable's content"),
	ABSENT("proc.exe_ino.ctime_duration_proc_start", RT_U64),
	ABSENT("proc.exe_ino.ctime_duration_pidns_start", RT_U64), ABSENT("proc.pidns_init_start_ts", RT_U64),
	ABSENT_ARG("proc.acmdline", RT_STR), ABSENT("proc.pid.ns", RT_U64),
	LOW("proc.stdin.type", RT_STR, PROC, F_PROC_STDIN, "tty pipe socket file null other none"),
	ABSENT("proc.stdin.name", RT_STR), ABSENT("proc.stdout.type", RT_STR),
	ABSENT("proc.stdout.name", RT_STR), ABSENT("proc.stderr.type", RT_STR),
	ABSENT("proc.stderr.name", RT_STR), ABSENT("proc.nthreads", RT_U64), ABSENT("proc.nchilds", RT_U64),
	ABSENT("proc.vmsize", RT_U64), ABSENT("proc.vmrss", RT_U64), ABSENT("proc.fdopencount", RT_U64),

	/* user */
	LOW("user.uid", RT_U64, SUBJ, F_PROC_UID, "effective uid on the host"),
	VIRT("user.name", RT_STR, FR_LOW | FR_PARTIAL, SUBJ, get_user_name, "known for root and nobody only"),
	LOW("user.loginuid", RT_I64, PROC, F_PROC_LOGINUID, "audit login uid"),
	LOW("group.gid", RT_U64, SUBJ, F_PROC_GID, "effective gid on the host"),
	VIRT("group.name", RT_STR, FR_LOW | FR_PARTIAL, SUBJ, get_group_name, "known for root and nogroup only"),
	ABSENT("user.loginname", RT_STR), ABSENT("user.homedir", RT_STR), ABSENT("user.shell", RT_STR),

	/* file descriptor */
	VIRT("fd.name", RT_STR, FR_MEMO, FILE_ | FAM_NET | FAM_DNS, get_fd_name, "path, or addresses of a socket"),
	VIRT("fd.nameraw", RT_STR, 0, FILE_, get_fd_nameraw, "path as the caller passed it"),
	VIRT("fd.directory", RT_STR, 0, FILE_, get_fd_directory, "directory of the path"),
	VIRT("fd.filename", RT_STR, 0, FILE_, get_fd_filename, "last component of the path"),
	VIRT("fd.num", RT_I64, FR_LOW, FILE_, get_fd_num, "descriptor, -1 when the open failed"),
	VIRT("fd.type", RT_STR, FR_LOW, FILE_ | NETD, get_fd_type, "file directory ipv4 ipv6 unix ..."),
	VIRT("fd.typechar", RT_STR, FR_LOW, FILE_ | NETD, get_fd_typechar, "f d 4 6 u ..."),
	SLOT("fd.ino", RT_U64, FILE_, F_FILE_INO, "inode"),
	LOW("fd.l4proto", RT_STR, NETD, F_NET_PROTO, "tcp udp icmp raw"),
	VIRT("fd.sockfamily", RT_STR, FR_LOW, NETD, get_fd_sockfamily, "ip or unix"),
	VIRT("fd.ip", RT_IP, FR_ANY, NETD, get_fd_ip, "either address"),
	VIRT("fd.net", RT_IP, FR_ANY, NETD, get_fd_ip, "either address, against networks"),
	VIRT("fd.port", RT_U64, FR_ANY, NETD, get_fd_port, "either port"),
	VIRT("fd.sip", RT_IP, 0, NETD, get_fd_sip, "server's address"),
	VIRT("fd.snet", RT_IP, 0, NETD, get_fd_sip, "server's address, against networks"),
	VIRT("fd.cip", RT_IP, 0, NETD, get_fd_cip, "client's address"),
	VIRT("fd.cnet", RT_IP, 0, NETD, get_fd_cip, "client's address, against networks"),
	VIRT("fd.sport", RT_U64, 0, NETD, get_fd_sport, "server's port"),
	VIRT("fd.cport", RT_U64, 0, NETD, get_fd_cport, "client's port"),
	SLOT("fd.lip", RT_IP, NETD, F_NET_SRC_IP, "local address"),
	SLOT("fd.lnet", RT_IP, NETD, F_NET_SRC_IP, "local address, against networks"),
	SLOT("fd.rip", RT_IP, NETD, F_NET_DST_IP, "remote address"),
	SLOT("fd.rnet", RT_IP, NETD, F_NET_DST_IP, "remote address, against networks"),
	SLOT("fd.lport", RT_U64, NETD, F_NET_SRC_PORT, "local port"),
	SLOT("fd.rport", RT_U64, NETD, F_NET_DST_PORT, "remote port"),
	SLOT("fd.sip.name", RT_STR, FAM_NET, F_NET_DST_NAME, "name that the sandbox resolved to the address"),
	SLOT("fd.rip.name", RT_STR, FAM_NET, F_NET_DST_NAME, "name that the sandbox resolved to the address"),
	VIRT("fd.connected", RT_BOOL, 0, FAM_NET, get_fd_connected, "the socket is connected"),
	VIRT("fd.name_changed", RT_BOOL, 0, FAM_NET, get_fd_name_changed, "a datagram to a new address"),
	VIRT("fd.is_server", RT_BOOL, 0, FAM_NET, get_fd_is_server, "the sandbox is the server"),
	ABSENT("fd.cip.name", RT_STR), ABSENT("fd.lip.name", RT_STR), ABSENT("fd.dev", RT_I64),
	ABSENT("fd.dev.major", RT_I64), ABSENT("fd.dev.minor", RT_I64), ABSENT("fd.containername", RT_STR),
	ABSENT("fd.containerdirectory", RT_STR), ABSENT("fd.containerip", RT_STR), ABSENT("fd.uid", RT_STR),
	ABSENT("fd.sproto", RT_STR), ABSENT("fd.cproto", RT_STR), ABSENT("fd.lproto", RT_STR),
	ABSENT("fd.rproto", RT_STR), ABSENT("fd.proto", RT_STR), ABSENT("fd.types", RT_STR),
	ABSENT("fd.is_upper_layer", RT_BOOL), ABSENT("fd.is_lower_layer", RT_BOOL),
	SLOT("fs.path.name", RT_STR, FILE_, F_FILE_PATH, "path of a file operation"),
	SLOT("fs.path.source", RT_STR, FILE_, F_FILE_OLD_PATH, "path before"),
	SLOT("fs.path.target", RT_STR, FILE_, F_FILE_PATH, "path after"),
	ABSENT("fs.path.nameraw", RT_STR), ABSENT("fs.path.sourceraw", RT_STR),
	ABSENT("fs.path.targetraw", RT_STR),

	/* container: the sandbox */
	VIRT("container.id", RT_STR, FR_LOW, FAM_ALL, get_container_id, "session of the sandbox"),
	VIRT("container.name", RT_STR, FR_LOW, FAM_ALL, get_container_name, "name of the sandbox"),
	VIRT("container.privileged", RT_BOOL, FR_CONST, FAM_ALL, get_false, "never: sandboxes have no privilege"),
	VIRT("container.type", RT_STR, FR_LOW | FR_CONST, FAM_ALL, get_container_type, "warder"),
	ABSENT("container.start_ts", RT_TIME),
	ABSENT("container.image", RT_STR), ABSENT("container.image.repository", RT_STR),
	ABSENT("container.image.tag", RT_STR), ABSENT("container.image.id", RT_STR),
	ABSENT("container.image.digest", RT_STR), ABSENT("container.info", RT_STR),
	ABSENT("container.full_id", RT_STR), ABSENT("container.ip", RT_STR), ABSENT("container.duration", RT_U64),
	ABSENT("container.healthcheck", RT_STR), ABSENT("container.liveness_probe", RT_STR),
	ABSENT("container.readiness_probe", RT_STR), ABSENT("container.mounts", RT_STR),
	ABSENT_ARG("container.mount", RT_STR), ABSENT_ARG("container.mount.source", RT_STR),
	ABSENT_ARG("container.mount.dest", RT_STR), ABSENT_ARG("container.mount.mode", RT_STR),
	ABSENT_ARG("container.mount.rdwr", RT_STR), ABSENT("container.cni.json", RT_STR),
	ABSENT_ARG("container.label", RT_STR), ABSENT("container.labels", RT_STR),
	ABSENT("container.host_pid", RT_BOOL), ABSENT("container.host_network", RT_BOOL),
	ABSENT("container.host_ipc", RT_BOOL),
	ABSENT("k8s.ns.name", RT_STR), ABSENT("k8s.pod.name", RT_STR), ABSENT("k8s.pod.id", RT_STR),
	ABSENT("k8s.pod.uid", RT_STR), ABSENT("k8s.pod.ip", RT_STR), ABSENT("k8s.pod.labels", RT_STR),
	ABSENT_ARG("k8s.pod.label", RT_STR), ABSENT("k8s.pod.full_sandbox_id", RT_STR),
	ABSENT("k8s.pod.sandbox_id", RT_STR), ABSENT("k8s.pod.cni.json", RT_STR),
};
/* clang-format on */

const size_t falco_fields_n = ARRAY_SIZE(falco_fields);

static const struct field_row *find_falco(struct str name)
{
	for (size_t i = 0; i < falco_fields_n; i++)
		if (str_eqz(name, falco_fields[i].name))
			return &falco_fields[i];
	return NULL;
}

int rule_field_alias(size_t i, const char **ret_name, enum field_id *ret_field)
{
	const struct field_row *r = &falco_fields[i];

	if (i >= falco_fields_n)
		return -ENOENT;
	if (r->slot < 0 || r->get != get_slot || event_field_find(str_from(r->name)) >= 0)
		return 0;
	*ret_name = r->name;
	*ret_field = (enum field_id)r->slot;
	return 1;
}

static const struct field_row *find_native(struct str name)
{
	int f = event_field_find(name);

	return f >= 0 && f < F_COUNT ? &native_fields[f] : NULL;
}

const struct field_row *field_find(struct str name, bool falco)
{
	const struct field_row *r = falco ? find_falco(name) : find_native(name);

	if (r)
		return r;
	return falco ? find_native(name) : find_falco(name);
}

bool field_is_ambiguous(struct str name)
{
	const struct field_row *a = find_falco(name), *b = find_native(name);

	return a && b && (a->get != b->get || a->slot != b->slot);
}

void field_hint(char *out, size_t n, struct str name)
{
	const char **names = calloc(falco_fields_n + F_COUNT, sizeof(*names));
	char word[96];
	size_t k = 0;

	out[0] = 0;
	if (names && name.n < sizeof(word)) {
		memcpy(word, name.p, name.n);
		word[name.n] = 0;
		for (int f = 0; f < F_COUNT; f++)
			names[k++] = native_fields[f].name;
		for (size_t i = 0; i < falco_fields_n; i++)
			if (!(falco_fields[i].flags & FR_ABSENT))
				names[k++] = falco_fields[i].name;
		rule_hint(out, n, word, names, k);
	}
	free(names);
}
