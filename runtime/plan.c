// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"
#include "runtime/egress/route.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "runtime/backend.h"
#include "runtime/seccomp.h"
#include "runtime/seccomp_profile.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

DEFINE_AUTO(sandbox_plan, sandbox_plan_free)

#define MIB ((uint64_t)1 << 20)

#define HOST_FRESH_NS (10 * NSEC_PER_SEC)
#define MEMORY_MIN    (8 * MIB) /* below it not even init and a shell start */
#define PIDS_MIN      2		/* init and the payload */
#define NOFILE_MIN    16
#define PIDS_MAX      (1u << 22)   /* PID_MAX_LIMIT: no kernel has more */
#define NOFILE_MAX    (1u << 20)   /* fs.nr_open as kernels come */
#define CPU_MIN	      10	   /* of a period of 100 ms the kernel gives 1 ms or more */
#define CPU_MAX	      8192000	   /* NR_CPUS, in thousandths */
#define BYTES_MAX     (1ull << 50) /* more than any machine has, and far from where sums wrap */
#define TIMEOUT_MAX   (366ull * 86400 * NSEC_PER_SEC)
#define ARENA_MAX     (PLAN_ARGS_MAX + (size_t)PLAN_ARGC_MAX * sizeof(char *) * 2 + (4u << 20))

/* Sizes that hold ordinary builds and test suites, and no more: raising one is an option away, a
 * host that swaps itself to death is not. No time limit, since only the operator knows one. */
void sandbox_spec_defaults(struct sandbox_spec *spec)
{
	*spec = (struct sandbox_spec){
		.backend = "ns",
		.uid = PLAN_INNER_ID,
		.gid = PLAN_INNER_ID,
		.net = SANDBOX_NET_NONE,
		.limits = {
			.memory = 1024 * MIB,
			.pids = 512,
			.tmp_bytes = 256 * MIB,
			.disk = 512 * MIB,
			.nofile = 1024,
		},
	};
}

static const char *const env_defaults[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	"HOME=/workspace",
	"USER=sandbox",
	"LOGNAME=sandbox",
	"SHELL=/bin/sh",
	"TMPDIR=/tmp",
	"LANG=C.UTF-8",
	"container=warder",
};

void plan_degrade(struct sandbox_plan *p, const char *name)
{
	for (size_t i = 0; i < p->degraded_n; i++)
		if (!strcmp(p->degraded[i], name))
			return;
	if (p->degraded_n < PLAN_DEGRADED_MAX)
		p->degraded[p->degraded_n++] = name;
}

bool plan_path_is_clean(const char *path)
{
	if (path[0] != '/' || !path[1] || strlen(path) >= HOST_PATH_MAX)
		return false;
	for (const char *c = path; *c;) {
		size_t n = strcspn(++c, "/");

		if (n == 0 || (n == 1 && c[0] == '.') || (n == 2 && c[0] == '.' && c[1] == '.'))
			return false;
		c += n;
	}
	return true;
}

/* Becomes a directory name in every cgroup hierarchy. */
static bool is_session_name(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > SANDBOX_NAME_MAX || !isalnum((unsigned char)s[0]))
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_')
			return false;
	return true;
}

/* RFC 1123 label, or the default one. */
static const char *hostname_from(const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (n == 0 || n > SANDBOX_NAME_MAX || name[0] == '-' || name[n - 1] == '-')
		return "sandbox";
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-')
			return "sandbox";
	return name;
}

/* A label: stands in every event, in file names of sinks and on people's terminals. */
static int check_label(const char *what, const char *z, struct err *err)
{
	size_t n = z ? strlen(z) : 1;

	if (n == 0 || n > SANDBOX_NAME_MAX)
		return err_set(err, EINVAL, "%s: expected 1 to %d bytes", what, SANDBOX_NAME_MAX);
	for (; z && *z; z++)
		if ((unsigned char)*z < 0x20 || *z == 0x7f)
			return err_set(err, EINVAL, "%s: control character \\x%02x in it", what,
				       (unsigned char)*z);
	return 0;
}

