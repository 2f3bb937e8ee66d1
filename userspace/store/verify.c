// SPDX-License-Identifier: Apache-2.0
/* FORMAT.md section 7: read everything once, believe nothing, say exactly what is known. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/store/files.h"
#include "userspace/store/verify.h"

#define PROGRESS_STEP (4 << 20)
#define TRIES_MAX     4

const char *verify_state_name(enum verify_state s)
{
	switch (s) {
	case VERIFY_OK:
		return "intact";
	case VERIFY_ALTERED:
		return "altered";
	case VERIFY_OPEN:
		return "open";
	case VERIFY_GAPS:
		return "intact with gaps";
	}
	return "unknown";
}

int verify_finding(struct verify *v, enum verify_state state, const char *fmt, ...)
{
	va_list ap;

	v->report->state = state;
	va_start(ap, fmt);
	vsnprintf(v->report->text, sizeof(v->report->text), fmt, ap);
	va_end(ap);
	return WALK_STOP;
}

static int altered_at(struct verify *v, uint64_t off, const char *what)
{
	v->report->first_bad = v->next_seq;
	return verify_finding(
		v, VERIFY_ALTERED,
		"altered: events.%04u.seg, byte %llu: %s; the %llu record%s before it %s as "
		"written",
		v->file.number, (unsigned long long)off, what,
		(unsigned long long)v->report->records, VERIFY_S(v->report->records),
		v->report->records == 1 ? "is" : "are");
}

/* The file of the last segment ends too early, or in good order but without a seal. */
static int events_end_missing(struct verify *v, uint64_t off, bool torn)
{
	const struct manifest_info *m = &v->manifest;
	unsigned long long records = v->report->records;

	if (v->manifest_readable && m->sealed) {
		/* Nothing was taken away, so what does not fit was changed. */
		if (v->bytes_on_disk >= m->bytes)
			return altered_at(v, off,
					  "the seal that the manifest promises is not here");
		v->report->first_bad = v->next_seq;
		return verify_finding(
			v, VERIFY_OPEN,
			"the end is missing: sealed with %llu records, but cut in "
			"events.%04u.seg at byte %llu; the first %llu records are intact",
			(unsigned long long)m->records, v->file.number, (unsigned long long)off,
			records);
	}
	if (v->log.fd >= 0 && v->log.has_next) {
		v->report->first_bad = v->next_seq;
		return verify_finding(
			v, VERIFY_OPEN,
			"the end is missing: %llu records were signed, but events.%04u.seg "
			"is cut at byte %llu; the first %llu records are intact",
			(unsigned long long)v->log.next.seq, v->file.number,
			(unsigned long long)off, records);
	}
	if (torn)
		return verify_finding(
			v, VERIFY_OPEN,
			"not sealed, and the last frame is incomplete (events.%04u.seg, byte "
			"%llu): running, crashed or cut; the first %llu records are intact",
			v->file.number, (unsigned long long)off, records);
	return verify_finding(
		v, VERIFY_OPEN,
		"not sealed: still running, crashed or cut; all %llu records there are "
		"intact",
		records);
}

/* The terminal may be ahead of the events and torn itself, but what is there must be good. */
static int end_missing(struct verify *v, uint64_t off, bool torn)
{
	int r = v->report->session[0] ? verify_tty_end(v) : WALK_ON;

	return r == WALK_ON ? events_end_missing(v, off, torn) : r;
}

static void tell_progress(struct verify *v, uint64_t done, bool always)
{
	if (!v->fn || (!always && done - v->told < PROGRESS_STEP))
		return;
	v->told = done;
	v->fn(v->arg, done, v->bytes_on_disk);
}

