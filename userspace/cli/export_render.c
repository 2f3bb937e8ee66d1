// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/export_render.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/render/render.h"
#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/export_tty.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run.h"
#include "userspace/store/store.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(rule_filter, rule_filter_free)
DEFINE_AUTO(renderer, renderer_free)

#define PROGRESS_NS   (NSEC_PER_SEC / 4)
#define PROGRESS_STEP 1024 /* records between looks at the clock */

struct work {
	struct journal_reader *reader;
	struct renderer *renderer;
	struct rule_filter *filter;
	FILE *out;
	struct arena arena;
	struct event event;
	uint64_t read, written, refused;
	bool progress;
	uint64_t told_at;
};

static void tell(struct work *w, bool last)
{
	uint64_t now;

	if (!w->progress || (!last && w->read % PROGRESS_STEP))
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (!last && now - w->told_at < PROGRESS_NS)
		return;
	w->told_at = now;
	fprintf(stderr, "\r%llu events read, %llu written%s", (unsigned long long)w->read,
		(unsigned long long)w->written, last ? "\n" : "");
}

/* 1 written, 0 filtered out, -EIO when nobody reads on. What cannot be rendered is counted. */
static int render_one(struct work *w, struct str rec, struct err *err)
{
	struct str text;
	int r;

	if (!w->filter) {
		r = renderer_record(w->renderer, rec, &text, err);
	} else {
		arena_reset(&w->arena);
		r = event_from_json(&w->event, &w->arena, rec, err);
		if (r == 0 && !rule_filter_match(w->filter, &w->event))
			return 0;
		if (r == 0)
			r = renderer_event(w->renderer, &w->event, rec, &text, err);
	}
	if (r < 0) {
		if (!w->refused++)
			log_warn("event %llu: %s; skipping such events",
				 (unsigned long long)w->read, err_text(err));
		*err = (struct err){ 0 };
		return 0;
	}
	if (renderer_format(w->renderer)->render
		    ? fwrite(text.p, 1, text.n, w->out) != text.n || putc('\n', w->out) == EOF
		    : !cli_print_record(text, w->out))
		return -EIO;
	w->written++;
	return 1;
}

static int render_all(struct work *w, int bundle, struct err *err)
{
	struct str rec;
	uint64_t seq = 0;
	int r;

	while ((r = journal_reader_next(w->reader, &rec, &seq, err)) > 0) {
		w->read++;
		if (render_one(w, rec, err) < 0)
			return 0; /* nobody reads on, or closing the file tells */
		tell(w, false);
	}
	tell(w, true);
	return r < 0 ? r : bundle_check_end(bundle, seq, err);
}

static const struct format *find_format(const struct export_render *opt, struct err *err)
{
	const char *name = strcmp(opt->format, "json") ? opt->format : "native";
	char versioned[32];

	if (!opt->ocsf_version)
		return format_find(name, err);
	if (strcmp(name, "ocsf")) {
		err_set(err, EINVAL, "--ocsf-version goes with --format ocsf");
		return NULL;
	}
	snprintf(versioned, sizeof(versioned), "ocsf-%.16s", opt->ocsf_version);
	return format_find(versioned, err);
}

/* The error of one who does not know the terminal's formats. */
static void add_tty_formats(struct err *err)
{
	size_t n = strlen(err->text);

	if (strstr(err->text, "known are"))
		snprintf(err->text + n, sizeof(err->text) - n,
			 "; json (the same as native), and of the terminal: text, cast, cast3");
}

/* Records came from a sandbox: they are read without privilege, where the engine's user may read them. */
static int drop(int bundle, struct err *err)
{
	struct stat st;
	uid_t uid;
	gid_t gid;

	engine_ids(&uid, &gid);
	if (geteuid() != 0 || fstat(bundle, &st) < 0 || st.st_uid != uid)
		return 0;
	return privdrop(uid, gid, err);
}

static int finish(struct work *w, const char *output, struct err *err)
{
	bool failed = output && ferror(w->out);
	int code = errno;

	if (output && fclose(w->out) != 0) {
		failed = true;
		code = errno;
	}
	if (failed) {
		err_set(err, code, "'%s': %m", output);
		return cli_fail(err);
	}
	if (w->refused) {
		log_warn("%llu events have no such form", (unsigned long long)w->refused);
		return output ? 1 : cli_finish_output(1);
	}
	return output ? 0 : cli_finish_output(0);
}

int export_render(const struct export_render *opt, const char *word, int bundle, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	AUTO(rule_filter) struct rule_filter *filter = NULL;
	AUTO(renderer) struct renderer *renderer = NULL;
	bool tty = export_tty_is_format(opt->format) && !opt->ocsf_version;
	const struct format *format = tty ? NULL : find_format(opt, err);
	const char *output = opt->output && strcmp(opt->output, "-") ? opt->output : NULL;
	static struct work w;
	int r;

	if (tty && opt->filter)
		err_set(err, EINVAL, "--filter chooses events, and '%s' is the terminal",
			opt->format);
	if (!tty && !format)
		add_tty_formats(err);
	if (tty ? opt->filter != NULL : !format) {
		err_wrap(err, -EINVAL, "--format");
		return cli_bad_usage("export", err);
	}
	if (opt->filter && rule_filter_new(&filter, str_from(opt->filter), err) < 0) {
		err_wrap(err, -EINVAL, "--filter");
		return cli_fail(err);
	}
	w = (struct work){ .filter = filter, .out = stdout };
	w.progress = isatty(STDERR_FILENO) && (output || !isatty(STDOUT_FILENO));
	if (output)
		w.out = fopen(output, "we");
	if (!w.out) {
		err_set(err, errno, "'%s': %m", output);
		return cli_fail(err);
	}
	if (drop(bundle, err) < 0)
		return cli_fail(err);
	if (tty) {
		r = export_tty(opt->format, bundle, w.out, err);
		if (r == 0)
			r = bundle_check_end(bundle, UINT64_MAX, err);
		if (r < 0) {
			fflush(w.out);
			err_wrap(err, r, "session '%s'", word);
			return cli_fail(err);
		}
		return finish(&w, output, err);
	}
	if (renderer_new(&renderer, format, err) < 0)
		return cli_fail(err);
	w.renderer = renderer;
	arena_init(&w.arena, RENDER_EVENT_MAX);
	r = journal_reader_open(&reader, bundle, err);
	w.reader = reader;
	if (r == 0)
		r = render_all(&w, bundle, err);
	arena_done(&w.arena);
	if (r < 0) {
		fflush(w.out);
		err_wrap(err, r, "session '%s'", word);
		return cli_fail(err);
	}
	return finish(&w, output, err);
}
