// SPDX-License-Identifier: Apache-2.0
/* The plan in gVisor's words: config.json (OCI runtime specification 1.0, config.md) and runsc's command lines. */
#include "runtime/gvisor/gvisor.h"

#include <stdio.h>
#include <string.h>

#include "runtime/gvisor/keeper/config.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"

static void member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	json_strz(j, value);
}

/* JSON has no way to say bytes that are not UTF-8, and another name than was asked for must not be run. */
static int check_text(const char *what, const char *z, struct err *err)
{
	if (!utf8_is_valid(str_from(z)))
		return err_set(err, EILSEQ, "%s '%.64s': not UTF-8, which gVisor needs", what, z);
	return 0;
}

static int strings(struct json *j, const char *key, char *const *v, size_t n, struct err *err)
{
	int r = 0;

	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = check_text(key, v[i], err);
		json_strz(j, v[i]);
	}
	json_array_end(j);
	return r;
}

static void rlimit(struct json *j, const char *type, uint64_t v)
{
	json_object_begin(j);
	member(j, "type", type);
	json_key(j, "hard");
	json_u64(j, v);
	json_key(j, "soft");
	json_u64(j, v);
	json_object_end(j);
}

/* pids.max counts gVisor's own tasks, many for one of the guest's; this counts the guest's, and refuses it cleanly. */
static void rlimits(struct json *j, const struct sandbox_limits *l)
{
	json_key(j, "rlimits");
	json_array_begin(j);
	rlimit(j, "RLIMIT_CORE", 0);
	if (l->nofile)
		rlimit(j, "RLIMIT_NOFILE", l->nofile);
	if (l->fsize)
		rlimit(j, "RLIMIT_FSIZE", l->fsize);
	if (l->pids)
		rlimit(j, "RLIMIT_NPROC", l->pids);
	json_array_end(j);
}

struct process {
	char *const *argv;
	size_t argc;
	char *const *env;
	size_t env_n;
	const char *cwd;
	bool tty;
	uint16_t rows, cols;
};

static int process_json(struct json *j, const struct sandbox_plan *p, const struct process *x,
			uint32_t uid, struct err *err)
{
	int r;

	json_object_begin(j);
	json_key(j, "terminal");
	json_bool(j, x->tty);
	if (x->tty) {
		json_key(j, "consoleSize");
		json_object_begin(j);
		json_key(j, "height");
		json_u64(j, x->rows);
		json_key(j, "width");
		json_u64(j, x->cols);
		json_object_end(j);
	}
	json_key(j, "user");
	json_object_begin(j);
	json_key(j, "uid");
	json_u64(j, uid);
	json_key(j, "gid");
	json_u64(j, uid);
	json_object_end(j);
	r = strings(j, "args", x->argv, x->argc, err);
	if (r == 0)
		r = strings(j, "env", x->env, x->env_n, err);
	if (r == 0)
		r = check_text("directory", x->cwd, err);
	member(j, "cwd", x->cwd);
	json_key(j, "capabilities"); /* none */
	json_object_begin(j);
	json_object_end(j);
	rlimits(j, &p->limits);
	json_key(j, "noNewPrivileges");
	json_bool(j, true);
	json_object_end(j);
	return r;
}

/* What of the root is a mount of its own to the guest, too. All else the gofer serves as one file system, which the
 * sentry may believe to be its own: nobody outside changes it. */
static bool is_mount(const struct root_op *op)
{
	switch (op->kind) {
	case ROOT_SCRATCH: /* else the sentry puts its own there, without a limit, or lets programs start */
	case ROOT_TMPFS:
	case ROOT_SECRETS: /* their end comes from outside */
		return true;
	case ROOT_BIND:
		return op->foreign;
	default:
		return false;
	}
}

static void mount_json(struct json *j, const struct root_op *op)
{
	bool writable = op->kind == ROOT_BIND ? op->writable : op->kind != ROOT_SECRETS;
	char source[HOST_PATH_MAX + sizeof(GVISOR_TREE)];

	snprintf(source, sizeof(source), GVISOR_TREE "%s", op->target);
	json_object_begin(j);
	member(j, "destination", op->target);
	member(j, "type", "bind");
	member(j, "source", source);
	json_key(j, "options");
	json_array_begin(j);
	json_strz(j, "rbind");
	json_strz(j, writable ? "rw" : "ro");
	json_strz(j, "nosuid");
	json_strz(j, "nodev");
	if (!op->exec)
		json_strz(j, "noexec");
	json_array_end(j);
	json_object_end(j);
}

