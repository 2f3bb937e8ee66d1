// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/util.h"

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
	"  list          those that come with warder\n"
	"  show NAME     what one says, and what it gives up: a start for a file of your own\n"
	"  check FILE    is every key known and every value possible? Its rule files, too. The\n"
	"                plan that comes of it is shown by `run --policy FILE --dry-run -- true`\n\n"
	"A NAME is that of a shipped policy, else of NAME.yaml in /etc/warder/policies, else a file.\n"
	"Exit code: 0; 1 when a file has a mistake; 125 for other errors.";

static int list(bool as_json)
{
	const struct shipped_policy *v;
	size_t n = policies_shipped(&v);

	for (size_t i = 0; i < n; i++) {
		struct str about = policy_about(&v[i]);
		auto_buf struct buf out = { 0 };
		struct json j;

		if (!as_json) {
			printf("%-10s %.*s\n", v[i].name, (int)about.n, about.p);
			continue;
		}
		json_init(&j, &out);
		json_object_begin(&j);
		json_key(&j, "policy");
		json_strz(&j, v[i].name);
		json_key(&j, "about");
		json_str(&j, about);
		json_object_end(&j);
		printf("%.*s\n", (int)out.n, out.p);
	}
	return cli_finish_output(0);
}

static int show(const char *word)
{
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };

	if (policy_text(&text, word, &err) < 0)
		return cli_fail(&err);
	fwrite(text.p, 1, text.n, stdout);
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
		printf("%.*s\n", (int)out.n, out.p);
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
