// SPDX-License-Identifier: Apache-2.0
/* From options to what the sandbox is to be. */
#include "userspace/cli/run_args.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/run_status.h"

static int split_bind(struct sandbox_spec *spec, const char *text, bool writable, struct err *err)
{
	struct sandbox_bind *b;
	char *colon;

	if (spec->binds_n == SANDBOX_MOUNTS_MAX)
		return err_set(err, E2BIG, "more than %d binds", SANDBOX_MOUNTS_MAX);
	b = &spec->binds[spec->binds_n];
	b->source = strdup(text); /* lives as long as the process */
	if (!b->source)
		return -ENOMEM;
	colon = strchr(b->source, ':');
	if (colon)
		*colon = 0;
	b->target = colon ? colon + 1 : b->source;
	b->writable = writable;
	spec->binds_n++;
	return 0;
}

static bool holds_or_in(const char *dir, const char *path)
{
	auto_free char *a = realpath(dir, NULL), *b = realpath(path, NULL);
	size_t n, m;

	if (!a || !b)
		return false;
	n = strlen(a) > 1 ? strlen(a) : 0; /* "/" holds everything */
	m = strlen(b) > 1 ? strlen(b) : 0;
	return (!strncmp(b, a, n) && (!b[n] || b[n] == '/')) ||
	       (!strncmp(a, b, m) && (!a[m] || a[m] == '/'));
}

int run_check_writable(const struct sandbox_spec *spec, struct err *err)
{
	const char *const ours[] = { state_dir(), run_dir(), config_dir() };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (spec->workspace && holds_or_in(ours[i], spec->workspace))
			return err_set(
				err, EPERM,
				"option '--workspace': '%s' would let the sandbox write to '%s'",
				spec->workspace, ours[i]);
		for (size_t k = 0; k < spec->binds_n; k++)
			if (spec->binds[k].writable && holds_or_in(ours[i], spec->binds[k].source))
				return err_set(
					err, EPERM,
					"option '--rw': '%s' would let the sandbox write to '%s'",
					spec->binds[k].source, ours[i]);
	}
	return 0;
}

static void set_env(struct sandbox_spec *spec, const struct option_list *env)
{
	for (size_t i = 0; i < env->n; i++)
		spec->env[spec->env_n++] = env->v[i];
}

int run_make_spec(struct sandbox_spec *spec, const struct run_args *a, char **command,
		  struct err *err)
{
	struct sandbox_limits *lim = &spec->limits;
	int r = 0;

	sandbox_spec_defaults(spec);
	spec->argv = command;
	if (a->backend)
		spec->backend = a->backend;
	spec->platform = a->platform;
	spec->name = a->name;
	spec->tenant = a->tenant;
	spec->workspace = a->workspace;
	spec->cwd = a->cwd;
	r = run_check_given(a, err);
	lim->timeout_ns = a->timeout;
	lim->memory = a->memory;
	lim->pids = a->pids;
	lim->cpu_milli = a->cpus;
	lim->disk = a->disk;
	lim->tmp_bytes = a->tmp;
	lim->nofile = a->nofile;
	lim->fsize = a->fsize;
	for (size_t i = 0; r == 0 && i < a->ro.n; i++)
		r = split_bind(spec, a->ro.v[i], false, err);
	for (size_t i = 0; r == 0 && i < a->rw.n; i++)
		r = split_bind(spec, a->rw.v[i], true, err);
	if (r == 0)
		r = run_check_writable(spec, err);
	set_env(spec, &a->env);
	spec->tty = a->tty;
	spec->term = getenv("TERM");
	if (r == 0 && a->record && strcmp(a->record, "output") && strcmp(a->record, "none") &&
	    strcmp(a->record, "input"))
		r = err_set(err, EINVAL, "option '--record': '%s' is not output, input or none",
			    a->record);
	if (r == 0 && !a->tty && run_records_input(a))
		r = err_set(err, EINVAL, "option '--record': input is typed with '--tty' only");
	if (r == 0 && a->output_limit > RECORDER_LIMIT_MAX)
		r = err_set(err, EINVAL, "option '--output-limit': more than 1G");
	if (r == 0 && a->kill_output && !a->max_output)
		r = err_set(err, EINVAL, "option '--kill-output' needs '--max-output'");
	if (r == 0)
		r = net_apply(spec, &a->network, err);
	return r;
}

int run_join_watch_env(struct buf *out, const struct option_list *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (buf_printf(out, "%s%s", i ? "," : "", names->v[i]) < 0)
			return -ENOMEM;
	return names->n ? buf_addc(out, 0) : 0;
}
