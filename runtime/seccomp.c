// SPDX-License-Identifier: Apache-2.0
/* Everything is allowed but what is listed: lists of what to allow break interpreters at every
 * release of libc, and whoever is broken by one switches it off. What is denied fails with EPERM, as
 * without the privilege, so that programs fall back. */
#include "runtime/seccomp.h"

#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/plan.h"
#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

/* Never legitimate in here. By name: one that this libseccomp or architecture does not know is left
 * out of the filter. */
static const char *const denied[] = {
	/* mounts and roots */
	"mount",
	"umount",
	"umount2",
	"pivot_root",
	"chroot",
	"fsopen",
	"fsconfig",
	"fsmount",
	"fspick",
	"open_tree",
	"open_tree_attr",
	"move_mount",
	"mount_setattr",
	"statmount",
	"listmount",
	/* namespaces */
	"unshare",
	"setns",
	/* kernel code and image */
	"bpf",
	"init_module",
	"finit_module",
	"delete_module",
	"create_module",
	"query_module",
	"get_kernel_syms",
	"kexec_load",
	"kexec_file_load",
	"perf_event_open",
	"lookup_dcookie",
	"uselib",
	"_sysctl",
	"sysfs",
	"ustat",
	"nfsservctl",
	"vm86",
	"vm86old",
	/* other processes */
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"process_mrelease",
	"pidfd_getfd",
	"kcmp",
	"migrate_pages",
	"move_pages",
	/* ways around path checks and hooks */
	"open_by_handle_at",
	"name_to_handle_at",
	"fanotify_init",
	"fanotify_mark",
	"io_uring_setup",
	"io_uring_enter",
	"io_uring_register",
	"userfaultfd",
	/* keys */
	"add_key",
	"request_key",
	"keyctl",
	/* machine-wide state */
	"acct",
	"quotactl",
	"quotactl_fd",
	"swapon",
	"swapoff",
	"reboot",
	"settimeofday",
	"clock_settime",
	"clock_settime64",
	"clock_adjtime",
	"clock_adjtime64",
	"adjtimex",
	"stime",
	"syslog",
	"vhangup",
	"ioperm",
	"iopl",
	"pciconfig_read",
	"pciconfig_write",
	"pciconfig_iobase",
	"set_mempolicy_home_node",
	"setdomainname",
	"sethostname",
	"lsm_set_self_attr",
	"memfd_secret",
};

/* Calls younger than some libseccomp that we run with: it cannot resolve their names. These numbers are
 * the same everywhere. */
static const struct {
	const char *name;
	int nr;
} young[] = {
	{ "mount_setattr", 442 },
	{ "quotactl_fd", 443 },
	{ "memfd_secret", 447 },
	{ "process_mrelease", 448 },
	{ "set_mempolicy_home_node", 450 },
	{ "fchmodat2", 452 },
	{ "statmount", 457 },
	{ "listmount", 458 },
	{ "lsm_set_self_attr", 460 },
	{ "open_tree_attr", 467 },
};

/* The last call that this list was made for (Linux 6.18). What comes after it does not exist inside:
 * it may be another way to do what is denied, and programs are prepared for kernels without it. */
#define LAST_KNOWN 469
#define X32_BIT	   0x40000000u

/* Flags that make namespaces, of clone's first argument (clone3 hides them in memory). */
static const unsigned long ns_flags[] = { CLONE_NEWNS,	CLONE_NEWUTS, CLONE_NEWIPC,   CLONE_NEWUSER,
					  CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP };

