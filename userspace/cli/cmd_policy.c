// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/util.h"
#include "userspace/replay/neutral.h"

struct policy_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct policy_args, json), NULL,
	  "list, check: as JSON, an object a line" },
	{ "help", 'h', OPT_FLAG, offsetof(struct policy_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"The settings of `warder run` as YAML files.\n\n"
	"  list          those that come with warder, and those of /etc/warder/policies\n"
	"  show NAME     what one says, and what it gives up: a start for a file of your own\n"
	"  check FILE    is every key known and every value possible? So are the files\n"
	"                that it names: rules, redaction, secrets. The plan that comes of it is shown\n"
	"                by `run --policy FILE --dry-run -- true`\n\n"
	"A NAME is that of a shipped policy, else of NAME.yaml in /etc/warder/policies, else a file.\n"
	"Exit code: 0; 1 when a file has a mistake; 125 for other errors.";

static void print_row(const char *name, struct str about, const char *path, bool shadowed,
		      bool as_json)
{
	struct neutral n = { .plain = true };
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	if (!as_json) {
		buf_printf(&out, "%-10s ", name);
		neutral_feed(&n, about, &out); /* a file's words */
		if (path)
			buf_printf(&out, "%s(%s%s)", about.n ? " " : "", path,
				   shadowed ? ": not used by its name, a shipped one has it" : "");
	} else {
		json_object_begin(&j);
		json_key(&j, "policy");
		json_strz(&j, name);
		json_key(&j, "about");
		json_str(&j, about);
		json_key(&j, "path");
		if (path)
			json_strz(&j, path);
		else
			json_null(&j);
		json_key(&j, "shadowed");
		json_bool(&j, shadowed);
		json_object_end(&j);
	}
	cli_print_line(&out);
}

static int list(bool as_json)
{
	__attribute__((cleanup(policies_own_done))) struct own_policies own = { 0 };
	const struct shipped_policy *v;
	size_t n = policies_shipped(&v);
	struct err err = { 0 };

	for (size_t i = 0; i < n; i++)
		print_row(v[i].name, policy_about((struct str){ v[i].text, v[i].n }), NULL, false,
			  as_json);
	if (policies_own(&own, &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < own.n; i++)
		print_row(own.v[i].name, str_from(own.v[i].about), own.v[i].path, own.v[i].shadowed,
			  as_json);
	return cli_finish_output(0);
}

static int show(const char *word)
{
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };

	if (policy_text(&text, word, &err) < 0)
		return cli_fail(&err);
	cli_print(&text);
	return cli_finish_output(0);
}

static int check(char *const *files, int n, bool as_json)
{
	int failed = 0;

	for (int i = 0; i < n; i++) {
		auto_buf struct buf out = { 0 };
		struct err err = { 0 };
		struct json j;
		int r = run_check_policy(files[i], &err);

		failed |= r < 0;
		if (!as_json) {
			if (err.code)
				cli_fail(&err);
			else if (r == 0)
				printf("%s: ok\n", files[i]);
			continue;
		}
		json_init(&j, &out);
		json_object_begin(&j);
		json_key(&j, "policy");
		json_strz(&j, files[i]);
		json_key(&j, "ok");
		json_bool(&j, r == 0);
		json_key(&j, "error");
		if (r < 0)
			json_strz(&j, err.code ? err_text(&err) : "a rule file has a mistake");
		else
			json_null(&j);
		json_object_end(&j);
		cli_print_line(&out);
	}
	return cli_finish_output(failed);
}

int cmd_policy(int argc, char **argv)
{
	struct policy_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("policy", &err);
	if (args.help) {
		cli_usage("policy list | show NAME | check FILE...", PURPOSE, OPTIONS);
		return 0;
	}
	if (n == 1 && !strcmp(argv[1], "list"))
		return list(args.json);
	if (n == 2 && !strcmp(argv[1], "show"))
		return show(argv[2]);
	if (n >= 2 && !strcmp(argv[1], "check"))
		return check(argv + 2, n - 1, args.json);
	err_set(&err, EINVAL, "expected list, show NAME or check FILE...");
	return cli_bad_usage("policy", &err);
}
