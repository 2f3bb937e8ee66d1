// SPDX-License-Identifier: Apache-2.0
/* The plan as JSON (for --dry-run --json and for its hash) and as text for people. */
#include "runtime/plan.h"

#include <openssl/evp.h>
#include <string.h>

#include "runtime/backend.h"
#include "runtime/seccomp.h"
#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"

#define PLAN_JSON_MAX ((size_t)PLAN_ARGS_MAX * 6 + (1u << 20)) /* every byte may need \u00xx */

static const char *const where_names[] = { "absent", "cgroup2", "cgroup1" };
static const char *const net_names[] = {
	[SANDBOX_NET_NONE] = "none", [SANDBOX_NET_HOST] = "host",   [SANDBOX_NET_ALLOW] = "allow",
	[SANDBOX_NET_OPEN] = "open", [SANDBOX_NET_GIVEN] = "given",
};

static void member(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	if (value)
		json_strz(j, value);
	else
		json_null(j);
}

static void number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void flag(struct json *j, const char *key, bool v)
{
	json_key(j, key);
	json_bool(j, v);
}

static void strings(struct json *j, const char *key, char *const *v, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_strz(j, v[i]);
	json_array_end(j);
}

/* Files that hold the sandbox's name: another one is no other sandbox. */
static bool tells_name(const struct root_op *op)
{
	return op->kind == ROOT_FILE &&
	       (!strcmp(op->target, "/etc/hostname") || !strcmp(op->target, "/etc/hosts"));
}

static void root_op_json(struct json *j, const struct root_op *op, bool with_session)
{
	json_object_begin(j);
	member(j, "do", root_kind_names[op->kind]);
	member(j, "target", op->target);
	if (!with_session && tells_name(op))
		member(j, "text", NULL);
	else if (op->source && op->kind != ROOT_PROC_MASK && op->kind != ROOT_PROC_RO)
		member(j, op->kind == ROOT_FILE ? "text" : "source", op->source);
	if (op->size)
		number(j, "size", op->size);
	if (op->kind == ROOT_IMAGE || op->kind == ROOT_BIND || op->kind == ROOT_TMPFS ||
	    op->kind == ROOT_SCRATCH) {
		flag(j, "writable", op->writable);
		flag(j, "exec", op->exec);
	}
	if (op->ids) {
		number(j, "owner", op->owner);
		number(j, "group", op->group);
	}
	json_object_end(j);
}

static void secrets_json(struct json *j, const struct sandbox_plan *p)
{
	json_key(j, "secrets");
	json_array_begin(j);
	for (size_t i = 0; i < p->secrets_n; i++) {
		json_object_begin(j);
		member(j, "name", p->secrets[i].name);
		number(j, "ttl_ns", p->secrets[i].ttl_ns);
		json_object_end(j);
	}
	json_array_end(j);
}

static void limits_json(struct json *j, const struct sandbox_plan *p)
{
	const struct sandbox_limits *l = &p->limits;

	json_key(j, "limits");
	json_object_begin(j);
	number(j, "memory", l->memory);
	number(j, "pids", l->pids);
	number(j, "cpu_milli", l->cpu_milli);
	number(j, "timeout_ns", l->timeout_ns);
	number(j, "tmp_bytes", l->tmp_bytes);
	number(j, "disk", l->disk);
	number(j, "nofile", l->nofile);
	number(j, "fsize", l->fsize);
	json_object_end(j);
	json_key(j, "controllers");
	json_object_begin(j);
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		member(j, controller_names[i], where_names[p->host.controller[i]]);
	json_object_end(j);
}

static void seccomp_json(struct json *j, const struct seccomp_profile *s)
{
	json_key(j, "seccomp_profile");
	json_object_begin(j);
	member(j, "sha256", s->sha256);
	number(j, "rules", s->n);
	number(j, "left_out", s->left_out);
	number(j, "unknown", s->unknown);
	json_object_end(j);
}

static void name_json(void *arg, const char *name)
{
	json_strz(arg, name);
}

/* Calls that wait for the supervisor's answer, which is EPERM. */
static void notified_json(struct json *j, const struct sandbox_plan *p)
{
	json_key(j, "seccomp_notified");
	json_array_begin(j);
	seccomp_notified_each(p->notify, name_json, j);
	json_array_end(j);
}

static void name_text(void *arg, const char *name)
{
	fprintf(arg, " %s", name);
}

static void notified_text(const struct sandbox_plan *p, FILE *out)
{
	fprintf(out, "  %-10s", "notified");
	seccomp_notified_each(p->notify, name_text, out);
	fprintf(out,
		"\n             and, where the probes do not see what is refused, all of it\n");
}