/* Families that a sandbox may open. NETLINK only for routes, which libc asks for interfaces. */
static const int families_allowed[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

#define FAMILY_MAX (AF_NETLINK + 1) /* all from here on are denied by one comparison */

#define DENY SCMP_ACT_ERRNO(EPERM)

enum profile { PROFILE_DEFAULT, PROFILE_NOSUID, PROFILE_COUNT };

struct filter {
	struct sock_filter *insn;
	size_t n;
};

static struct filter cache[PROFILE_COUNT][SECCOMP_NOTIFY_COUNT];
static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;

static struct scmp_arg_cmp arg_is(unsigned n, enum scmp_compare op, scmp_datum_t a, scmp_datum_t b)
{
	return (struct scmp_arg_cmp){ .arg = n, .op = op, .datum_a = a, .datum_b = b };
}

int seccomp_call(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; nr == __NR_SCMP_ERROR && i < ARRAY_SIZE(young); i++)
		if (!strcmp(young[i].name, name))
			nr = young[i].nr;
	return nr;
}

const char *seccomp_denied(size_t i)
{
	if (i == ARRAY_SIZE(denied))
		return "clone3"; /* its answer is ours, too: another error than ENOSYS ends libc's threads */
	return i < ARRAY_SIZE(denied) ? denied[i] : NULL;
}

bool seccomp_is_denied(const char *name)
{
	for (size_t i = 0; seccomp_denied(i); i++)
		if (!strcmp(seccomp_denied(i), name))
			return true;
	return false;
}

/* A call that does not exist for this architecture is no error. */
static int rule(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned n,
		const struct scmp_arg_cmp *cmp)
{
	int nr = seccomp_call(name);
	int r;

	if (nr < 0)
		return 0;
	r = seccomp_rule_add_array(ctx, action, nr, n, cmp);
	return r == -EEXIST ? 0 : r;
}

static int add_denied(scmp_filter_ctx ctx, enum seccomp_notify how)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(denied); i++)
		r = rule(ctx, seccomp_is_notified(denied[i], how) ? SCMP_ACT_NOTIFY : DENY,
			 denied[i], 0, NULL);
	return r;
}

static int add_clone(scmp_filter_ctx ctx, uint32_t action)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(ns_flags); i++) {
		struct scmp_arg_cmp cmp = arg_is(0, SCMP_CMP_MASKED_EQ, ns_flags[i], ns_flags[i]);

		r = rule(ctx, action, "clone", 1, &cmp);
	}
	return r;
}

static int add_families(scmp_filter_ctx ctx, uint32_t action, const char *call)
{
	struct scmp_arg_cmp above = arg_is(0, SCMP_CMP_GE, FAMILY_MAX, 0);
	int r = 0;

	for (int f = 0; r == 0 && f < FAMILY_MAX; f++) {
		struct scmp_arg_cmp cmp = arg_is(0, SCMP_CMP_EQ, (scmp_datum_t)f, 0);
		bool ok = false;

		for (size_t i = 0; i < ARRAY_SIZE(families_allowed); i++)
			ok |= f == families_allowed[i];
		if (!ok)
			r = rule(ctx, action, call, 1, &cmp);
	}
	return r < 0 ? r : rule(ctx, action, call, 1, &above);
}

static int add_socket(scmp_filter_ctx ctx, uint32_t action)
{
	struct scmp_arg_cmp netlink[] = { arg_is(0, SCMP_CMP_EQ, AF_NETLINK, 0),
					  arg_is(2, SCMP_CMP_NE, 0, 0) };
	int r = add_families(ctx, action, "socket");

	return r < 0 ? r : rule(ctx, action, "socket", 2, netlink);
}

static int add_socketpair(scmp_filter_ctx ctx, uint32_t action)
{
	return add_families(ctx, action, "socketpair");
}

/* Only asking (0xffffffff) may pass: whatever is set switches off randomisation or worse. */
static int add_personality(scmp_filter_ctx ctx, uint32_t action)
{
	struct scmp_arg_cmp below = arg_is(0, SCMP_CMP_LT, 0xffffffff, 0);
	struct scmp_arg_cmp above = arg_is(0, SCMP_CMP_GT, 0xffffffff, 0);
	int r = rule(ctx, action, "personality", 1, &below);

	return r < 0 ? r : rule(ctx, action, "personality", 1, &above);
}

