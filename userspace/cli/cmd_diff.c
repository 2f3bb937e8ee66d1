// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/catalog/catalog.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/diff_workspace.h"
#include "userspace/cli/util.h"
#include "userspace/replay/timeline.h"

DEFINE_AUTO(catalog, catalog_close)

struct diff_args {
	bool json, quiet, help, workspace;
};

static const struct option_def OPTIONS[] = {
	{ "workspace", 'w', OPT_FLAG, offsetof(struct diff_args, workspace), NULL,
	  "of one session: files created (+), changed (~), deleted (-)" },
	{ "json", 0, OPT_FLAG, offsetof(struct diff_args, json), NULL,
	  "one JSON object a difference" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct diff_args, quiet), NULL, "only the exit code" },
	{ "help", 'h', OPT_FLAG, offsetof(struct diff_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"What session B did that session A, perhaps an approved one, did not (+), and what it did not do\n"
	"(-): programs executed, files opened to write or changed, destinations, names asked for, rules that\n"
	"fired, escape attempts.\n\n"
	"With --workspace what one session left in /workspace and its --rw places, other than it found it; of a\n"
	"session that runs: now.\n\n"
	"Exit code: 0 the same, 1 differences, 125 error.";

struct differences {
	const struct diff_args *args;
	char sign;
	uint64_t n;
};

static int print_one(void *arg, const struct catalog_fact *f)
{
	auto_buf struct buf out = { 0 };
	struct differences *d = arg;
	struct json j;

	d->n++;
	if (d->args->quiet)
		return 0;
	if (!d->args->json) {
		if (text_for_terminal(str_from(f->value), 1000, &out) == 0)
			printf("%c %-6s  %.*s  (%llu)\n", d->sign, f->kind, (int)out.n, out.p,
			       (unsigned long long)f->count);
		return 0;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "only_in");
	json_strz(&j, d->sign == '+' ? "b" : "a");
	json_key(&j, "kind");
	json_strz(&j, f->kind);
	json_key(&j, "value");
	json_strz(&j, f->value);
	json_key(&j, "count");
	json_u64(&j, f->count);
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
	return 0;
}

static int read_in(struct catalog *c, const char *word, const char *as, struct err *err)
{
	auto_close int fd = -1;
	int r = bundle_open(&fd, word, "diff", err);

	if (r == 0)
		r = catalog_index(c, fd, as, err);
	if (r == 0)
		r = bundle_check_end(fd, UINT64_MAX, err);
	return r < 0 ? err_wrap(err, r, "session '%s'", word) : 0;
}

int cmd_diff(int argc, char **argv)
{
	AUTO(catalog) struct catalog *c = NULL;
	struct diff_args args = { 0 };
	struct differences d = { .args = &args, .sign = '+' };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("diff", &err);
	if (args.help) {
		cli_usage("diff [OPTIONS] A B | diff --workspace SESSION", PURPOSE, OPTIONS);
		return 0;
	}
	if (args.workspace && n == 1) {
		if (diff_workspace(argv[1], args.json, args.quiet, &d.n, &err) < 0)
			return cli_fail(&err);
		return cli_finish_output(d.n > 0);
	}
	if (args.workspace) {
		err_set(&err, EINVAL, "--workspace is about one session");
		return cli_bad_usage("diff", &err);
	}
	if (n != 2) {
		err_set(&err, EINVAL, "two sessions are compared");
		return cli_bad_usage("diff", &err);
	}
	if (catalog_open(&c, NULL, &err) < 0 || read_in(c, argv[1], "a", &err) < 0 ||
	    read_in(c, argv[2], "b", &err) < 0 ||
	    catalog_only_in(c, "a", "b", print_one, &d, &err) < 0)
		return cli_fail(&err);
	d.sign = '-';
	if (catalog_only_in(c, "b", "a", print_one, &d, &err) < 0)
		return cli_fail(&err);
	return cli_finish_output(d.n > 0);
}
