// SPDX-License-Identifier: Apache-2.0
/* The default root: nothing of the host but /usr and a list of files in /etc that hold no secret.
 * What is not named here does not exist inside, host sockets included: a list of what to hide would
 * have to know them all. */
#include "runtime/plan.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/secret.h"
#include "userspace/base/auto.h"

const char *const root_kind_names[ROOT_KIND_COUNT] = {
	[ROOT_DIR] = "dir",	    [ROOT_LINK] = "link",	[ROOT_FILE] = "file",
	[ROOT_COPY] = "copy",	    [ROOT_BIND] = "bind",	[ROOT_TMPFS] = "tmpfs",
	[ROOT_SCRATCH] = "scratch", [ROOT_DEV] = "dev",		[ROOT_DEVICE] = "device",
	[ROOT_PROC] = "proc",	    [ROOT_PROC_MASK] = "mask",	[ROOT_PROC_RO] = "proc-ro",
	[ROOT_DEVPTS] = "devpts",   [ROOT_SECRETS] = "secrets", [ROOT_IMAGE] = "image",
};

/* Links into /usr where the host merged them, directories of the host where it did not. */
static const char *const usr_merge[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

/* Each is work at every start: what programs miss, not what there is. */
static const char *const etc_files[] = {
	"ld.so.cache", "ssl/certs",    "ssl/openssl.cnf", "pki/tls",	     "pki/ca-trust",
	"localtime",   "mime.types",   "protocols",	  "services",	     "os-release",
	"fonts",       "perl",	       "python3",	  "python3.11",	     "python3.12",
	"python3.13",  "alternatives", "java-11-openjdk", "java-17-openjdk", "java-21-openjdk",
};

static const struct {
	const char *target;
	const char *text;
} generated[] = {
	{ "/etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
			 "sandbox:x:1000:1000:sandbox:/workspace:/bin/sh\n"
			 "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" },
	{ "/etc/group", "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n" },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"
				"networks: files\nprotocols: files\nservices: files\n" },
};

static const struct {
	const char *path;
	uint32_t maj, min;
} devices[] = {
	{ "/dev/null", 1, 3 },	 { "/dev/zero", 1, 5 },	   { "/dev/full", 1, 7 },
	{ "/dev/random", 1, 8 }, { "/dev/urandom", 1, 9 }, { "/dev/tty", 5, 0 },
};

