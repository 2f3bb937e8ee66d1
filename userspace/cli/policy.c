// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/policy.h"

#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/cli/run_root.h"

static const struct {
	const char *key;
	const char *option;
} KEYS[] = {
	{ "backend", "backend" },
	{ "platform", "platform" },
	{ "name", "name" },
	{ "tenant", "tenant" },
	{ "workspace", "workspace" },
	{ "cwd", "cwd" },
	{ "root", "root" },
	{ "image.keys", "image-key" },
	{ "user", "user" },
	{ "seccomp", "seccomp" },
	{ "env", "env" },
	{ "secrets", "secret" },
	{ "mounts.ro", "ro" },
	{ "mounts.rw", "rw" },
	{ "network.mode", "net" },
	{ "network.allow", "net-allow" },
	{ "network.services", "net-service" },
	{ "network.routes", "net-route" },
	{ "network.limits", "net-limit" },
	{ "network.resolver", "net-dns" },
	{ "limits.memory", "memory" },
	{ "limits.pids", "pids" },
	{ "limits.cpu", "cpus" },
	{ "limits.timeout", "timeout" },
	{ "limits.disk", "disk" },
	{ "limits.tmp", "tmp" },
	{ "limits.nofile", "nofile" },
	{ "limits.fsize", "fsize" },
	{ "limits.output", "max-output" },
	{ "limits.output_kill", "kill-output" },
	{ "lifetime.ttl", "ttl" },
	{ "lifetime.idle", "idle" },
	{ "watch.env", "watch-env" },
	{ "watch.paths", "watch" },
	{ "rules.files", "rules" },
	{ "rules.no_default", "no-default-rules" },
	{ "on_pressure", "on-pressure" },
	{ "rings.urgent", "urgent-ring" },
	{ "rings.bulk", "bulk-ring" },
	{ "redact.rules", "redact" },
	{ "redact.values", "redact-value" },
	{ "redact.value_files", "redact-value-file" },
	{ "redact.escrow", "redact-escrow" },
	{ "evidence.sign", "sign" },
	{ "evidence.when_full", "when-full" },
	{ "evidence.witness", "witness" },
	{ "evidence.no_workspace_diff", "no-workspace-diff" },
	{ "evidence.keep_texts", "keep-texts" },
};

static const char *option_of(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++)
		if (!strcmp(KEYS[i].key, key))
			return KEYS[i].option;
	return NULL;
}

/* Who knows the options writes "memory" for limits.memory. */
static const char *full_key(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++)
		if (!strcmp(KEYS[i].option, word))
			return KEYS[i].key;
	return NULL;
}

static int unknown_key(const struct flat_file *file, const struct flat_entry *e, struct err *err)
{
	const char *names[ARRAY_SIZE(KEYS)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(KEYS); i++) {
		const size_t n = strlen(KEYS[i].key), k = strlen(e->key);

		names[i] = KEYS[i].key;
		if (!strncmp(KEYS[i].key, e->key, k) && KEYS[i].key[k] == '.')
			return err_set(err, EINVAL, "%s:%d:%d: '%s' holds keys, such as '%s: ...'",
				       file->path, e->line, e->col, e->key, KEYS[i].key + k + 1);
		if (!strncmp(KEYS[i].key, e->key, n) && e->key[n] == '.')
			return err_set(err, EINVAL, "%s:%d:%d: '%s' holds no keys: %s", file->path,
				       e->line, e->col, KEYS[i].key,
				       "a value or a list of them ([...])");
	}
	near = full_key(e->key);
	if (!near)
		near = closest_name(e->key, names, ARRAY_SIZE(names));
	if (near)
		return err_set(err, EINVAL, "%s:%d:%d: unknown key '%s': did you mean '%s'?",
			       file->path, e->line, e->col, e->key, near);
	return err_set(err, EINVAL, "%s:%d:%d: unknown key '%s'", file->path, e->line, e->col,
		       e->key);
}

/* A rule file lies with the policy that names it: relative to that, wherever warder is started. Places in the
 * sandbox's mounts are about the caller's files, and stay relative to where it is. */
static const char *rules_path(struct flat_file *file, const char *path)
{
	const char *slash = strrchr(file->path, '/');

	if (path[0] == '/' || !slash)
		return path;
	return arena_printf(&file->arena, "%.*s%s", (int)(slash - file->path + 1), file->path, path)
		.p;
}

int policy_apply(struct flat_file *file, const struct option_def *defs, void *target,
		 policy_check_fn check, struct err *err)
{
	for (size_t i = 0; i < file->n; i++) {
		const struct flat_entry *e = &file->v[i];
		const char *option = option_of(e->key), *value = e->value;
		int r;

		if (!option)
			return unknown_key(file, e, err);
		r = option_is_list(defs, option) == 0 ? flat_single(file, e, err) : 0;
		if (r < 0)
			return r;
		if (!strcmp(option, "rules") || !strcmp(option, "image-key") ||
		    (!strcmp(option, "seccomp") && strcmp(value, SECCOMP_DEFAULT)))
			value = rules_path(file, value);
		if (!value)
			return -ENOMEM;
		r = options_set(defs, target, option, value, err);
		if (r == 0)
			r = check(option, value, err);
		if (r < 0)
			return err_wrap(err, r, "%s:%d:%d: %s", file->path, e->line, e->col,
					e->key);
	}
	return 0;
}
