// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "rules/explain.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/measured.h"
#include "userspace/cli/rules_baseline.h"
#include "userspace/cli/util.h"

#define FIXTURE_FILE_MAX ((size_t)64 << 20)

DEFINE_AUTO(ruleset, ruleset_free)
DEFINE_AUTO(push_plan, push_plan_free)

struct rules_args {
	const char *tier;
	const char *output;
	bool json, packs, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct rules_args, json), NULL, "one JSON object a rule" },
	{ "default-rules", 0, OPT_FLAG, offsetof(struct rules_args, packs), NULL,
	  "load the built-in packs first, as `run` does" },
	{ "tier", 0, OPT_STR, offsetof(struct rules_args, tier), "TIER",
	  "full (prevention by fmod_ret) or portable: explain for it, check that what is to be denied "
	  "can be there (default: this host's, as root)" },
	{ "output", 'o', OPT_STR, offsetof(struct rules_args, output), "FILE",
	  "baseline: where to (default: stdout)" },
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
	cli_print(&out);
	putchar('\n');
}

/* `limited`: only those that are not simply loaded. */
static void print_rules(const struct ruleset *rs, bool json, bool limited)
{
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (limited && r->state == RULE_LOADED)
			continue;
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
	printf("%zu rule%s: %zu loaded, %zu degraded, %zu refused, %zu disabled; set %s\n",
	       ruleset_count(rs), ruleset_count(rs) == 1 ? "" : "s", count[RULE_LOADED],
	       count[RULE_DEGRADED], count[RULE_REFUSED], count[RULE_DISABLED], ruleset_hash(rs));
}

/* ---- explain ---- */

/* "word: text" a line -> members; lists of names become arrays. */
static void explained_json(struct json *j, const char *text)
{
	for (const char *p = text; *p;) {
		size_t line = strcspn(p, "\n"), key = strcspn(p, ":");
		struct str v = { p + key + 2, line - key - 2 };
		bool list = !strncmp(p, "kinds:", 6) || !strncmp(p, "fields:", 7);

		json_key_str(j, (struct str){ p, key });
		if (list)
			json_array_begin(j);
		else
			json_str(j, v);
		while (list && v.n) {
			const char *end = memmem(v.p, v.n, ", ", 2);
			size_t n = end ? (size_t)(end - v.p) : v.n;

			json_str(j, (struct str){ v.p, n });
			n = end ? n + 2 : n;
			v = (struct str){ v.p + n, v.n - n };
		}
		if (list)
			json_array_end(j);
		p += line + (p[line] == '\n');
	}
}

static int print_explained(const struct ruleset *rs, const struct explain_host *host, bool as_json)
{
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);
		auto_buf struct buf out = { 0 }, line = { 0 };
		struct json j;

		if (rule_explain(r, host, &out) < 0 || buf_addc(&out, 0) < 0)
			return -ENOMEM;
		if (as_json) {
			json_init(&j, &line);
			json_object_begin(&j);
			json_key(&j, "rule");
			json_strz(&j, r->name);
			json_key(&j, "state");
			json_strz(&j, STATES[r->state]);
			json_key(&j, "action");
			json_strz(&j, rule_action_name(r->action));
			explained_json(&j, out.p);
			json_object_end(&j);
			cli_print_line(&line);
			continue;
		}
		printf("%s%s (%s, %s, %s)\n", i ? "\n" : "", r->name,
		       rule_priority_name(r->priority), rule_action_name(r->action),
		       STATES[r->state]);
		for (const char *p = out.p; *p; p += strcspn(p, "\n") + 1)
			printf("    %.*s\n", (int)strcspn(p, "\n"), p);
	}
	return 0;
}

static int parse_tier(const struct rules_args *args, bool *ret_full, struct err *err)
{
	if (args->tier && strcmp(args->tier, "full") != 0 && strcmp(args->tier, "portable") != 0)
		return err_set(err, EINVAL, "option '--tier': '%s' is not full or portable",
			       args->tier);
	/* This host's by trying, which needs root. */
	*ret_full = args->tier ? !strcmp(args->tier, "full") : host_prevents();
	return 0;
}

static int explain(const struct ruleset *rs, const struct rules_args *args)
{
	AUTO(push_plan) struct push_plan *plan = NULL;
	struct explain_host host = { 0 };
	struct err err = { 0 };
	bool full;

	if (parse_tier(args, &full, &err) < 0)
		return cli_bad_usage("rules", &err);
	host.means = push_means(full);
	if (ruleset_push(&plan, rs, NULL, host.means, &err) < 0)
		return cli_fail(&err);
	host.plan = plan;
	measured_load(&host.kill_p50_ns, &host.kill_max_ns);
	return print_explained(rs, &host, args->json) < 0 ? EXIT_WARDER : 0;
}

static bool has_deny(const struct ruleset *rs)
{
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		const struct rule_info *r = ruleset_get(rs, i);

		if (r->action == RULE_ACT_DENY && !r->deny_fallback && !r->dry_run)
			return true;
	}
	return false;
}

/* Would a run keep what its rules deny, in the tier that was asked for or this host's? Who is not root cannot
 * find out which that is: then it is only said. */