static const struct {
	const char *target, *to;
} dev_links[] = {
	{ "/dev/fd", "/proc/self/fd" },	      { "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" }, { "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },
};

/* What lasts as long as the sandbox. */
static const struct {
	const char *target, *dir;
	bool exec;
} scratch[] = {
	{ "/tmp", "tmp", true },
	{ "/var/tmp", "var-tmp", true },
	{ "/run", "run", false },
	{ "/dev/shm", "shm", false },
};

/* Kernel memory, keys and timers of others, and what makes the host act. What only the host's root
 * may open anyway is here where a mistake elsewhere would be expensive. */
static const char *const proc_masks[] = {
	"kcore",       "keys",	     "key-users", "timer_list", "sysrq-trigger", "latency_stats",
	"sched_debug", "interrupts", "acpi",	  "asound",	"scsi",
};

static const char *const proc_ro[] = { "sys", "irq", "bus", "fs" };

struct root_op *plan_root_add(struct sandbox_plan *p, enum root_kind kind, const char *target,
			      const char *source)
{
	struct root_op *op;

	if (p->root_n >= PLAN_ROOT_MAX || !target)
		return NULL;
	op = &p->root[p->root_n++];
	*op = (struct root_op){ .kind = kind, .target = target, .source = source, .mode = 0755 };
	return op;
}

static const char *fmt2(struct sandbox_plan *p, const char *a, const char *b)
{
	return arena_printf(&p->mem, "%s%s", a, b).p;
}

static int full(struct err *err)
{
	return err_set(err, ENOSPC, "plan: more than %d steps to build the root", PLAN_ROOT_MAX);
}

/* The host's file as this plan sees it (tests have a host root of their own). */
static int host_stat(const struct sandbox_plan *p, const char *path, struct stat *st)
{
	char at[PATH_MAX];

	if (snprintf(at, sizeof(at), "%s%s", p->host.root, path) >= (int)sizeof(at))
		return -1;
	return lstat(at, st);
}

/* A host path as it is: a link stays a link, a file or directory is bound. Absent: nothing. */
static int add_as_is(struct sandbox_plan *p, const char *path, bool exec, struct err *err)
{
	struct root_op *op;
	struct stat st;

	if (host_stat(p, path, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		char at[PATH_MAX], to[PATH_MAX];
		const char *link;
		ssize_t n;

		snprintf(at, sizeof(at), "%s%s", p->host.root, path);
		n = readlink(at, to, sizeof(to) - 1);
		if (n <= 0)
			return 0;
		to[n] = 0;
		link = arena_strndup(&p->mem, to, (size_t)n).p;
		if (!link || !plan_root_add(p, ROOT_LINK, path, link))
			return full(err);
		return 0;
	}
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(err, EINVAL, "'%s' is neither file nor directory: not shared", path);
	op = plan_root_add(
		p, S_ISREG(st.st_mode) && st.st_size <= PLAN_COPY_MAX ? ROOT_COPY : ROOT_BIND, path,
		path);
	if (!op)
		return full(err);
	op->is_dir = S_ISDIR(st.st_mode);
	op->exec = exec;
	op->optional = true;
	return 0;
}

static int add_system(struct sandbox_plan *p, struct err *err)
{
	struct root_op *op;
	int r = 0;

	op = plan_root_add(p, ROOT_BIND, "/usr", "/usr");
	if (!op)
		return full(err);
	op->is_dir = op->exec = true;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(usr_merge); i++)
		r = add_as_is(p, fmt2(p, "/", usr_merge[i]), true, err);
	return r;
}

static int add_etc(struct sandbox_plan *p, struct err *err)
{
	int r = 0;

	if (!plan_root_add(p, ROOT_DIR, "/etc", NULL))
		return full(err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(etc_files); i++)
		r = add_as_is(p, fmt2(p, "/etc/", etc_files[i]), false, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(generated); i++)
		if (!plan_root_add(p, ROOT_FILE, generated[i].target, generated[i].text))
			return full(err);
	return plan_root_names(p, err);
}

int plan_root_names(struct sandbox_plan *p, struct err *err)
{
	const char *name, *hosts, *resolv;

	name = fmt2(p, p->hostname, "\n");
	hosts = fmt2(p, "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost\n127.0.0.1\t", name);
	/* Ours, where there is one; the time is for what it asks outside. */
	resolv = p->egress ? "nameserver 127.0.0.1\noptions timeout:5 attempts:2\n"
			   : "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
	if (!plan_root_add(p, ROOT_FILE, "/etc/hostname", name) ||
	    !plan_root_add(p, ROOT_FILE, "/etc/hosts", hosts))
		return full(err);
	if (p->net == SANDBOX_NET_HOST) { /* often a link into /run: bind what it leads to */
		struct root_op *op =
			plan_root_add(p, ROOT_BIND, "/etc/resolv.conf", "/etc/resolv.conf");

		if (!op)
			return full(err);
		op->optional = true;
	} else if (!plan_root_add(p, ROOT_FILE, "/etc/resolv.conf", resolv)) {
		return full(err);
	}
	return 0;
}

/* Points for all that is mounted later, when the root is read-only. */
int plan_root_points(struct sandbox_plan *p, struct err *err)
{
	static const char *const dirs[] = { "/var", "/dev", "/dev/pts", "/proc", "/workspace" };
	static const char *const kernels[] = { "/dev", "/dev/pts", "/dev/shm", "/proc" };

	for (size_t i = 0; p->container && i < ARRAY_SIZE(kernels); i++)
		if (!plan_root_add(p, ROOT_DIR, kernels[i], NULL))
			return full(err);
	if (p->container)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (!plan_root_add(p, ROOT_DIR, dirs[i], NULL))
			return full(err);
	for (size_t i = 0; i < ARRAY_SIZE(scratch); i++)
		if (!plan_root_add(p, ROOT_DIR, scratch[i].target, NULL))
			return full(err);
	/* An image has its own, or does without. */
	return p->root[0].kind == ROOT_IMAGE || plan_root_add(p, ROOT_LINK, "/var/run", "/run")
		       ? 0
		       : full(err);
}

static int add_dev(struct sandbox_plan *p, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		struct root_op *op =
			plan_root_add(p, ROOT_DEVICE, devices[i].path, devices[i].path);

		if (!op)
			return full(err);
		op->dev_major = devices[i].maj;
		op->dev_minor = devices[i].min;
		op->writable = true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dev_links); i++)
		if (!plan_root_add(p, ROOT_LINK, dev_links[i].target, dev_links[i].to))
			return full(err);
	return plan_root_add(p, ROOT_DEV, "/dev", NULL) ? 0 : full(err);
}

