// SPDX-License-Identifier: Apache-2.0
/* What an agent reads of a run that somebody asks it for. */
#include "userspace/cli/run_args.h"

#include <stdio.h>
#include <string.h>

#include "userspace/cli/agent_park.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/named_workspace.h"
#include "userspace/cli/policy.h"
#include "userspace/pipeline/run.h"

/* What somebody may ask for who is not root: none of it reads or writes files of the host, names a key, or weakens what
 * is recorded. */
static const char *const FREE[] = {
	"policy", "timeout",  "ttl",	   "idle",	  "memory",	"pids",	      "cpus",
	"disk",	  "tmp",      "nofile",	   "fsize",	  "name",	"max-output", "env",
	"cwd",	  "tty",      "quiet",	   "kill-output", "keep-texts", "net",	      "workspace",
	"help",	  "no-agent", "watch-env", "from",	  "root",	"user",
};

static int check_free(int argc, char **argv, const struct agent_restrict *who, struct err *err)
{
	struct option_def defs[ARRAY_SIZE(FREE) + 1] = { 0 };
	struct run_args a;
	size_t n = 0;
	int rest, r;

	for (const struct option_def *d = run_options(); d->name; d++)
		for (size_t i = 0; i < ARRAY_SIZE(FREE); i++)
			if (!strcmp(FREE[i], d->name))
				defs[n++] = *d;
	run_args_defaults(&a);
	r = options_parse(defs, &a, argc, argv, &rest, err);
	if (r < 0)
		return err_wrap(err, r, "not for who is not root");
	if (a.policy &&
	    (!policy_is_installed(a.policy) ||
	     (who->policies && who->policies->n && !agent_names_have(who->policies, a.policy))))
		return err_set(err, EPERM, "option '--policy': '%s' is not one that you may use",
			       a.policy);
	if (a.workspace && strncmp(a.workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX)))
		return err_set(err, EPERM, "option '--workspace': only name:NAME is for you");
	if (a.root.root && !image_is_reference(a.root.root) && strcmp(a.root.root, "host"))
		return err_set(err, EPERM, "option '--root': only image:NAME is for you");
	if (a.network.mode && !strcmp(a.network.mode, "host"))
		return err_set(err, EPERM, "option '--net': 'host' is not for you");
	return 0;
}

static int copy_name(char *ret, const char *what, const char *text, struct err *err)
{
	if (strlen(text) >= REGISTRY_NAME)
		return err_set(err, EINVAL, "option '--%s': longer than %d bytes", what,
			       REGISTRY_NAME - 1);
	snprintf(ret, REGISTRY_NAME, "%s", text);
	return 0;
}

int run_inspect(struct run_request *ret, int argc, char **argv,
		const struct agent_restrict *restrict_to, struct err *err)
{
	__attribute__((cleanup(flat_done))) struct flat_file policy = { 0 };
	struct registry_entry *e = &ret->entry;
	struct run_args a;
	int rest, r = 0;

	*ret = (struct run_request){ 0 };
	if (restrict_to)
		r = check_free(argc, argv, restrict_to, err);
	if (r == 0)
		r = run_read_args(&a, &policy, argc, argv, &rest, err);
	if (r == 0)
		r = run_check_given(&a, err);
	if (r < 0)
		return r;
	ret->tty = a.tty;
	ret->has_command = rest < argc;
	e->memory = a.memory;
	e->pids = a.pids;
	e->cpu_milli = a.cpus;
	e->disk = a.disk;
	e->ttl_ns = a.ttl;
	e->tty = a.tty;
	e->has_command = ret->has_command;
	r = copy_name(e->name, "name", a.name ? a.name : "", err);
	if (r == 0)
		r = copy_name(e->tenant, "tenant",
			      restrict_to ? restrict_to->tenant
			      : a.tenant  ? a.tenant
					  : "default",
			      err);
	if (r == 0 && a.workspace &&
	    !strncmp(a.workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX)))
		r = copy_name(e->workspace, "workspace", a.workspace + strlen(WORKSPACE_PREFIX),
			      err);
	return r;
}