static void namespaces(struct json *j, const struct sandbox_plan *p)
{
	static const char *const types[] = { "pid", "ipc", "uts", "mount", "network" };

	json_key(j, "linux");
	json_object_begin(j);
	json_key(j, "namespaces");
	json_array_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		/* Without an entry the sentry lives in the keeper's, which is the sandbox's. */
		if (!strcmp(types[i], "network") && p->net != SANDBOX_NET_NONE)
			continue;
		json_object_begin(j);
		member(j, "type", types[i]);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

int gvisor_bundle(const struct sandbox_plan *p, uint32_t uid, struct buf *out, struct err *err)
{
	static char sleeps[] = "/usr/bin/sleep", forever[] = "infinity";
	char *const idle[] = { sleeps, forever, NULL };
	const struct process x = {
		.argv = p->argc ? p->argv : idle,
		.argc = p->argc ? p->argc : 2,
		.env = p->env,
		.env_n = p->env_n,
		.cwd = p->cwd,
		.tty = p->tty && p->argc,
		.rows = p->tty_rows,
		.cols = p->tty_cols,
	};
	struct json j;
	int r;

	json_init(&j, out);
	json_object_begin(&j);
	member(&j, "ociVersion", "1.0.0");
	json_key(&j, "process");
	r = process_json(&j, p, &x, uid, err);
	json_key(&j, "root");
	json_object_begin(&j);
	member(&j, "path", GVISOR_TREE);
	json_key(&j, "readonly"); /* it is; the mounts in it are not */
	json_bool(&j, false);
	json_object_end(&j);
	member(&j, "hostname", p->hostname);
	json_key(&j, "mounts");
	json_array_begin(&j);
	for (size_t i = 0; i < p->root_n; i++)
		if (is_mount(&p->root[i]))
			mount_json(&j, &p->root[i]);
	json_array_end(&j);
	namespaces(&j, p);
	json_object_end(&j);
	if (r == 0 && out->failed)
		r = err_set(err, E2BIG, "gVisor's bundle: larger than %zu bytes", out->max);
	return r;
}

int gvisor_process(const struct sandbox_plan *p, const struct sandbox_exec *x, uint32_t uid,
		   struct buf *out, struct err *err)
{
	struct process w = {
		.argv = x->argv,
		.env = x->env,
		.env_n = x->env_n,
		.cwd = x->cwd ? x->cwd : p->cwd,
		.tty = x->tty,
		.rows = x->rows,
		.cols = x->cols,
	};
	struct json j;
	int r;

	while (w.argv[w.argc])
		w.argc++;
	json_init(&j, out);
	r = process_json(&j, p, &w, uid, err);
	if (r == 0 && out->failed)
		r = err_set(err, E2BIG, "command and environment: larger than %zu bytes", out->max);
	return r;
}

/* ---- runsc's command lines ---- */

struct lines {
	struct buf *out;
	uint16_t n;
};

static void word(struct lines *l, const char *z)
{
	buf_add(l->out, z, strlen(z) + 1);
	l->n++;
}

static void flags(struct lines *l, const struct sandbox_plan *p, const struct gvisor_runsc *r)
{
	char platform[64];

	snprintf(platform, sizeof(platform), "--platform=%s", gvisor_platform(r, p->platform));
	word(l, GVISOR_RUNSC);
	word(l, "--root=" GVISOR_STATE);
	word(l, "--log=" GVISOR_LOG);
	word(l, "--log-format=json");
	word(l, platform);
	word(l, p->net == SANDBOX_NET_NONE ? "--network=none" : "--network=host");
	word(l, "--ignore-cgroups");
	if (r->has_overlay2) /* what the guest writes must be seen, and land where the plan says */
		word(l, "--overlay2=none");
	if (r->has_directfs) /* the sentry holds no directory of the host */
		word(l, "--directfs=false");
}

int gvisor_words(const struct sandbox_plan *p, const struct gvisor_runsc *r, bool points,
		 bool restores, struct buf *out, struct err *err)
{
	struct gvisor_config head = {
		.magic = GVISOR_CONFIG_MAGIC,
		.strings_off = sizeof(head),
		.tty = p->tty && p->argc,
		.tty_rows = p->tty_rows,
		.tty_cols = p->tty_cols,
		.gate = points,
		.loopback = p->net == SANDBOX_NET_NONE,
		.restores = restores,
	};
	struct lines create = { .out = out }, exec = { .out = out };
	char fd[64];

	buf_add(out, &head, sizeof(head));
	flags(&create, p, r);
	if (points)
		word(&create, "--pod-init-config=" GVISOR_BUNDLE "/pod-init.json");
	word(&create, "create");
	word(&create, "--bundle=" GVISOR_BUNDLE);
	word(&create, "--pid-file=" GVISOR_PIDFILE);
	if (head.tty)
		word(&create, GVISOR_CONSOLE_ARG);
	word(&create, p->session);
	head.create_n = create.n;
	if (p->serve) {
		flags(&exec, p, r);
		word(&exec, "exec");
		word(&exec, GVISOR_CONSOLE_ARG);
		snprintf(fd, sizeof(fd), "--process=/proc/self/fd/%d", GVISOR_EXEC_FD);
		word(&exec, fd);
		snprintf(fd, sizeof(fd), "--internal-pid-file=/proc/self/fd/%d", GVISOR_BEGUN_FD);
		word(&exec, fd);
		word(&exec, p->session);
		head.exec_n = exec.n;
	}
	buf_add(out, p->session, strlen(p->session) + 1);
	buf_add(out, p->cwd, strlen(p->cwd) + 1);
	if (out->failed)
		return err_set(err, ENOMEM, "gVisor's command lines: %m");
	head.size = (uint32_t)out->n;
	memcpy(out->p, &head, sizeof(head));
	return 0;
}