/* A sealed bundle: what the seal says against what was counted, then the manifest against both. */
static int check_seal(struct verify *v, uint64_t off)
{
	const struct seal *s = &v->seal;
	const struct manifest_info *m = &v->manifest;
	uint8_t hash[STORE_HASH_LEN];
	int r;

	if (s->records != v->report->records || s->frames != v->report->frames ||
	    s->redactions != v->report->redactions || s->segments != v->file.number ||
	    s->bytes != v->report->bytes)
		return altered_at(v, off,
				  "the seal does not fit what it seals; somebody who can recompute "
				  "hashes changed the bundle, and where cannot be told");
	hash_to_hex(v->report->head, v->head);
	if (!v->has_manifest)
		return verify_finding(
			v, VERIFY_ALTERED,
			"altered: the bundle is sealed, but its manifest.json is missing");
	if (chain_hash(v->chain, hash, v->manifest_text.p, v->manifest_text.n, NULL, 0) < 0)
		return -EIO;
	if (s->manifest_len != v->manifest_text.n || memcmp(hash, s->manifest_hash, sizeof(hash)))
		return verify_finding(
			v, VERIFY_ALTERED,
			"altered: manifest.json is not the one that was sealed; the records "
			"are");
	if (!v->manifest_readable || !m->sealed || m->records != s->records ||
	    m->frames != s->frames || m->gaps != s->gaps || m->bytes != s->bytes ||
	    m->segments != s->segments || m->redactions != s->redactions ||
	    strcmp(m->session, v->report->session) != 0 || strcmp(m->head, v->report->head) != 0)
		return verify_finding(
			v, VERIFY_ALTERED,
			"altered: manifest.json and the records contradict each other");
	v->report->gaps = s->gaps;
	r = verify_log_end(v);
	if (r == WALK_ON)
		r = verify_tty_end(v);
	if (r == WALK_ON)
		r = verify_blobs_end(v);
	if (r != WALK_ON)
		return r;
	if (s->gaps)
		verify_finding(v, VERIFY_GAPS,
			       "intact and sealed: %llu record%s; %llu event%s lost while "
			       "recording, as the records say",
			       (unsigned long long)s->records, VERIFY_S(s->records),
			       (unsigned long long)s->gaps, s->gaps == 1 ? " was" : "s were");
	else
		verify_finding(v, VERIFY_OK, "intact and sealed: %llu record%s, no gaps",
			       (unsigned long long)s->records, VERIFY_S(s->records));
	verify_tty_tell(v);
	verify_log_signer(v);
	return WALK_STOP;
}

/* What is wrong with a frame is -EBADMSG with *ret_why; that it could not be looked at is no finding about it. */
static int check_records(struct verify *v, const struct frame *f, const char **ret_why)
{
	const uint8_t *raw;
	int64_t n;
	int r;

	r = frame_unpack(&v->unpacker, f, &raw);
	if (r == -EBADMSG)
		*ret_why = "the frame does not decompress to its size";
	if (r < 0)
		return r;
	n = chain_records(v->chain, v->head, v->tree, raw, f->h.raw_len);
	v->raw = raw;
	if (n < 0 && n != -EBADMSG)
		return (int)n;
	if (n == f->h.n)
		return 0;
	*ret_why = "the frame's records do not fit into it";
	return -EBADMSG;
}

/* One frame that is complete and whose checksums are right: 0, or as above. */
static int check_frame(struct verify *v, const struct frame *f, const char **ret_why)
{
	int r;

	*ret_why = NULL;
	if (memcmp(f->h.prev, v->link, STORE_HASH_LEN) != 0)
		*ret_why = "the frame does not follow the bytes before it: a frame was removed, "
			   "added, moved or changed";
	else if (f->h.first_seq != v->next_seq)
		*ret_why = "the frame's sequence number does not go on from the one before";
	if (*ret_why)
		return -EBADMSG;
	r = chain_hash(v->chain, v->link, f->header, FRAME_HEADER_LEN + (size_t)f->h.comp_len, NULL,
		       0);
	if (r < 0)
		return r;
	if (f->h.type == FRAME_DATA) {
		uint64_t n = f->h.n;

		r = check_records(v, f, ret_why);
		if (r < 0)
			return r;
		v->report->records += n;
		v->report->frames++;
		v->next_seq += n;
	}
	if (memcmp(f->h.head, v->head, STORE_HASH_LEN) != 0) {
		v->next_seq = f->h.first_seq;
		v->report->records = v->next_seq - 1;
		*ret_why = "the records do not have the hash that was written: a record of this "
			   "frame was changed";
		return -EBADMSG;
	}
	if (f->h.type == FRAME_SEAL) {
		*ret_why = seal_decode(&v->seal, f->payload);
		if (*ret_why)
			return -EBADMSG;
		v->sealed = true;
	}
	return 0;
}

