// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/diff_workspace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/commands.h"
#include "userspace/event/event.h"
#include "userspace/replay/timeline.h"
#include "userspace/store/manifest.h"

#define WAIT_NS	      (20 * NSEC_PER_SEC)
#define LOOK_US	      50000
#define EVENT_MEM_MAX (16u << 20)
#define LINES_MAX     (64u << 20)
#define PATH_SHOWN    4096

DEFINE_AUTO(journal_reader, journal_reader_free)

struct found {
	bool json;
	struct buf lines; /* of the scan that is being read */
	struct buf last;  /* of the last whole one */
	uint64_t n, last_n;
	uint64_t scans;
	struct arena arena;
	struct event ev;
};

static void add_text(struct found *f)
{
	struct str change = event_str(&f->ev, F_FILE_CHANGE),
		   hash = event_str(&f->ev, F_FILE_SHA256);
	char sign = str_eqz(change, "created") ? '+' : str_eqz(change, "deleted") ? '-' : '~';
	auto_buf struct buf path = { 0 };

	if (text_for_terminal(event_str(&f->ev, F_FILE_PATH), PATH_SHOWN, &path) < 0)
		return;
	buf_printf(&f->lines, "%c %.*s", sign, (int)path.n, path.p);
	if (event_has(&f->ev, F_FILE_SIZE))
		buf_printf(&f->lines, "  %llu bytes",
			   (unsigned long long)event_u64(&f->ev, F_FILE_SIZE));
	else if (sign != '-')
		buf_printf(&f->lines, "  %.*s", (int)event_str(&f->ev, F_FILE_TYPE).n,
			   event_str(&f->ev, F_FILE_TYPE).p);
	if (event_u64(&f->ev, F_FILE_EXECUTABLE))
		buf_addz(&f->lines, "  executable");
	if (hash.n)
		buf_printf(&f->lines, "  sha256 %.*s", (int)hash.n, hash.p);
	buf_addc(&f->lines, '\n');
}

static void end_scan(struct found *f, struct str rec)
{
	const struct event *ev = &f->ev;
	struct buf swap = f->last;

	if (f->json) {
		buf_add(&f->lines, rec.p, rec.n);
		buf_addc(&f->lines, '\n');
	} else {
		buf_printf(&f->lines, "%llu created, %llu changed, %llu deleted",
			   (unsigned long long)event_u64(ev, F_WORKSPACE_CREATED),
			   (unsigned long long)event_u64(ev, F_WORKSPACE_CHANGED),
			   (unsigned long long)event_u64(ev, F_WORKSPACE_DELETED));
		if (event_has(ev, F_WORKSPACE_WHY) && ev->v[F_WORKSPACE_WHY].list.n) {
			buf_printf(&f->lines, "; incomplete, %llu left out:",
				   (unsigned long long)event_u64(ev, F_WORKSPACE_SKIPPED));
			for (size_t i = 0; i < ev->v[F_WORKSPACE_WHY].list.n; i++)
				buf_printf(&f->lines, " %.*s",
					   (int)ev->v[F_WORKSPACE_WHY].list.v[i].n,
					   ev->v[F_WORKSPACE_WHY].list.v[i].p);
		}
		buf_addc(&f->lines, '\n');
	}
	f->last = f->lines;
	f->last_n = f->n;
	f->lines = swap;
	buf_reset(&f->lines);
	f->n = 0;
	f->scans++;
}

static int take(struct found *f, struct str rec, struct err *err)
{
	int r;

	/* Most records are of another kind. */
	if (!memmem(rec.p, rec.n, "\"workspace.", 11))
		return 0;
	arena_reset(&f->arena);
	r = event_from_json(&f->ev, &f->arena, rec, err);
	if (r < 0)
		return r;
	if (f->ev.kind == WIRE_WORKSPACE_SCAN) {
		end_scan(f, rec);
	} else if (f->ev.kind == WIRE_WORKSPACE_CHANGE) {
		f->n++;
		if (!f->json) {
			add_text(f);
		} else {
			buf_add(&f->lines, rec.p, rec.n);
			buf_addc(&f->lines, '\n');
		}
	}
	return 0;
}

/* All that is there; *ret_ended: no more will come. */
static int read_on(struct journal_reader *reader, struct found *f, bool *ret_ended,
		   uint64_t *ret_seq, struct err *err)
{
	struct str rec;
	int r;

	while ((r = journal_reader_next(reader, &rec, ret_seq, err)) > 0) {
		r = take(f, rec, err);
		if (r < 0)
			return err_wrap(err, r, "record %llu", (unsigned long long)*ret_seq);
	}
	*ret_ended = journal_reader_at_end(reader);
	return r;
}

static int wait_scan(struct journal_reader *reader, struct found *f, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + WAIT_NS, scans = f->scans, seq;
	bool ended = false;
	int r = 0;

	while (r == 0 && f->scans == scans && !ended) {
		if (clock_ns(CLOCK_MONOTONIC) > end)
			return err_set(err, ETIMEDOUT, "no comparison came within %llu s",
				       (unsigned long long)(WAIT_NS / NSEC_PER_SEC));
		usleep(LOOK_US);
		r = read_on(reader, f, &ended, &seq, err);
	}
	return r;
}

/* By its own name, by which it is known while it runs, also when it was found by directory. 1: it was asked; 0: it does
 * not run, what the record has must do. */
static int ask(int fd, struct err *err)
{
	auto_buf struct buf text = { 0 };
	struct manifest_info m;
	int r;

	buf_init(&text, MANIFEST_MAX);
	if (manifest_load(fd, &text) < 0 || manifest_parse((struct str){ text.p, text.n }, &m) < 0)
		return 0;
	r = order_workspace(m.session, err);
	if (r != -ENOENT && r != -ESRCH)
		return r < 0 ? r : 1;
	*err = (struct err){ 0 };
	return 0;
}

static int find(struct found *f, const char *word, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	auto_close int fd = -1;
	uint64_t seq = 0;
	bool ended;
	int r;

	r = bundle_open(&fd, word, "diff", err);
	if (r == 0)
		r = journal_reader_open(&reader, fd, err);
	if (r == 0)
		r = read_on(reader, f, &ended, &seq, err);
	if (r == 0 && !ended)
		r = ask(fd, err);
	if (r > 0)
		r = wait_scan(reader, f, err);
	if (r == 0)
		r = bundle_check_end(fd, seq, err);
	if (r == 0 && !f->scans)
		r = err_set(err, ENODATA,
			    "its workspace was not compared (--no-workspace-diff), or it has not "
			    "ended as it should");
	return r < 0 ? err_wrap(err, r, "session '%s'", word) : 0;
}

int diff_workspace(const char *word, bool json, bool quiet, uint64_t *ret_n, struct err *err)
{
	struct found *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	f->json = json;
	buf_init(&f->lines, LINES_MAX);
	buf_init(&f->last, LINES_MAX);
	arena_init(&f->arena, EVENT_MEM_MAX);
	r = find(f, word, err);
	if (r == 0 && f->last.failed)
		r = err_set(err, E2BIG, "more than %u bytes", LINES_MAX);
	if (r == 0) {
		*ret_n = f->last_n;
		if (!quiet)
			fwrite(f->last.p, 1, f->last.n, stdout);
	}
	arena_done(&f->arena);
	buf_done(&f->lines);
	buf_done(&f->last);
	free(f);
	return r;
}
