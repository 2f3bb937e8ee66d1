// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/agent_park.h"

#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/cli/util.h"
#include "userspace/config/flat.h"

#define QUEUE_DEFAULT	   32
#define QUEUE_MAX	   1024
#define QUEUE_WAIT_DEFAULT (30 * NSEC_PER_SEC)
#define SANDBOXES_DEFAULT  64

/* ---- the file ---- */

static int add_name(struct agent_names *names, const char *value, struct err *err)
{
	if (names->n == AGENT_NAMES_MAX)
		return err_set(err, E2BIG, "more than %d names", AGENT_NAMES_MAX);
	if (!*value || strlen(value) >= REGISTRY_NAME)
		return err_set(err, EINVAL, "'%s': a name of 1 to %d bytes", value,
			       REGISTRY_NAME - 1);
	snprintf(names->v[names->n++], REGISTRY_NAME, "%s", value);
	return 0;
}

static int set_quota(struct agent_quota *q, const char *key, const char *value, struct err *err)
{
	int r = -ENOENT;

	if (!strcmp(key, "sandboxes"))
		r = parse_u64(value, &q->sandboxes);
	else if (!strcmp(key, "memory"))
		r = parse_size(value, &q->memory);
	else if (!strcmp(key, "cpu"))
		r = parse_fraction(value, &q->cpu_milli);
	else if (!strcmp(key, "disk"))
		r = parse_size(value, &q->disk);
	if (r < 0 && r != -ENOENT)
		return err_set(err, EINVAL, "'%s' is not a number or size", value);
	return r;
}

static struct agent_tenant *tenant_row(struct agent_config *c, const char *name, size_t n)
{
	struct agent_tenant *t;

	for (size_t i = 0; i < c->tenants_n; i++)
		if (strlen(c->tenant[i].name) == n && !strncmp(c->tenant[i].name, name, n))
			return &c->tenant[i];
	if (c->tenants_n == AGENT_TENANTS_MAX || n == 0 || n >= REGISTRY_NAME)
		return NULL;
	t = &c->tenant[c->tenants_n++];
	memcpy(t->name, name, n);
	t->quota = c->quota;
	return t;
}

/* "tenants.NAME.key"; names have no dots. */
static int set_tenant(struct agent_config *c, const char *key, const char *value, struct err *err)
{
	const char *dot = strchr(key, '.');
	struct agent_tenant *t = dot ? tenant_row(c, key, (size_t)(dot - key)) : NULL;

	if (!dot)
		return -ENOENT;
	if (!t)
		return err_set(err, E2BIG, "more than %d tenants, or a name that is too long",
			       AGENT_TENANTS_MAX);
	if (!strcmp(dot + 1, "users"))
		return add_name(&t->users, value, err);
	if (!strcmp(dot + 1, "groups"))
		return add_name(&t->groups, value, err);
	return set_quota(&t->quota, dot + 1, value, err);
}

static int set_key(struct agent_config *c, const char *key, const char *value, struct err *err)
{
	if (!strcmp(key, "groups"))
		return add_name(&c->groups, value, err);
	if (!strcmp(key, "policies"))
		return add_name(&c->policies, value, err);
	if (!strcmp(key, "queue"))
		return parse_u64(value, &c->queue) < 0 || c->queue > QUEUE_MAX
			       ? err_set(err, EINVAL, "'%s' is not a number up to %d", value,
					 QUEUE_MAX)
			       : 0;
	if (!strcmp(key, "queue_wait"))
		return parse_duration_ns(value, &c->queue_wait_ns) < 0
			       ? err_set(err, EINVAL, "'%s' is not a time like 30s", value)
			       : 0;
	if (!strcmp(key, "parked"))
		return parse_u64(value, &c->parked) < 0 || c->parked > AGENT_PARKED_MAX
			       ? err_set(err, EINVAL, "'%s' is not a number up to %d", value,
					 AGENT_PARKED_MAX)
			       : 0;
	if (!strncmp(key, "quota.", 6))
		return set_quota(&c->quota, key + 6, value, err);
	if (!strncmp(key, "tenants.", 8))
		return set_tenant(c, key + 8, value, err);
	return -ENOENT;
}

/* Names may be many, all else is one. */
static bool takes_list(const char *key)
{
	static const char *const names[] = { "groups", "policies", "users" };
	const char *dot = strncmp(key, "tenants.", 8) ? NULL : strrchr(key, '.');

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(dot ? dot + 1 : key, names[i]))
			return true;
	return false;
}