static void layers_json(struct json *j, const struct sandbox_plan *p)
{
	json_key(j, "layers");
	json_object_begin(j);
	flag(j, "user_namespace", p->userns);
	number(j, "uid", p->uid);
	number(j, "gid", p->gid);
	flag(j, "no_new_privs", true);
	member(j, "capabilities", "none");
	member(j, "seccomp", seccomp_profile_name(p));
	if (p->seccomp)
		seccomp_json(j, p->seccomp);
	notified_json(j, p);
	number(j, "landlock_abi", (uint64_t)p->host.landlock_abi);
	member(j, "net", net_names[p->net]);
	json_object_end(j);
}

static void container_json(struct json *j, const struct sandbox_container *c, bool with_session)
{
	json_key(j, "container");
	json_object_begin(j);
	number(j, "umask", c->umask);
	if (c->netns && with_session)
		member(j, "netns", c->netns);
	json_key(j, "sysctls");
	json_array_begin(j);
	for (size_t i = 0; i < c->sysctls_n; i++) {
		json_strz(j, c->sysctls[i].path);
		json_strz(j, c->sysctls[i].value);
	}
	json_array_end(j);
	json_key(j, "rlimits");
	json_array_begin(j);
	for (size_t i = 0; i < c->rlimits_n; i++) {
		json_u64(j, (uint64_t)c->rlimits[i].which);
		json_u64(j, c->rlimits[i].soft);
		json_u64(j, c->rlimits[i].hard);
	}
	json_array_end(j);
	json_object_end(j);
}

int plan_json(const struct sandbox_plan *p, bool with_session, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	member(&j, "backend", p->backend->name);
	if (p->platform)
		member(&j, "platform", p->platform);
	if (with_session) {
		member(&j, "session", p->session);
		member(&j, "name", p->name);
		member(&j, "tenant", p->tenant);
		member(&j, "policy", p->hash[0] ? p->hash : NULL);
	}
	if (with_session) { /* another command in the same sandbox has the same hash, which rules and people compare */
		strings(&j, "command", p->argv, p->argc);
		strings(&j, "env", p->env, p->env_n);
		member(&j, "cwd", p->cwd);
		member(&j, "hostname", p->hostname);
	}
	if (p->tty)
		flag(&j, "tty", true);
	if (p->serve)
		flag(&j, "serve", true);
	limits_json(&j, p);
	layers_json(&j, p);
	if (p->image)
		member(&j, "image", p->image);
	if (p->container)
		container_json(&j, p->container, with_session);
	if (p->egress)
		egress_policy_json(p->egress, &j);
	if (p->secrets_n)
		secrets_json(&j, p);
	json_key(&j, "root");
	json_array_begin(&j);
	for (size_t i = 0; i < p->root_n; i++)
		root_op_json(&j, &p->root[i], with_session);
	json_array_end(&j);
	json_key(&j, "degraded");
	json_array_begin(&j);
	for (size_t i = 0; i < p->degraded_n; i++)
		json_strz(&j, p->degraded[i]);
	json_array_end(&j);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}

int plan_hash(struct sandbox_plan *p)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	auto_buf struct buf out = { 0 };
	int r;

	buf_init(&out, PLAN_JSON_MAX);
	r = plan_json(p, false, &out);
	if (r < 0)
		return r;
	if (EVP_Digest(out.p, out.n, sum, &n, EVP_sha256(), NULL) != 1 || n != 32)
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		snprintf(p->hash + i * 2, 3, "%02x", sum[i]);
	return 0;
}

static void size_text(FILE *out, const char *name, uint64_t bytes)
{
	if (!bytes)
		fprintf(out, "  %-10s no limit\n", name);
	else if (bytes % (1u << 20))
		fprintf(out, "  %-10s %llu bytes\n", name, (unsigned long long)bytes);
	else
		fprintf(out, "  %-10s %llu MiB\n", name, (unsigned long long)(bytes >> 20));
}

static void count_text(FILE *out, const char *name, uint64_t n, const char *unit)
{
	if (n)
		fprintf(out, "  %-10s %llu%s\n", name, (unsigned long long)n, unit);
	else
		fprintf(out, "  %-10s no limit\n", name);
}

/* Bytes that would act on a terminal are shown as '?'. */
static void word_text(FILE *out, const char *z)
{
	for (; *z; z++)
		fputc((unsigned char)*z < 0x20 || *z == 0x7f ? '?' : *z, out);
}

