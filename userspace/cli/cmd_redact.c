// SPDX-License-Identifier: Apache-2.0
/* Rules of secrets, tried without a sandbox. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/run_redact.h"
#include "userspace/cli/util.h"

#define TEXT_MAX (16u << 20)

struct args {
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "help", 'h', OPT_FLAG, offsetof(struct args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"check: are these files rules of secrets that could be used? Errors are file:line:col: message.\n"
	"test: copies stdin to stdout as it would be recorded with the built-in rules and these files; exit\n"
	"code 0 when nothing was taken out, 1 when something was. Tags are by a key made for this one time.";

static int check(const struct redactor *r)
{
	size_t n = redactor_rules(r);

	printf("%zu rules, the built-in ones included\n", n);
	return cli_finish_output(0);
}

static int test(const struct redactor *r, struct err *err)
{
	AUTO(redact) struct redact *x = NULL;
	auto_buf struct buf in = { .max = TEXT_MAX }, out = { 0 };
	int n, e;

	e = fd_read_rest(STDIN_FILENO, &in);
	if (e == 0)
		e = redact_new(&x, r);
	if (e < 0) {
		err_set(err, e, "standard input: %m");
		return cli_fail(err);
	}
	n = redact_text(x, (struct str){ in.p, in.n }, &out);
	if (n < 0) {
		err_set(err, n, "redacting: %m");
		return cli_fail(err);
	}
	fwrite(n ? out.p : in.p, 1, n ? out.n : in.n, stdout);
	return cli_finish_output(n ? 1 : 0);
}

int cmd_redact(int argc, char **argv)
{
	AUTO(redactor) struct redactor *r = NULL;
	struct option_list files = { 0 };
	struct args a = { 0 };
	struct err err = { 0 };
	int n = 0;

	if (options_parse_mixed(OPTIONS, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage("redact", &err);
	if (a.help) {
		cli_usage("redact check|test [FILE...]", PURPOSE, OPTIONS);
		return 0;
	}
	if (n < 1 || (strcmp(argv[1], "check") && strcmp(argv[1], "test")) ||
	    n - 1 > OPTION_LIST_MAX) {
		err_set(&err, EINVAL, "check or test, and files of rules");
		return cli_bad_usage("redact", &err);
	}
	for (int i = 2; i <= n; i++)
		files.v[files.n++] = argv[i];
	if (redactor_of_files(&r, &files, &err) < 0)
		return cli_fail(&err);
	return !strcmp(argv[1], "check") ? check(r) : test(r, &err);
}