static int unknown_key(const struct flat_file *f, const struct flat_entry *e, struct err *err)
{
	static const char *const names[] = { "groups",
					     "policies",
					     "queue",
					     "queue_wait",
					     "parked",
					     "quota.sandboxes",
					     "quota.memory",
					     "quota.cpu",
					     "quota.disk",
					     "tenants.NAME.users",
					     "tenants.NAME.memory" };
	const char *near = closest_name(e->key, names, ARRAY_SIZE(names));

	return err_set(err, EINVAL, "%s:%d:%d: unknown key '%s'%s%s%s", f->path, e->line, e->col,
		       e->key, near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
}

int agent_config_load(struct agent_config *ret, struct err *err)
{
	struct flat_file f = { 0 };
	char path[PATH_MAX];
	int r = 0;

	*ret = (struct agent_config){ .queue = QUEUE_DEFAULT,
				      .queue_wait_ns = QUEUE_WAIT_DEFAULT,
				      .quota = { .sandboxes = SANDBOXES_DEFAULT } };
	if ((size_t)snprintf(path, sizeof(path), "%s/agent.yaml", config_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "configuration directory: path too long");
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = flat_load(&f, path, err);
	/* The quota of all first: it is where a tenant's begins. */
	for (int pass = 0; r == 0 && pass < 2; pass++)
		for (size_t i = 0; r == 0 && i < f.n; i++) {
			const struct flat_entry *e = &f.v[i];

			if (!strncmp(e->key, "tenants.", 8) != (pass == 1))
				continue;
			r = set_key(ret, e->key, e->value, err);
			if (r == -ENOENT)
				r = unknown_key(&f, e, err);
			else if (r < 0)
				err_wrap(err, r, "%s:%d:%d: %s", f.path, e->line, e->col, e->key);
			else if (!takes_list(e->key))
				r = flat_single(&f, e, err);
		}
	flat_done(&f);
	return r;
}

/* ---- who is it ---- */

bool agent_names_have(const struct agent_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->v[i], name))
			return true;
	return false;
}

static bool is_in(const struct agent_peer *p, const struct agent_names *groups)
{
	for (size_t i = 0; i < groups->n; i++) {
		const struct group *g = getgrnam(groups->v[i]);

		if (g && g->gr_gid == p->gid)
			return true;
		for (size_t k = 0; g && k < p->groups_n; k++)
			if (g->gr_gid == p->groups[k])
				return true;
	}
	return false;
}

static const struct agent_tenant *tenant_of(const struct agent_config *c,
					    const struct agent_peer *p)
{
	const struct passwd *pw = getpwuid(p->uid);

	for (size_t i = 0; i < c->tenants_n; i++)
		if ((pw && agent_names_have(&c->tenant[i].users, pw->pw_name)) ||
		    is_in(p, &c->tenant[i].groups))
			return &c->tenant[i];
	return NULL;
}

int agent_peer_of(struct agent_peer *ret, int sock, const struct agent_config *c, struct err *err)
{
	const struct agent_tenant *t;
	struct ucred cred;
	socklen_t n = sizeof(cred);

	*ret = (struct agent_peer){ 0 };
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n) < 0)
		return err_set(err, errno, "who is it: %m");
	ret->uid = cred.uid;
	ret->gid = cred.gid;
	ret->pid = cred.pid;
	n = sizeof(ret->groups);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, ret->groups, &n) == 0)
		ret->groups_n = n / sizeof(ret->groups[0]); /* more than that many: none of them */
	ret->is_root = cred.uid == 0;
	snprintf(ret->who, sizeof(ret->who), "uid %u, pid %d", cred.uid, (int)cred.pid);
	t = ret->is_root ? NULL : tenant_of(c, ret);
	if (!ret->is_root && !t && !is_in(ret, &c->groups))
		return err_set(
			err, EACCES,
			"uid %u may not speak with this agent: its groups are in %s/agent.yaml",
			cred.uid, config_dir());
	if (t)
		snprintf(ret->tenant, sizeof(ret->tenant), "%s", t->name);
	else if (!ret->is_root)
		snprintf(ret->tenant, sizeof(ret->tenant), "uid-%u", cred.uid);
	return 0;
}

const struct agent_quota *agent_quota_of(const struct agent_config *c, const char *tenant)
{
	for (size_t i = 0; i < c->tenants_n; i++)
		if (!strcmp(c->tenant[i].name, tenant))
			return &c->tenant[i].quota;
	return &c->quota;
}
