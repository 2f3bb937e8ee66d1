// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"

DEFINE_AUTO(ruleset, ruleset_free)

struct rules_args {
	bool json, packs, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct rules_args, json), NULL, "one JSON object a rule" },
	{ "default-rules", 0, OPT_FLAG, offsetof(struct rules_args, packs), NULL,
	  "load the built-in packs first" },
	{ "help", 'h', OPT_FLAG, offsetof(struct rules_args, help), NULL, "this text" },
	{ 0 },
};

static const char *const STATES[] = {
	[RULE_LOADED] = "loaded",
	[RULE_DEGRADED] = "degraded",
	[RULE_REFUSED] = "refused",
	[RULE_DISABLED] = "disabled",
};

static void print_json(const struct rule_info *r)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "rule");
	json_strz(&j, r->name);
	json_key(&j, "state");
	json_strz(&j, STATES[r->state]);
	json_key(&j, "priority");
	json_strz(&j, rule_priority_name(r->priority));
	json_key(&j, "action");
	json_strz(&j, rule_action_name(r->action));
	json_key(&j, "file");
	json_strz(&j, r->file);
	json_key(&j, "line");
	json_u64(&j, (uint64_t)r->line);
	if (r->why) {
		json_key(&j, "why");
		json_strz(&j, r->why);
	}
	json_key(&j, "tags");
	json_array_begin(&j);
	for (size_t i = 0; i < r->tags_n; i++)
		json_str(&j, r->tags[i]);
	json_array_end(&j);
	json_object_end(&j);
	fwrite(out.p, 1, out.n, stdout);
	putchar('\n');
}

static void print_rules(const struct ruleset *rs, bool json)
{
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (json)
			print_json(r);
		else
			printf("%-9s %-8s %-13s %s%s%s%s\n", STATES[r->state],
			       rule_action_name(r->action), rule_priority_name(r->priority),
			       r->name, r->why ? " (" : "", r->why ? r->why : "",
			       r->why ? ")" : "");
	}
}

static void print_summary(const struct ruleset *rs)
{
	size_t count[ARRAY_SIZE(STATES)] = { 0 };

	for (size_t i = 0; i < ruleset_count(rs); i++)
		count[ruleset_get(rs, i)->state]++;
	printf("%zu rules: %zu loaded, %zu degraded, %zu refused, %zu disabled; set %s\n",
	       ruleset_count(rs), count[RULE_LOADED], count[RULE_DEGRADED], count[RULE_REFUSED],
	       count[RULE_DISABLED], ruleset_hash(rs));
}

static const char USAGE[] = "rules check|list [OPTIONS] [FILE...]";
static const char PURPOSE[] =
	"check  read rule files, say what is wrong as file:line:col: message; exit 0 or 1\n"
	"list   the rules of the files, or of the built-in packs when no file is given";

int cmd_rules(int argc, char **argv)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	struct option_list files = { 0 };
	struct rules_args args = { 0 };
	struct err err = { 0 };
	bool check;
	int n;

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_usage(USAGE, PURPOSE, OPTIONS);
		return argc < 2 ? EXIT_WARDER : 0;
	}
	check = !strcmp(argv[1], "check");
	if (!check && strcmp(argv[1], "list")) {
		err_set(&err, EINVAL, "unknown subcommand '%s'", argv[1]);
		return cli_bad_usage("rules", &err);
	}
	if (options_parse_mixed(OPTIONS, &args, argc - 1, argv + 1, &n, &err) < 0)
		return cli_bad_usage("rules", &err);
	if (args.help) {
		cli_usage(USAGE, PURPOSE, OPTIONS);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (files.n == OPTION_LIST_MAX) {
			err_set(&err, E2BIG, "more than %d rule files", OPTION_LIST_MAX);
			return cli_bad_usage("rules", &err);
		}
		files.v[files.n++] = argv[2 + i];
	}
	if (check && !files.n && !args.packs) {
		err_set(&err, EINVAL, "which rule file?");
		return cli_bad_usage("rules", &err);
	}
	if (cli_load_rules(&rs, args.packs || !files.n, &files) < 0)
		return check ? 1 : EXIT_WARDER;
	if (!check || args.json)
		print_rules(rs, args.json);
	if (check && !args.json)
		print_summary(rs);
	return cli_finish_output(0);
}
