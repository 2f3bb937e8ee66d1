// SPDX-License-Identifier: Apache-2.0
#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/event/event.h"

struct fields_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct fields_args, json), NULL,
	  "one JSON object a field" },
	{ "help", 'h', OPT_FLAG, offsetof(struct fields_args, help), NULL, "this text" },
	{ 0 },
};

static const char *const TYPES[] = {
	[FT_STR] = "string",	  [FT_U64] = "number",	   [FT_I64] = "number",
	[FT_BOOL] = "bool",	  [FT_TIME] = "time",	   [FT_HEX] = "hex",
	[FT_IP] = "ip",		  [FT_STRLIST] = "list",   [FT_ANCESTORS] = "processes",
	[FT_ANSWERS] = "answers", [FT_MEMBERS] = "object",
};

static const struct {
	uint32_t bit;
	const char *name;
} FAMILIES[] = {
	{ FAM_PROC, "process" },    { FAM_FILE, "file" },   { FAM_NET, "net" },
	{ FAM_DNS, "dns" },	    { FAM_LIMIT, "limit" }, { FAM_ESCAPE, "escape" },
	{ FAM_SESSION, "session" }, { FAM_RULE, "rule" },   { FAM_AGENT, "agent" },
};

static void families_text(uint32_t mask, struct buf *out)
{
	if (mask == FAM_ALL) {
		buf_addz(out, "all");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(FAMILIES); i++)
		if (mask & FAMILIES[i].bit)
			buf_printf(out, "%s%s", out->n ? "," : "", FAMILIES[i].name);
}

static void print_field(const struct field_def *f, bool json)
{
	auto_buf struct buf fam = { 0 }, out = { 0 };
	struct json j;

	families_text(f->families, &fam);
	out.failed = fam.failed;
	if (!json) {
		buf_printf(&out, "%-22s %-9s %-42.*s %s", f->name, TYPES[f->type], (int)fam.n,
			   fam.p ? fam.p : "", f->doc);
		cli_print_line(&out);
		return;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "name");
	json_strz(&j, f->name);
	json_key(&j, "type");
	json_strz(&j, TYPES[f->type]);
	json_key(&j, "families");
	json_str(&j, (struct str){ fam.p, fam.n });
	json_key(&j, "doc");
	json_strz(&j, f->doc);
	json_object_end(&j);
	cli_print_line(&out);
}

/* What `kind` may be compared with, by family: the third column above. */
static void print_kinds(void)
{
	printf("\nKinds of events:\n");
	for (size_t i = 0; i < ARRAY_SIZE(FAMILIES); i++) {
		printf("  %-8s", FAMILIES[i].name);
		for (size_t k = 0; k < event_kinds_n; k++)
			if (event_kinds[k].family == FAMILIES[i].bit)
				printf(" %s", event_kinds[k].name);
		putchar('\n');
	}
}

/* What rule files written for Falco call them. */
static void print_alias(const struct rule_field *f, bool json)
{
	const char *present = f->absent ? "never" : f->partial ? "sometimes" : "yes";
	auto_buf struct buf out = { 0 };
	struct json j;

	if (!json) {
		printf("  %-28s %-7s %s%s%s\n", f->name, f->type,
		       f->absent    ? "never present here; "
		       : f->partial ? "for some values; "
				    : "",
		       f->takes_arg ? "takes [N]; " : "", f->doc ? f->doc : "");
		return;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "name");
	json_strz(&j, f->name);
	json_key(&j, "type");
	json_strz(&j, f->type);
	json_key(&j, "alias");
	json_strz(&j, "falco");
	json_key(&j, "present");
	json_strz(&j, present);
	json_key(&j, "doc");
	json_strz(&j, f->doc ? f->doc : "");
	json_object_end(&j);
	cli_print_line(&out);
}

static void print_aliases(bool json)
{
	struct rule_field f;

	if (!json)
		printf("\nFalco's names, in rules:\n");
	for (size_t i = 0; rule_falco_field(i, &f); i++)
		print_alias(&f, json);
}

int cmd_fields(int argc, char **argv)
{
	struct fields_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("fields", &err);
	if (args.help) {
		cli_usage(
			"fields [OPTIONS]",
			"List the fields of events: name, type, family of kinds, meaning; then Falco's names for"
			" rules, and the kinds.",
			OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "unexpected word '%s'", argv[1]);
		return cli_bad_usage("fields", &err);
	}
	for (int f = 0; f < F_COUNT; f++)
		print_field(&event_fields[f], args.json);
	print_aliases(args.json);
	if (!args.json)
		print_kinds();
	return cli_finish_output(0);
}
