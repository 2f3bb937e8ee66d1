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

#define TEXT_MAX  (16u << 20)
#define NOTES_MAX (4u << 20)

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
	"check: are these files rules of secrets that could be used? Errors are file:line:col: message. Exit code\n"
	"0: all of them; 1: only a part of a file of gitleaks: what is not carried is named; 125: not.\n"
	"test: copies stdin to stdout as it would be recorded with the built-in rules and these files; exit\n"
	"code 0 when nothing was taken out, 1 when something was. Tags are by a key made for this one time.\n"
	"import: rules of gitleaks (TOML) as rules of ours, and what cannot be had, by name and reason; other\n"
	"commands take a file that ends in .toml as it is.\n"
	"keygen: a pair of keys for an escrow; the secret one belongs elsewhere than on the recording host.\n"
	"reveal: the originals that a session keeps sealed, one JSON object a line: rule, tag, original.";

static int check(const struct redactor *r, const struct redact_lacks *lacks)
{
	const char *what;
	bool fast = redact_has_hyperscan(&what);

	printf("%zu rules, the built-in ones included\n", redactor_rules(r));
	printf("long output: %s%s\n", fast ? "" : "own pass: ", what);
	if (lacks->rules || lacks->keys)
		printf("not carried: %zu rule%s, %zu key%s that %s not known\n", lacks->rules,
		       lacks->rules == 1 ? "" : "s", lacks->keys, lacks->keys == 1 ? "" : "s",
		       lacks->keys == 1 ? "is" : "are");
	return cli_finish_output(lacks->rules || lacks->keys ? 1 : 0);
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

static void add_note(void *arg, const char *rule, const char *text, bool out)
{
	struct buf *b = arg;

	if (!b->n)
		buf_addz(b, "what is not as it was in gitleaks:\n");
	buf_printf(b, "  %s%s%s%s\n", rule, *rule ? ": " : "", out ? "left out: " : "", text);
}

static void print_notes(const struct buf *b)
{
	fwrite(b->n ? b->p : "", 1, b->n, stderr);
}

static int check_or_test(bool is_test, char **files, int n, struct err *err)
{
	AUTO(redactor) struct redactor *r = NULL;
	struct option_list list = { 0 };
	auto_buf struct buf notes = { .max = NOTES_MAX };
	struct redact_lacks lacks = { .note = add_note, .arg = &notes };

	for (int i = 0; i < n; i++)
		list.v[list.n++] = files[i];
	if (redactor_of_files(&r, &list, is_test ? NULL : &lacks, err) < 0)
		return cli_fail(err);
	print_notes(&notes);
	return is_test ? test(r, err) : check(r, &lacks);
}

static int import(const char *path, const char *to, struct err *err)
{
	auto_buf struct buf yaml = { .max = REDACT_FILE_MAX };
	struct gitleaks_result res;
	auto_free char *text = NULL;
	auto_buf struct buf notes = { .max = NOTES_MAX };
	size_t n = 0;
	int r = file_read_at(AT_FDCWD, path, GITLEAKS_FILE_MAX, &text, &n);

	if (r < 0)
		return err_set(err, r, "'%s': %m", path);
	if (to && access(to, F_OK) == 0)
		return err_set(err, EEXIST, "'%s': %m", to);
	r = gitleaks_import(path, (struct str){ text, n }, &yaml, add_note, &notes, &res, err);
	print_notes(&notes);
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