static const char *copy(struct sandbox_plan *p, const char *z)
{
	return z ? arena_strndup(&p->mem, z, strlen(z)).p : NULL;
}

static int copy_argv(struct sandbox_plan *p, const struct sandbox_spec *spec, size_t *bytes,
		     struct err *err)
{
	if (!spec->argv || (!spec->argv[0] && !spec->serve) || (spec->argv[0] && !spec->argv[0][0]))
		return err_set(err, EINVAL, "no command given");
	while (spec->argv[p->argc]) {
		*bytes += strlen(spec->argv[p->argc]) + 1;
		if (++p->argc > PLAN_ARGC_MAX || *bytes > PLAN_ARGS_MAX)
			return err_set(err, E2BIG,
				       "command: more than %u arguments or %u bytes of them",
				       PLAN_ARGC_MAX, PLAN_ARGS_MAX);
	}
	p->argv = arena_zalloc(&p->mem, (p->argc + 1) * sizeof(*p->argv));
	if (!p->argv)
		return err_set(err, ENOMEM, "command: %m");
	for (size_t i = 0; i < p->argc; i++) {
		p->argv[i] = (char *)copy(p, spec->argv[i]);
		if (!p->argv[i])
			return err_set(err, ENOMEM, "command: %m");
	}
	return 0;
}

/* Adds "K=V", or takes the place of an earlier K. */
static int env_put(struct sandbox_plan *p, const char *kv, size_t *bytes, struct err *err)
{
	const char *eq = strchr(kv, '=');
	size_t i, n = eq ? (size_t)(eq - kv) : 0;

	if (n == 0)
		return err_set(err, EINVAL, "environment '%.64s': expected NAME=VALUE", kv);
	*bytes += strlen(kv) + 1;
	if (*bytes > PLAN_ARGS_MAX)
		return err_set(err, E2BIG, "environment: more than %u bytes with the command",
			       PLAN_ARGS_MAX);
	for (i = 0; i < p->env_n; i++)
		if (!strncmp(p->env[i], kv, n + 1))
			break;
	p->env[i] = (char *)copy(p, kv);
	if (!p->env[i])
		return err_set(err, ENOMEM, "environment: %m");
	if (i == p->env_n)
		p->env_n++;
	return 0;
}

/* It comes from the operator's environment, which is not made for the payload's eyes: a plain word or nothing. */
static bool is_terminal_type(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > 40)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("-+._", *s))
			return false;
	return true;
}

static int copy_env(struct sandbox_plan *p, const struct sandbox_spec *spec, size_t *bytes,
		    struct err *err)
{
	size_t max = ARRAY_SIZE(env_defaults) + SANDBOX_ENV_MAX + 2;
	int r = 0;

	if (spec->env_n > SANDBOX_ENV_MAX)
		return err_set(err, E2BIG, "environment: %zu variables, at most %d", spec->env_n,
			       SANDBOX_ENV_MAX);
	p->env = arena_zalloc(&p->mem, max * sizeof(*p->env));
	if (!p->env)
		return err_set(err, ENOMEM, "environment: %m");
	for (size_t i = 0; r == 0 && !p->container && i < ARRAY_SIZE(env_defaults); i++)
		r = env_put(p, env_defaults[i], bytes, err);
	if (r == 0 && spec->tty && !p->container) {
		char text[64];

		snprintf(text, sizeof(text), "TERM=%s",
			 is_terminal_type(spec->term) ? spec->term : "xterm");
		r = env_put(p, text, bytes, err);
	}
	for (size_t i = 0; r == 0 && i < spec->env_n; i++)
		r = env_put(p, spec->env[i], bytes, err);
	return r;
}