static void root_text(const struct sandbox_plan *p, FILE *out)
{
	fputs("root\n", out);
	for (size_t i = 0; i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		fprintf(out, "  %-8s %s ", root_kind_names[op->kind], op->writable ? "rw" : "ro");
		word_text(out, op->target);
		if (op->source &&
		    (op->kind == ROOT_BIND || op->kind == ROOT_LINK || op->kind == ROOT_IMAGE) &&
		    strcmp(op->source, op->target) != 0) {
			fputs(op->kind == ROOT_LINK ? " -> " : " from ", out);
			word_text(out, op->source);
		}
		fputc('\n', out);
	}
}

static void reach_text(const struct egress_policy *e, FILE *out)
{
	char text[EGRESS_TEXT_MAX];

	fputs("reach\n", out);
	if (e->open)
		fputs("  all but private, local and metadata addresses\n", out);
	for (size_t i = 0; i < e->rows_n; i++) {
		const struct egress_row *r = &e->rows[i];

		fprintf(out, "  %s%s:%u ", r->wildcard ? "*." : "", r->name, r->port);
		if (r->route)
			fprintf(out, "-> %s, with its headers\n",
				e->routes[r->route - 1].spec->url);
		else if (r->service)
			fprintf(out, "-> %s\n", egress_addr_text(&r->to, r->to_port, text));
		else
			fprintf(out, "(%s)\n", egress_check_names[r->check]);
	}
	count_text(out, "connects", e->limits.connections, " at once");
	count_text(out, "new", e->limits.rate, " a second");
	count_text(out, "questions", e->limits.dns, " a second");
	size_text(out, "bytes", e->limits.bytes);
}

static void plan_text(const struct sandbox_plan *p, FILE *out)
{
	const struct sandbox_limits *l = &p->limits;

	fprintf(out, "backend      %s\nsession      %s\npolicy hash  %s\ncommand     ",
		p->backend->name, p->session, p->hash);
	for (size_t i = 0; i < p->argc; i++) {
		fputc(' ', out);
		word_text(out, p->argv[i]);
	}
	fprintf(out, "\nlimits\n");
	size_text(out, "memory", l->memory);
	count_text(out, "pids", l->pids, "");
	count_text(out, "cpu", l->cpu_milli, "/1000 of a CPU");
	count_text(out, "timeout", l->timeout_ns / 1000000, " ms");
	size_text(out, "tmp", l->tmp_bytes);
	size_text(out, "workspace", l->disk);
	count_text(out, "open files", l->nofile, "");
	fprintf(out, "layers\n  %-10s %s\n  %-10s %s\n  %-10s ABI %d\n  %-10s %s\n", "userns",
		p->userns ? "own, one id, nested ones forbidden" : "none", "seccomp",
		seccomp_profile_name(p), "landlock", p->host.landlock_abi, "network",
		net_names[p->net]);
	fprintf(out, "  %-10s %u:%u\n", "user", p->uid, p->gid);
	if (p->notify)
		notified_text(p, out);
	if (p->tty)
		fprintf(out, "  %-10s own, in the sandbox's devpts\n", "terminal");
	if (p->egress)
		reach_text(p->egress, out);
	for (size_t i = 0; i < p->secrets_n; i++) {
		fprintf(out, "secret       " SECRET_DIR "/%s", p->secrets[i].name);
		if (p->secrets[i].ttl_ns)
			fprintf(out, " for %llu ms",
				(unsigned long long)(p->secrets[i].ttl_ns / 1000000));
		fputc('\n', out);
	}
	if (p->seccomp)
		fprintf(out, "seccomp      %zu rules, %zu left out, %zu names unknown, sha256 %s\n",
			p->seccomp->n, p->seccomp->left_out, p->seccomp->unknown,
			p->seccomp->sha256);
	if (p->image)
		fprintf(out, "image        %s\n", p->image);
	root_text(p, out);
	for (size_t i = 0; i < p->degraded_n; i++)
		fprintf(out, "degraded     %s\n", p->degraded[i]);
}

int sandbox_plan_print(const struct sandbox_plan *p, bool json, FILE *out)
{
	auto_buf struct buf text = { 0 };
	int r;

	buf_init(&text, PLAN_JSON_MAX);
	if (json) {
		r = plan_json(p, true, &text);
		if (r < 0)
			return r;
		fwrite(text.p, 1, text.n, out);
		fputc('\n', out);
	} else {
		plan_text(p, out);
	}
	return fflush(out) == 0 ? 0 : -errno;
}
