// SPDX-License-Identifier: Apache-2.0
/* Rules of secrets, tried without a sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/redact_escrow.h"
#include "userspace/cli/run_redact.h"
#include "userspace/cli/util.h"
#include "userspace/redact/gitleaks.h"

#define TEXT_MAX (16u << 20)

struct args {
	const char *key, *output;
	uint64_t record;
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "key", 'k', OPT_STR, offsetof(struct args, key), "FILE",
	  "reveal: the secret key, a file for its owner alone" },
	{ "record", 0, OPT_U64, offsetof(struct args, record), "N",
	  "reveal: only originals of marks in this record" },
	{ "output", 'o', OPT_STR, offsetof(struct args, output), "FILE",
	  "import: the rules, a new file (default: standard output); keygen: the secret key, and FILE.pub for "
	  "`warder run --redact-escrow`" },
	{ "help", 'h', OPT_FLAG, offsetof(struct args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"check: are these files rules of secrets that could be used? Errors are file:line:col: message.\n"
	"test: copies stdin to stdout as it would be recorded with the built-in rules and these files; exit\n"
	"code 0 when nothing was taken out, 1 when something was. Tags are by a key made for this one time.\n"
	"import: rules of gitleaks (TOML) as rules of ours, and what cannot be had, by name and reason; other\n"
	"commands take a file that ends in .toml as it is.\n"
	"keygen: a pair of keys for an escrow; the secret one belongs elsewhere than on the recording host.\n"
	"reveal: the originals that a session keeps sealed, one JSON object a line: rule, tag, original.";

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

static int check_or_test(bool is_test, char **files, int n, struct err *err)
{
	AUTO(redactor) struct redactor *r = NULL;
	struct option_list list = { 0 };

	for (int i = 0; i < n; i++)
		list.v[list.n++] = files[i];
	if (redactor_of_files(&r, &list, err) < 0)
		return cli_fail(err);
	return is_test ? test(r, err) : check(r);
}

static void print_note(void *arg, const char *rule, const char *text, bool out)
{
	bool *first = arg;

	if (*first)
		fputs("what is not as it was in gitleaks:\n", stderr);
	*first = false;
	fprintf(stderr, "  %s%s%s%s\n", rule, *rule ? ": " : "", out ? "left out: " : "", text);
}

static int import(const char *path, const char *to, struct err *err)
{
	auto_buf struct buf yaml = { .max = REDACT_FILE_MAX };
	struct gitleaks_result res;
	auto_free char *text = NULL;
	bool first = true;
	size_t n = 0;
	int r = file_read_at(AT_FDCWD, path, GITLEAKS_FILE_MAX, &text, &n);

	if (r < 0)
		return err_set(err, r, "'%s': %m", path);
	if (to && access(to, F_OK) == 0)
		return err_set(err, EEXIST, "'%s': %m", to);
	r = gitleaks_import(path, (struct str){ text, n }, &yaml, print_note, &first, &res, err);
	if (r < 0)
		return r;
	fprintf(stderr, "%zu of %zu rules\n", res.rules - res.left_out, res.rules);
	if (!to) {
		fwrite(yaml.p, 1, yaml.n, stdout);
		return 0;
	}
	return cli_write_file(to, &yaml, 0644, err);
}

static int done(int r, struct err *err)
{
	return r < 0 ? cli_fail(err) : cli_finish_output(0);
}

/* What is wrong with the words of this command line; NULL: nothing. */
static const char *wrong_words(const char *action, int n, const struct args *a)
{
	if (!strcmp(action, "check") || !strcmp(action, "test"))
		return n > OPTION_LIST_MAX ? "so many files?" : NULL;
	if (!strcmp(action, "keygen"))
		return n || !a->output ? "keygen: -o FILE is where the secret key goes" : NULL;
	if (!strcmp(action, "reveal"))
		return n != 1 || !a->key ? "reveal: --key FILE and one session" : NULL;
	if (!strcmp(action, "import"))
		return n != 1 ? "import: one file of gitleaks" : NULL;
	return "one of: check, test, import, keygen, reveal";
}

int cmd_redact(int argc, char **argv)
{
	struct args a = { 0 };
	struct err err = { 0 };
	const char *wrong;
	int n = 0;

	if (options_parse_mixed(OPTIONS, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage("redact", &err);
	if (a.help) {
		cli_usage("redact check|test|import|keygen|reveal [OPTIONS] [FILE...|SESSION]",
			  PURPOSE, OPTIONS);
		return 0;
	}
	wrong = wrong_words(n ? argv[1] : "", n - 1, &a);
	if (wrong) {
		err_set(&err, EINVAL, "%s", wrong);
		return cli_bad_usage("redact", &err);
	}
	switch (argv[1][0]) {
	case 'i':
		return done(import(argv[2], a.output, &err), &err);
	case 'k':
		return done(redact_keygen(a.output, &err), &err);
	case 'r':
		return done(redact_reveal(argv[2], a.key, a.record, &err), &err);
	default:
		return check_or_test(argv[1][0] == 't', argv + 2, n - 1, &err);
	}
}