static int check_limits(struct sandbox_plan *p, struct err *err)
{
	struct sandbox_limits *l = &p->limits;
	static const char *const names[] = { "limit.memory", "limit.pids", "limit.cpu" };
	const uint64_t asked[CONTROLLER_COUNT] = { l->memory, l->pids, l->cpu_milli };
	const struct {
		const char *name;
		uint64_t v, min, max;
	} bounds[] = {
		{ "memory", l->memory, MEMORY_MIN, BYTES_MAX },
		{ "pids", l->pids, PIDS_MIN, PIDS_MAX },
		{ "open files", l->nofile, NOFILE_MIN, NOFILE_MAX },
		{ "cpus (thousandths)", l->cpu_milli, CPU_MIN, CPU_MAX },
		{ "timeout (ns)", l->timeout_ns, 1, TIMEOUT_MAX },
		{ "disk", l->disk, 1, BYTES_MAX },
		{ "tmp", l->tmp_bytes, 1, BYTES_MAX },
		{ "fsize", l->fsize, 1, BYTES_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		uint64_t v = bounds[i].v;

		if (v && v < bounds[i].min)
			return err_set(err, EINVAL, "%s limit %llu: at least %llu are needed",
				       bounds[i].name, (unsigned long long)v,
				       (unsigned long long)bounds[i].min);
		if (v > bounds[i].max)
			return err_set(err, EINVAL, "%s limit %llu: more than %llu is no limit",
				       bounds[i].name, (unsigned long long)v,
				       (unsigned long long)bounds[i].max);
	}
	if (!l->tmp_bytes || !l->disk)
		return err_set(err, EINVAL, "the private file systems need a size");
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (asked[i] && p->host.controller[i] == CONTROLLER_ABSENT)
			plan_degrade(p, names[i]);
	return 0;
}

static int check_host(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	if (!p->host.v2[0])
		return err_set(err, ENOENT,
			       "no cgroup v2 hierarchy is mounted (mount -t cgroup2 none DIR)");
	if (!p->host.seccomp)
		return err_set(err, ENOSYS, "this kernel has no seccomp filters");
	p->userns = p->host.userns;
	if (!p->userns)
		plan_degrade(p, "userns");
	if (p->host.landlock_abi == 0)
		plan_degrade(p, "landlock");
	/* No comparison of what the guest's kernel tells with its calls, and no sends. */
	if (p->backend->mirrors && !p->backend->mirrors(p))
		plan_degrade(p, "gvisor.mirror");
	if (p->net == SANDBOX_NET_HOST)
		plan_degrade(p, "unsafe.net_host");
	if (spec->workspace_unlimited)
		plan_degrade(p, "limit.disk");
	if (!p->backend->holds && p->host.seccomp_notify)
		p->notify = SECCOMP_NOTIFY_BLIND;
	else if (!p->backend->holds)
		plan_degrade(p, "seccomp.notify");
	return 0;
}

/* Lists of names for a network that has none would be read as protection. */
static int check_net_lists(const struct sandbox_spec *spec, struct err *err)
{
	bool out = spec->net == SANDBOX_NET_ALLOW || spec->net == SANDBOX_NET_OPEN;

	if (spec->net_allow_n && spec->net != SANDBOX_NET_ALLOW)
		return err_set(err, EINVAL,
			       "network: names are listed, and the mode is not 'allow'");
	if (!out &&
	    (spec->net_services_n || spec->net_routes_n || spec->net_limits || spec->net_dns))
		return err_set(
			err, EINVAL,
			"network: services, limits and a resolver are for 'allow' and 'open'");
	if (spec->net == SANDBOX_NET_ALLOW && !spec->net_allow_n && !spec->net_services_n &&
	    !spec->net_routes_n)
		return err_set(err, EINVAL, "network: mode 'allow' without a name that is allowed");
	if (spec->net_allow_n > SANDBOX_NET_MAX || spec->net_services_n > SANDBOX_NET_MAX)
		return err_set(err, E2BIG, "network: more than %d entries in a list",
			       SANDBOX_NET_MAX);
	return 0;
}

static int plan_net(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	int r = check_net_lists(spec, err);

	p->net = spec->net;
	if (r == 0 && p->net == SANDBOX_NET_GIVEN && !(spec->container && spec->container->netns))
		r = err_set(err, EINVAL, "network: no namespace is given");
	if (r < 0 || (p->net != SANDBOX_NET_ALLOW && p->net != SANDBOX_NET_OPEN))
		return r;
	p->egress = arena_zalloc(&p->mem, sizeof(*p->egress));
	if (!p->egress)
		return err_set(err, ENOMEM, "network policy: %m");
	egress_policy_init(p->egress);
	p->egress->open = p->net == SANDBOX_NET_OPEN;
	for (size_t i = 0; r == 0 && i < spec->net_allow_n; i++)
		r = egress_policy_allow(p->egress, &p->mem, spec->net_allow[i], err);
	for (size_t i = 0; r == 0 && i < spec->net_services_n; i++)
		r = egress_policy_service(p->egress, &p->mem, spec->net_services[i], err);
	for (size_t i = 0; r == 0 && i < spec->net_routes_n; i++)
		r = egress_policy_route(p->egress, &p->mem, &spec->net_routes[i], err);
	if (r == 0 && spec->net_limits)
		r = egress_policy_limits(p->egress, spec->net_limits, err);
	if (r == 0 && spec->net_dns)
		r = egress_policy_dns(p->egress, spec->net_dns, err);
	return r < 0 ? err_wrap(err, r, "network") : 0;
}

/* One id of the host's is all that there is: what it is called inside decides what programs believe, and nothing else. */
static int plan_ids(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	p->uid = spec->uid;
	p->gid = spec->gid;
	if (p->uid > PLAN_INNER_MAX || p->gid > PLAN_INNER_MAX)
		return err_set(err, EINVAL, "user %u:%u: at most %u", p->uid, p->gid,
			       PLAN_INNER_MAX);
	if (!strcmp(p->backend->name, "gvisor") &&
	    (p->uid != PLAN_INNER_ID || p->gid != PLAN_INNER_ID))
		return err_set(err, EOPNOTSUPP,
			       "user %u:%u: in a sandbox of gvisor there is user %d only (--user)",
			       p->uid, p->gid, PLAN_INNER_ID);
	if (!p->host.userns && (p->uid != PLAN_INNER_ID || p->gid != PLAN_INNER_ID))
		return err_set(err, EOPNOTSUPP, "user %u:%u: this host has no user namespaces",
			       p->uid, p->gid);
	return 0;
}

/* Compiled here, too: what cannot be is told before anything is begun. */
static int plan_seccomp(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	const char *name = spec->seccomp_name ? spec->seccomp_name : "seccomp profile";
	const struct sock_filter *filter;
	struct utsname kernel;
	size_t n;
	int r;

	if (!spec->seccomp)
		return 0;
	if (!strcmp(p->backend->name, "gvisor"))
		return err_set(err, EOPNOTSUPP,
			       "%s: a sandbox of gvisor takes no seccomp profile: its calls reach "
			       "gvisor's own kernel, not this host's",
			       name);
	p->seccomp = arena_zalloc(&p->mem, sizeof(*p->seccomp));
	if (!p->seccomp || uname(&kernel) < 0)
		return err_set(err, ENOMEM, "%s: %m", name);
	r = seccomp_profile_parse(p->seccomp, &p->mem, name,
				  (struct str){ spec->seccomp, spec->seccomp_n }, kernel.release,
				  err);
	if (r == 0) {
		r = seccomp_get(p, p->notify, &filter, &n, err);
		if (r < 0)
			err_wrap(err, r, "%s", name);
	}
	return r;
}

static int fill(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	size_t bytes = 0;
	int r;

	p->backend = backend_find(spec->backend, err);
	if (!p->backend)
		return -EINVAL;
	if (spec->platform && !p->backend->holds)
		return err_set(err, EINVAL, "platform '%.32s': backend %s has none", spec->platform,
			       p->backend->name);
	if (spec->platform && strcmp(spec->platform, "ptrace") != 0 &&
	    strcmp(spec->platform, "systrap") != 0)
		return err_set(err, EINVAL, "gVisor's platform '%.32s': ptrace or systrap",
			       spec->platform);
	p->platform = spec->platform ? copy(p, spec->platform) : NULL;
	if (!is_session_name(spec->session))
		return err_set(err, EINVAL, "session '%.64s': letters, digits, - and _, at most %d",
			       spec->session ? spec->session : "", SANDBOX_NAME_MAX);
	r = check_label("sandbox name", spec->name, err);
	if (r == 0)
		r = check_label("tenant", spec->tenant, err);
	if (r < 0)
		return r;
	p->session = copy(p, spec->session);
	p->name = copy(p, spec->name);
	p->tenant = copy(p, spec->tenant);
	p->container = spec->container;
	p->hostname = copy(p, hostname_from(p->container && p->container->hostname
						    ? p->container->hostname
						    : spec->name));
	p->cwd = copy(p, spec->cwd ? spec->cwd : "/workspace");
	if (!p->session || !p->hostname || !p->cwd || (spec->name && !p->name) ||
	    (spec->tenant && !p->tenant))
		return err_set(err, ENOMEM, "plan: %m");
	if (strcmp(p->cwd, "/") != 0 && !plan_path_is_clean(p->cwd))
		return err_set(err, EINVAL,
			       "working directory '%s': expected an absolute path without . and ..",
			       p->cwd);
	r = plan_ids(p, spec, err);
	if (r == 0 && p->container && !spec->root)
		r = err_set(err, EINVAL, "a container without a root");
	if (r < 0)
		return r;
	p->limits = spec->limits;
	p->tty = spec->tty;
	p->serve = spec->serve;
	p->tty_rows = spec->tty_rows;
	p->tty_cols = spec->tty_cols;
	r = plan_net(p, spec, err);
	if (r == 0)
		r = check_host(p, spec, err);
	if (r == 0)
		r = copy_argv(p, spec, &bytes, err);
	if (r == 0)
		r = copy_env(p, spec, &bytes, err);
	if (r == 0)
		r = check_limits(p, err);
	if (r == 0)
		r = plan_root(p, spec, err);
	if (r == 0)
		r = plan_binds(p, spec, err);
	if (r == 0) /* which of our own filters stands behind it is known now */
		r = plan_seccomp(p, spec, err);
	if (r == 0 && plan_hash(p) < 0)
		r = err_set(err, ENOMEM, "plan: %m");
	return r;
}

int plan_build(struct sandbox_plan **ret, const struct sandbox_spec *spec, const struct host *host,
	       struct err *err)
{
	AUTO(sandbox_plan) struct sandbox_plan *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_set(err, ENOMEM, "plan: %m");
	arena_init(&p->mem, ARENA_MAX);
	p->host = *host;
	r = fill(p, spec, err);
	if (r < 0)
		return r;
	*ret = take_ptr(p);
	return 0;
}

/* An agent makes many plans a second, and a host's hierarchies do not come and go: ask anew only
 * after a while. */
int sandbox_plan_new(struct sandbox_plan **ret, const struct sandbox_spec *spec, struct err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct host known;
	static uint64_t asked;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct host host;

	pthread_mutex_lock(&lock);
	if (!asked || now - asked > HOST_FRESH_NS) {
		host_probe(&known);
		asked = now;
	}
	host = known;
	pthread_mutex_unlock(&lock);
	return plan_build(ret, spec, &host, err);
}

void sandbox_plan_free(struct sandbox_plan *p)
{
	if (!p)
		return;
	arena_done(&p->mem);
	free(p);
}

const struct egress_policy *sandbox_plan_egress(const struct sandbox_plan *p)
{
	return p->egress;
}

bool sandbox_plan_mirrors(const struct sandbox_plan *p)
{
	return p->backend->mirrors && p->backend->mirrors(p);
}

bool sandbox_plan_holds(const struct sandbox_plan *p)
{
	return p->backend->holds;
}

const char *sandbox_plan_image(const struct sandbox_plan *p)
{
	return p->image;
}

const char *sandbox_plan_hash(const struct sandbox_plan *p)
{
	return p->hash;
}

size_t sandbox_plan_env(const struct sandbox_plan *p, char *const **ret)
{
	*ret = p->env;
	return p->env_n;
}

size_t sandbox_plan_degraded(const struct sandbox_plan *p, const char *const **ret)
{
	*ret = p->degraded;
	return p->degraded_n;
}