static int add_ioctl(scmp_filter_ctx ctx, uint32_t action, unsigned request)
{
	struct scmp_arg_cmp cmp = arg_is(1, SCMP_CMP_MASKED_EQ, 0xffffffff, request);

	return rule(ctx, action, "ioctl", 1, &cmp);
}

static int add_tiocsti(scmp_filter_ctx ctx, uint32_t action)
{
	return add_ioctl(ctx, action, TIOCSTI);
}

static int add_tioclinux(scmp_filter_ctx ctx, uint32_t action)
{
	return add_ioctl(ctx, action, TIOCLINUX);
}

/* Denied by an argument: as it is shown, and from which on it is notified. No hook looks at ioctl: each of the host would
 * pay. Raw and ping sockets need no filter: the first a capability, the second a sysctl, both absent. */
static const struct {
	const char *text;
	enum seccomp_notify from;
	int (*add)(scmp_filter_ctx ctx, uint32_t action);
} by_argument[] = {
	{ "clone(CLONE_NEW*)", SECCOMP_NOTIFY_CALLS, add_clone },
	{ "personality(PERSONA)", SECCOMP_NOTIFY_CALLS, add_personality },
	{ "socket(FAMILY)", SECCOMP_NOTIFY_ALL, add_socket },
	{ "socketpair(FAMILY)", SECCOMP_NOTIFY_ALL, add_socketpair },
	{ "ioctl(TIOCSTI)", SECCOMP_NOTIFY_BLIND, add_tiocsti },
	{ "ioctl(TIOCLINUX)", SECCOMP_NOTIFY_BLIND, add_tioclinux },
};

const char *seccomp_by_argument(size_t i, enum seccomp_notify *ret_from)
{
	if (i >= ARRAY_SIZE(by_argument))
		return NULL;
	*ret_from = by_argument[i].from;
	return by_argument[i].text;
}

static int add_by_argument(scmp_filter_ctx ctx, enum seccomp_notify how)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(by_argument); i++)
		r = by_argument[i].add(ctx, how >= by_argument[i].from ? SCMP_ACT_NOTIFY : DENY);
	return r;
}

/* On a writable host directory a setuid file made inside would be its owner's on the host. openat2
 * hides the mode in memory: programs fall back to openat. */
static int add_nosuid(scmp_filter_ctx ctx)
{
	static const struct {
		const char *name;
		unsigned arg;
	} modes[] = {
		{ "chmod", 1 },	  { "fchmod", 1 }, { "fchmodat", 2 }, { "fchmodat2", 2 },
		{ "creat", 1 },	  { "open", 2 },   { "openat", 3 },   { "mknod", 1 },
		{ "mknodat", 2 }, { "mkdir", 1 },  { "mkdirat", 2 },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(modes); i++) {
		struct scmp_arg_cmp uid =
			arg_is(modes[i].arg, SCMP_CMP_MASKED_EQ, S_ISUID, S_ISUID);
		struct scmp_arg_cmp gid =
			arg_is(modes[i].arg, SCMP_CMP_MASKED_EQ, S_ISGID, S_ISGID);

		r = rule(ctx, DENY, modes[i].name, 1, &uid);
		if (r == 0)
			r = rule(ctx, DENY, modes[i].name, 1, &gid);
	}
	return r < 0 ? r : rule(ctx, SCMP_ACT_ERRNO(ENOSYS), "openat2", 0, NULL);
}

static int add_all(scmp_filter_ctx ctx, enum profile profile, enum seccomp_notify how)
{
	int r;

	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = add_denied(ctx, how);
	if (r == 0)
		r = add_by_argument(ctx, how);
	if (r == 0) /* its answer is ENOSYS, which nobody has to give */
		r = rule(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, NULL);
	if (r == 0 && profile == PROFILE_NOSUID)
		r = add_nosuid(ctx);
	return r;
}

/* Numbers from LAST_KNOWN + 1 on, below the x32 ones, which libseccomp's part kills. Jumps are relative,
 * so this can stand in front of anything. */
static const struct sock_filter future[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, LAST_KNOWN, 0, 2),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
};