/* Is it hidden, or is what it lies in? With `ro`: or is that read-only? */
static bool is_covered(const struct sandbox_plan *p, const char *path, bool ro)
{
	for (size_t i = 0; i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];
		size_t n = strlen(op->target);

		if ((op->kind == ROOT_PROC_MASK || (ro && op->kind == ROOT_PROC_RO)) &&
		    !strncmp(path, op->target, n) && (!path[n] || path[n] == '/'))
			return true;
	}
	return false;
}

/* What a container hides besides. Each is found in /proc itself, so nothing may lie over it already. */
static int add_proc_more(struct sandbox_plan *p, struct err *err)
{
	const struct sandbox_container *c = p->container;

	for (size_t i = 0; i < c->masked_n; i++) {
		if (is_covered(p, c->masked[i], false))
			continue;
		if (is_covered(p, c->masked[i], true))
			return err_set(err, EINVAL, "masked path '%s': it is read-only already",
				       c->masked[i]);
		if (!plan_root_add(p, ROOT_PROC_MASK, c->masked[i],
				   c->masked[i] + strlen("/proc/")))
			return full(err);
	}
	for (size_t i = 0; i < c->proc_ro_n; i++)
		if (!is_covered(p, c->proc_ro[i], true) &&
		    !plan_root_add(p, ROOT_PROC_RO, c->proc_ro[i],
				   c->proc_ro[i] + strlen("/proc/")))
			return full(err);
	return 0;
}

static int add_proc(struct sandbox_plan *p, struct err *err)
{
	if (!plan_root_add(p, ROOT_PROC, "/proc", NULL))
		return full(err);
	for (size_t i = 0; i < ARRAY_SIZE(proc_masks); i++)
		if (!plan_root_add(p, ROOT_PROC_MASK, fmt2(p, "/proc/", proc_masks[i]),
				   proc_masks[i]))
			return full(err);
	for (size_t i = 0; i < ARRAY_SIZE(proc_ro); i++)
		if (!plan_root_add(p, ROOT_PROC_RO, fmt2(p, "/proc/", proc_ro[i]), proc_ro[i]))
			return full(err);
	if (p->container) {
		int r = add_proc_more(p, err);

		if (r < 0)
			return r;
	}
	if (!plan_root_add(p, ROOT_DEVPTS, "/dev/pts", NULL))
		return full(err);
	p->root[p->root_n - 1].writable = true;
	return 0;
}

static int add_scratch(struct sandbox_plan *p, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(scratch); i++) {
		struct root_op *op;

		if (p->container && strcmp(scratch[i].target, "/dev/shm"))
			continue;
		op = plan_root_add(p, ROOT_SCRATCH, scratch[i].target, scratch[i].dir);

		if (!op)
			return full(err);
		op->mode = 01777;
		op->exec = scratch[i].exec;
		op->writable = true;
		op->size = p->limits.tmp_bytes;
	}
	return 0;
}

static int add_workspace(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	struct root_op *op;

	if (spec->workspace)
		return plan_bind(p, spec->workspace, "/workspace", true, err);
	if (p->container)
		return 0;
	op = plan_root_add(p, ROOT_TMPFS, "/workspace", NULL);
	if (!op)
		return full(err);
	op->size = p->limits.disk;
	op->writable = op->exec = true;
	return 0;
}

int plan_root(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	int r;

	/* First what every sandbox shares, then its own. The scratch directories are cloned from where
	 * /proc will be. */
	if (spec->root) {
		r = plan_image(p, spec, err);
	} else {
		r = plan_root_points(p, err);
		if (r == 0)
			r = add_system(p, err);
		if (r == 0)
			r = add_etc(p, err);
	}
	if (r == 0)
		r = add_dev(p, err);
	if (r == 0)
		r = add_scratch(p, err);
	if (r == 0)
		r = add_proc(p, err);
	if (r == 0)
		r = plan_secrets(p, spec, err);
	if (r == 0)
		r = add_workspace(p, spec, err);
	return r;
}