static int walk_frames(struct verify *v, bool last)
{
	uint64_t off = SEGMENT_HEADER_LEN, before = v->report->bytes;
	struct frame f;
	const char *why;
	int r;

	for (;;) {
		v->report->bytes = before + off;
		tell_progress(v, v->report->bytes, false);
		r = frame_read(&v->file, off, &f, &why);
		if (r == -EBADMSG && v->sealed)
			return altered_at(v, off, "bytes were added behind the seal");
		if (r == -EBADMSG)
			return altered_at(v, off, why);
		if (r < 0)
			return r;
		if (r == READ_END)
			break;
		if (v->sealed)
			return altered_at(v, off, "bytes were added behind the seal");
		if (r == READ_TORN)
			return last ? end_missing(v, off, true)
				    : altered_at(v, off, "cut, though another segment follows");
		r = check_frame(v, &f, &why);
		if (r == -EBADMSG)
			return altered_at(v, off, why);
		if (r < 0)
			return r;
		why = verify_witness_reached(v);
		if (why)
			return altered_at(v, off, why);
		if (f.h.type == FRAME_DATA) {
			v->report->redactions = redactions_add(
				v->report->redactions, frame_redactions(v->raw, f.h.raw_len));
			r = verify_tty_records(v, v->raw, f.h.raw_len, f.h.first_seq);
			if (r == WALK_ON)
				r = verify_blobs_records(v, v->raw, f.h.raw_len);
			if (r != WALK_ON)
				return r;
		}
		off = frame_end(&f);
		r = verify_log_reached(v, off);
		if (r != WALK_ON)
			return r;
	}
	if (v->sealed && !last)
		return altered_at(v, off, "a segment was added behind the seal");
	if (v->sealed)
		return check_seal(v, off - FRAME_HEADER_LEN - SEAL_LEN);
	return last ? end_missing(v, off, false) : WALK_ON;
}

static const char *check_segment_header(struct verify *v, const struct segment_header *h)
{
	if (h->number != v->file.number)
		return "the segment's number is not the one in its name";
	if (v->has_manifest && v->manifest_readable && strcmp(h->session, v->manifest.session) != 0)
		return "the segment belongs to another session than the manifest";
	if (h->number > 1 && strcmp(h->session, v->report->session) != 0)
		return "the segment belongs to another session than the one before";
	if (memcmp(h->prev, v->link, STORE_HASH_LEN) != 0 ||
	    memcmp(h->head, v->head, STORE_HASH_LEN) != 0 || h->first_seq != v->next_seq)
		return "the segment does not go on from the one before";
	return NULL;
}

static int walk_segment(struct verify *v, unsigned number)
{
	bool last = number == v->list.max;
	struct segment_header h;
	const uint8_t *bytes;
	const char *why;
	int r;

	r = segment_file_open(&v->file, v->dirfd, number, O_RDONLY);
	if (r == -ENOENT || r == -ELOOP || r == -EMEDIUMTYPE) {
		v->report->first_bad = v->next_seq;
		return verify_finding(v, VERIFY_ALTERED, "altered: events.%04u.seg %s", number,
				      r == -ENOENT ? "is missing, though later segments are there"
						   : "is no regular file");
	}
	if (r < 0)
		return r;
	v->report->segments = number;
	r = segment_header_read(&v->file, &h, &why);
	if (r == READ_END || r == READ_TORN)
		return last ? end_missing(v, 0, true)
			    : altered_at(v, 0, "cut, though another segment follows");
	if (r == -EBADMSG)
		return altered_at(v, 0, why);
	if (r < 0)
		return r;
	if (number == 1) {
		memcpy(v->report->session, h.session, SESSION_LEN);
		verify_witness_start(v);
		if (chain_start(v->chain, v->head, h.session) < 0)
			return -EIO;
	}
	why = check_segment_header(v, &h);
	if (why)
		return altered_at(v, 0, why);
	if (segment_file_get(&v->file, 0, SEGMENT_HEADER_LEN, &bytes) != SEGMENT_HEADER_LEN ||
	    chain_hash(v->chain, v->link, bytes, SEGMENT_HEADER_LEN, NULL, 0) < 0)
		return -EIO;
	r = verify_log_reached(v, SEGMENT_HEADER_LEN);
	if (r == WALK_ON)
		r = walk_frames(v, last);
	hash_to_hex(v->report->head, v->head);
	return r;
}

