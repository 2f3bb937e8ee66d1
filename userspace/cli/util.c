// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/util.h"

#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/plain.h"
#include "userspace/cli/cli.h"

const char *config_dir(void)
{
	const char *dir = getenv("WARDER_CONFIG");

	return dir && *dir ? dir : "/etc/warder";
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

int cli_write_file(const char *path, const struct buf *text, mode_t mode, struct err *err)
{
	char dir_text[4096], base_text[4096];
	auto_close int dirfd = -1;
	int r;

	if (text->failed)
		return err_set(err, ENOMEM, "'%s': out of memory", path);
	if (strlen(path) >= sizeof(dir_text))
		return err_set(err, ENAMETOOLONG, "'%s': path too long", path);
	snprintf(dir_text, sizeof(dir_text), "%s", path);
	snprintf(base_text, sizeof(base_text), "%s", path);
	dirfd = open(dirname(dir_text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = dirfd < 0 ? -errno
		      : file_replace_at(dirfd, basename(base_text), text->p, text->n, mode);
	return r < 0 ? err_set(err, r, "'%s': %s", path, strerror(-r)) : 0;
}

static bool output_lost; /* there was no memory for some of it */

void cli_print(const struct buf *text)
{
	if (text->failed)
		output_lost = true;
	else if (text->n)
		fwrite(text->p, 1, text->n, stdout);
}

void cli_print_line(const struct buf *text)
{
	cli_print(text);
	putchar('\n');
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
	if (output_lost) {
		log_error("out of memory: the output is not complete");
		return EXIT_WARDER;
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

int cli_compile_rules(struct ruleset **ret, struct str texts, unsigned actions)
{
	struct err err = { 0 };
	bool told = false;
	int r;

	r = rule_texts_compile(ret, texts, actions, print_diag, &told, &err);
	if (r < 0 && !told)
		log_error("%s", err_text(&err));
	return r;
}

int cli_load_rules(struct ruleset **ret, bool default_packs, const struct option_list *files)
{
	const struct rule_files rf = { .builtin = default_packs, .path = files->v, .n = files->n };
	auto_buf struct buf texts = { 0 };
	struct err err = { 0 };
	int r;

	buf_init(&texts, RULE_TEXTS_MAX);
	r = rule_texts_read(&texts, &rf, &err);
	if (r < 0) {
		log_error("%s", err_text(&err));
		return r;
	}
	return cli_compile_rules(ret, (struct str){ texts.p, texts.n }, 0);
}

int cli_record_wanted(const struct rule_filter *f, struct arena *arena, struct str record,
		      struct err *err)
{
	static struct event ev;
	int r;

	if (!f)
		return 1;
	arena_reset(arena);
	r = event_from_json(&ev, arena, record, err);
	return r < 0 ? r : rule_filter_match(f, &ev);
}

bool cli_print_record(struct str record, FILE *out)
{
	auto_buf struct buf room = { 0 };
	struct str line;

	if (plain_json(record, &room, &line) < 0) {
		errno = ENOMEM;
		return false;
	}
	return fwrite(line.p, 1, line.n, out) == line.n && putc('\n', out) != EOF;
}

const char *cli_member(struct str object, const char *key, char *ret, size_t size)
{
	scan_text(object, key, ret, size);
	plain_text(ret, '?', "");
	return ret;
}