/* libseccomp 2.5 exports to a descriptor only. */
int seccomp_export(void *ctx, size_t room, struct sock_filter **ret, size_t *ret_n)
{
	auto_close int fd = memfd_create("seccomp", MFD_CLOEXEC);
	struct sock_filter *insn;
	struct stat st;
	size_t n;
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	n = (size_t)st.st_size / sizeof(*insn);
	if (n == 0 || (size_t)st.st_size % sizeof(*insn) || n + room > BPF_MAXINSNS)
		return n + room > BPF_MAXINSNS ? -E2BIG : -EIO;
	insn = malloc((room + n) * sizeof(*insn));
	if (!insn)
		return -ENOMEM;
	if (pread(fd, insn + room, (size_t)st.st_size, 0) != st.st_size) {
		free(insn);
		return -EIO;
	}
	*ret = insn;
	*ret_n = room + n;
	return 0;
}

static int export(scmp_filter_ctx ctx, struct filter *f)
{
	int r = seccomp_export(ctx, ARRAY_SIZE(future), &f->insn, &f->n);

	if (r == 0)
		memcpy(f->insn, future, sizeof(future));
	return r;
}

static enum profile profile_of(const struct sandbox_plan *p)
{
	return p->deny_suid ? PROFILE_NOSUID : PROFILE_DEFAULT;
}

const char *seccomp_profile_name(const struct sandbox_plan *p)
{
	if (p->seccomp)
		return p->deny_suid ? "profile+default+nosuid" : "profile+default";
	return p->deny_suid ? "default+nosuid" : "default";
}

/* Ours, made once. With cache_lock. */
static int own_filter(const struct sandbox_plan *p, enum seccomp_notify how, struct filter **ret)
{
	struct filter *f = &cache[profile_of(p)][how];
	int r = 0;

	if (!f->insn) {
		scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

		r = ctx ? add_all(ctx, profile_of(p), how) : -ENOMEM;
		if (r == 0)
			r = export(ctx, f);
		if (ctx)
			seccomp_release(ctx);
	}
	*ret = f;
	return r;
}

/* One of the operator's with ours behind it, made once for its hash. With cache_lock. */
static int joined_filter(const struct sandbox_plan *p, enum seccomp_notify how,
			 const struct filter *own, struct filter **ret, struct err *err)
{
	static struct {
		char sha256[65];
		enum profile own;
		enum seccomp_notify how;
		struct filter filter;
	} made[SECCOMP_PROFILES_MAX];
	static size_t n;
	int r;

	for (size_t i = 0; i < n; i++)
		if (made[i].own == profile_of(p) && made[i].how == how &&
		    !strcmp(made[i].sha256, p->seccomp->sha256)) {
			*ret = &made[i].filter;
			return 0;
		}
	if (n == SECCOMP_PROFILES_MAX)
		return err_set(err, ENOSPC, "seccomp profile: more than %d in one process",
			       SECCOMP_PROFILES_MAX);
	r = seccomp_profile_compile(p->seccomp, own->insn, own->n, &made[n].filter.insn,
				    &made[n].filter.n, err);
	if (r < 0)
		return r;
	made[n].own = profile_of(p);
	made[n].how = how;
	memcpy(made[n].sha256, p->seccomp->sha256, sizeof(made[n].sha256));
	*ret = &made[n++].filter;
	return 0;
}

int seccomp_get(const struct sandbox_plan *p, enum seccomp_notify how,
		const struct sock_filter **ret, size_t *ret_n, struct err *err)
{
	struct filter *f = NULL;
	int r;

	pthread_mutex_lock(&cache_lock);
	r = own_filter(p, how, &f);
	if (r < 0)
		err_set(err, -r, "seccomp filter '%s': %m", seccomp_profile_name(p));
	else if (p->seccomp)
		r = joined_filter(p, how, f, &f, err);
	pthread_mutex_unlock(&cache_lock);
	if (r < 0)
		return r;
	*ret = f->insn;
	*ret_n = f->n;
	return 0;
}