static int load_manifest(struct verify *v, struct err *err)
{
	int r = manifest_load(v->dirfd, &v->manifest_text);

	if (r == -ENOENT)
		return 0;
	if (r < 0 && r != -EFBIG && r != -ELOOP && r != -EMEDIUMTYPE)
		return err_set(err, r, "manifest.json: %m");
	v->has_manifest = true;
	if (r < 0)
		return 0; /* there, but nothing we would have written */
	v->manifest_readable =
		manifest_parse((struct str){ v->manifest_text.p, v->manifest_text.n },
			       &v->manifest) == 0;
	return 0;
}

/* Sizes first, for progress and to tell a cut from a change. */
static void measure(struct verify *v)
{
	uint64_t size;

	for (unsigned i = 1; i <= v->list.max; i++)
		if (segment_file_open(&v->file, v->dirfd, i, O_RDONLY) == 0 &&
		    segment_file_size(&v->file, &size) == 0)
			v->bytes_on_disk += size;
}

static int verify_run(struct verify *v, struct err *err)
{
	int r;

	r = segment_list(v->dirfd, &v->list, err);
	if (r < 0)
		return r;
	r = load_manifest(v, err);
	if (r < 0)
		return r;
	if (v->list.max == 0 && !v->has_manifest)
		return err_set(err, ENOENT,
			       "no session bundle: neither events.0001.seg nor "
			       "manifest.json is there");
	if (v->list.foreign[0])
		return verify_finding(v, VERIFY_ALTERED,
				      "altered: the file '%s' is none of the bundle's",
				      v->list.foreign);
	if (v->list.max == 0)
		return verify_finding(v,
				      v->manifest_readable && !v->manifest.sealed ? VERIFY_OPEN
										  : VERIFY_ALTERED,
				      "all segments are missing, only manifest.json is there");
	r = verify_log_open(v, err);
	if (r != WALK_ON)
		return r < 0 ? r : 0;
	r = chain_new(&v->chain);
	if (r < 0)
		return err_set(err, r, "verify: %m");
	measure(v);
	for (unsigned i = 1; i <= v->list.max; i++) {
		r = walk_segment(v, i);
		if (r < 0)
			return err_set(err, r, "events.%04u.seg: %m", i);
		if (r == WALK_STOP)
			break;
	}
	tell_progress(v, v->report->bytes, true);
	return 0;
}

static void verify_done(struct verify *v)
{
	segment_file_close(&v->file);
	checkpoint_file_close(&v->log);
	terminal_walk_done(&v->tty);
	verify_blobs_done(&v->blobs);
	unpacker_done(&v->unpacker);
	chain_free(v->chain);
	buf_done(&v->manifest_text);
	free(v->tree);
}

/* Changes whenever the bundle does. */
static uint64_t mark_of(int dirfd)
{
	uint64_t bytes, mark;

	return store_size(dirfd, &bytes, &mark) < 0 ? 0 : mark;
}

int store_verify_signed(int dirfd, const struct verify_options *opt, struct verify_report *ret,
			verify_progress_fn fn, void *arg, struct err *err)
{
	static const struct verify_options none;
	struct verify_report report;
	struct verify v;
	uint64_t mark = mark_of(dirfd), before;
	int r, tries = 0;

	/* Its files are read one after the other: of one that is being written they may be of different moments, which
	 * looks like a change. What grew meanwhile is read again. */
	for (;;) {
		report = (struct verify_report){ 0 };
		v = (struct verify){
			.dirfd = dirfd,
			.report = &report,
			.file = SEGMENT_FILE_NONE,
			.log = CHECKPOINT_FILE_NONE,
			.tty = TERMINAL_WALK_NONE,
			.opt = opt ? opt : &none,
			.next_seq = 1,
			.fn = fn,
			.arg = arg,
		};
		r = verify_run(&v, err);
		if (r < 0 || report.state != VERIFY_ALTERED || ++tries == TRIES_MAX)
			break;
		before = mark;
		mark = mark_of(dirfd);
		if (mark == before)
			break;
		verify_done(&v);
	}
	verify_log_foreign(&v);
	verify_witness_end(&v);
	verify_done(&v);
	if (r < 0)
		return r;
	*ret = report;
	return 0;
}

int store_verify(int dirfd, struct verify_report *ret, verify_progress_fn fn, void *arg,
		 struct err *err)
{
	return store_verify_signed(dirfd, NULL, ret, fn, arg, err);
}