static int check_deny(const struct ruleset *rs, const struct rules_args *args)
{
	AUTO(push_plan) struct push_plan *plan = NULL;
	bool full, sure = args->tier || geteuid() == 0;
	struct err err = { 0 };
	int code = 0;

	if (!has_deny(rs) && !args->tier)
		return 0;
	if (parse_tier(args, &full, &err) < 0)
		return cli_bad_usage("rules", &err);
	if (ruleset_push(&plan, rs, NULL, push_means(full), &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < ruleset_count(rs); i++) {
		if (push_check_deny_of(plan, i, push_means(full), &err) == 0)
			continue;
		if (sure)
			log_error("%s", err_text(&err));
		else
			log_warn(
				"%s (whether this host has the full one is known to root only; see "
				"--tier)",
				err_text(&err));
		code = sure;
	}
	return code;
}

/* ---- test ---- */

static bool is_fixture(const char *path)
{
	return str_ends(str_from(path), STR(".events"));
}

static void print_difference(void *arg, const struct rule_diag *d)
{
	(void)arg;
	printf("%s:%d: %s\n", d->file, d->line, d->text);
}

static int test_file(const struct ruleset *rs, const char *path, size_t *events, size_t *failed)
{
	auto_free char *text = NULL;
	struct err err = { 0 };
	size_t n = 0, k = 0;
	int r;

	r = file_read_at(AT_FDCWD, path, FIXTURE_FILE_MAX, &text, &n);
	if (r < 0) {
		log_error("fixture '%s': %s", path, strerror(-r));
		return r;
	}
	r = ruleset_test(rs, path, (struct str){ text, n }, print_difference, NULL, &k, &err);
	if (r < 0) {
		log_error("%s", err_text(&err));
		return r;
	}
	*events += k;
	*failed += (size_t)r;
	return 0;
}

static int test_files(const struct ruleset *rs, const struct option_list *fixtures)
{
	size_t events = 0, failed = 0;

	for (size_t i = 0; i < fixtures->n; i++)
		if (test_file(rs, fixtures->v[i], &events, &failed) < 0)
			return 1;
	printf("%zu event%s, %zu as expected, %zu not\n", events, events == 1 ? "" : "s",
	       events - failed, failed);
	return failed > 0;
}

/* ---- the command ---- */

enum verb { CHECK, LIST, EXPLAIN, TEST, BASELINE, RELOAD, VERBS };

static const char *const VERB_NAMES[VERBS] = { "check", "list",	    "explain",
					       "test",	"baseline", "reload" };

static const char USAGE[] = "rules check|list|explain|test [OPTIONS] [FILE...]\n"
			    "       warder rules baseline [-o FILE] SESSION...\n"
			    "       warder rules reload SESSION";
static const char PURPOSE[] =
	"check    read rule files, say what is wrong as file:line:col: message; exit 0 or 1\n"
	"list     the rules of the files, or of the built-in packs when no file is given\n"
	"explain  what each rule does on this host: kinds, fields, cost, where it is decided, and whether\n"
	"         the act is prevented, killed before its call returns, or killed after (how long)\n"
	"test     judge the events of the files named *.events, without a kernel; exit 0 or 1\n"
	"baseline what is usual, learned from sessions that you approve of, for `run --baseline`\n"
	"reload   let a running session read its rule files again, as SIGHUP to its `warder run` does";

static int find_verb(const char *word)
{
	for (int v = 0; v < VERBS; v++)
		if (!strcmp(word, VERB_NAMES[v]))
			return v;
	return -1;
}

static int run_verb(enum verb verb, const struct rules_args *args, const struct ruleset *rs,
		    const struct option_list *fixtures)
{
	int code = 0;

	if (verb == EXPLAIN)
		code = explain(rs, args);
	else if (verb == TEST)
		code = test_files(rs, fixtures);
	else if (verb == LIST || args->json)
		print_rules(rs, args->json, false);
	else
		print_rules(rs, false, true);
	if (verb == CHECK && !args->json)
		print_summary(rs);
	if (verb == CHECK)
		code = check_deny(rs, args);
	return cli_finish_output(code);
}

int cmd_rules(int argc, char **argv)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	struct option_list files = { 0 }, fixtures = { 0 };
	struct rules_args args = { 0 };
	struct err err = { 0 };
	int n, verb;

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_usage(USAGE, PURPOSE, OPTIONS);
		return argc < 2 ? EXIT_WARDER : 0;
	}
	verb = find_verb(argv[1]);
	if (verb < 0) {
		err_set(&err, EINVAL, "unknown subcommand '%s'", argv[1]);
		return cli_bad_usage("rules", &err);
	}
	if (options_parse_mixed(OPTIONS, &args, argc - 1, argv + 1, &n, &err) < 0)
		return cli_bad_usage("rules", &err);
	if (args.help) {
		cli_usage(USAGE, PURPOSE, OPTIONS);
		return 0;
	}
	if (verb == RELOAD && n == 1)
		return order_reload(argv[2]);
	if (verb == BASELINE && n)
		return rules_baseline(argv + 2, (size_t)n, args.output);
	if (verb == BASELINE || verb == RELOAD || args.output) {
		err_set(&err, EINVAL,
			args.output ? "option '--output' belongs to 'baseline'"
				    : "which sessions?");
		return cli_bad_usage("rules", &err);
	}
	for (int i = 0; i < n; i++) {
		const char *path = argv[2 + i];
		struct option_list *list = verb == TEST && is_fixture(path) ? &fixtures : &files;

		if (list->n == OPTION_LIST_MAX) {
			err_set(&err, E2BIG, "more than %d files", OPTION_LIST_MAX);
			return cli_bad_usage("rules", &err);
		}
		list->v[list->n++] = path;
	}
	if ((verb == CHECK && !files.n && !args.packs) || (verb == TEST && !fixtures.n)) {
		err_set(&err, EINVAL,
			verb == TEST ? "which fixture file (*.events)?" : "which rule file?");
		return cli_bad_usage("rules", &err);
	}
	if (cli_load_rules(&rs, args.packs || !files.n, &files) < 0)
		return verb == CHECK || verb == TEST ? 1 : EXIT_WARDER;
	return run_verb((enum verb)verb, &args, rs, &fixtures);
}
