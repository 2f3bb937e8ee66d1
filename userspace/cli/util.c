// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/util.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/log.h"
#include "userspace/cli/cli.h"

DEFINE_AUTO(ruleset, ruleset_free)

void cli_usage(const char *usage, const char *purpose, const struct option_def *defs)
{
	printf("Usage: warder %s\n\n%s\n\nOptions:\n", usage, purpose);
	options_help(defs, stdout);
}

int cli_fail(const struct err *err)
{
	log_error("%s", err_text(err));
	return EXIT_WARDER;
}

int cli_bad_usage(const char *command, const struct err *err)
{
	log_error("%s (see `warder %s --help`)", err_text(err), command);
	return EXIT_WARDER;
}

/* The reader of a pipe has gone: `warder events S | head` is no error. */
static bool reader_has_gone(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

int cli_finish_output(int code)
{
	/* of an earlier write that failed nothing is left to flush: only the mark is */
	bool failed = ferror(stdout);
	int e = 0;

	if (fflush(stdout) != 0) {
		failed = true;
		e = errno;
	}
	if (!failed || e == EPIPE || reader_has_gone())
		return code;
	log_error("writing the output%s%s", e ? ": " : " failed, it is not complete",
		  e ? strerror(e) : "");
	return EXIT_WARDER;
}

/* `arg`: bool, set when an error (no warning) was printed. */
static void print_diag(void *arg, const struct rule_diag *d)
{
	const char *level = d->warning ? "warning: " : "error: ";

	if (!d->warning)
		*(bool *)arg = true;
	if (d->line)
		fprintf(stderr, "%s:%d:%d: %s%s\n", d->file, d->line, d->col, level, d->text);
	else
		fprintf(stderr, "%s: %s%s\n", d->file, level, d->text);
}

static int load_rules(struct ruleset *rs, bool default_packs, const struct option_list *files,
		      struct err *err)
{
	int r;

	ruleset_allow_state(rs);
	for (size_t i = 0; default_packs && i < rule_packs_n; i++) {
		r = ruleset_add_text(rs, rule_packs[i].name, rule_packs[i].text, err);
		if (r < 0)
			return err_wrap(err, r, "built-in rules");
	}
	for (size_t i = 0; i < files->n; i++) {
		r = ruleset_add_file(rs, files->v[i], err);
		if (r < 0)
			return err_wrap(err, r, "rules");
	}
	r = ruleset_compile(rs, err);
	return r < 0 ? err_wrap(err, r, "rules") : 0;
}

int cli_load_rules(struct ruleset **ret, bool default_packs, const struct option_list *files)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	struct err err = { 0 };
	bool told = false;
	int r;

	r = ruleset_new(&rs, print_diag, &told);
	if (r == 0)
		r = load_rules(rs, default_packs, files, &err);
	else
		err_set(&err, r, "rules: %m");
	if (r < 0) {
		if (!told)
			log_error("%s", err_text(&err));
		return r;
	}
	*ret = take_ptr(rs);
	return 0;
}
