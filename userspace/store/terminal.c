// SPDX-License-Identifier: Apache-2.0
/* Records of the terminal as bytes, and the reader of them. Nothing in a bundle is believed. */
#include "userspace/store/terminal.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/store/segment.h"

/* Offsets; FORMAT.md section 13 is the text to these. */
enum {
	TR_TYPE = 0,
	TR_STREAM = 1,
	TR_REASON = 2,
	TR_ZERO = 3,
	TR_MONO = 8,
	TR_BODY = TERMINAL_RECORD_LEN,
};

#define RESIZE_LEN 4
#define COUNT_LEN  8

static const char *check(const struct terminal_record *r)
{
	bool is_input = r->type == TERMINAL_INPUT || r->type == TERMINAL_WITHHELD ||
			r->type == TERMINAL_RESIZE;

	if (r->type < TERMINAL_OUTPUT || r->type > TERMINAL_WITHHELD)
		return "the terminal record's type is unknown";
	if (r->stream >= TERMINAL_STREAMS || (is_input && r->stream != TERMINAL_TTY))
		return "the terminal record is of no such stream";
	if ((r->type == TERMINAL_CUT) !=
	    (r->reason == TERMINAL_FOR_LIMIT || r->reason == TERMINAL_FOR_DISK))
		return "the terminal record's reason is unknown";
	if ((r->type == TERMINAL_OUTPUT || r->type == TERMINAL_INPUT) &&
	    (r->data.n < 1 || r->data.n > TERMINAL_DATA_MAX))
		return "the terminal record's length is out of range";
	return NULL;
}

int terminal_record_encode(struct buf *out, const struct terminal_record *rec)
{
	uint8_t body[TERMINAL_RECORD_LEN + COUNT_LEN] = { 0 };
	size_t n = TERMINAL_RECORD_LEN;

	if (check(rec))
		return -EINVAL;
	body[TR_TYPE] = (uint8_t)rec->type;
	body[TR_STREAM] = (uint8_t)rec->stream;
	body[TR_REASON] = rec->type == TERMINAL_CUT ? (uint8_t)rec->reason : 0;
	put_le64(body + TR_MONO, rec->mono);
	if (rec->type == TERMINAL_RESIZE) {
		put_le32(body + TR_BODY, (uint32_t)rec->rows << 16 | rec->cols);
		n += RESIZE_LEN;
	} else if (rec->type == TERMINAL_CUT || rec->type == TERMINAL_WITHHELD) {
		put_le64(body + TR_BODY, rec->bytes);
		n += COUNT_LEN;
	}
	buf_add(out, body, n);
	if (n == TERMINAL_RECORD_LEN)
		buf_add(out, rec->data.p, rec->data.n);
	return out->failed ? -ENOMEM : 0;
}

const char *terminal_record_decode(struct terminal_record *ret, struct str bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.p;
	struct terminal_record r = { 0 };
	size_t body = bytes.n - TERMINAL_RECORD_LEN;
	const char *why;

	if (bytes.n < TERMINAL_RECORD_LEN)
		return "the terminal record is too short";
	r.type = p[TR_TYPE];
	r.stream = p[TR_STREAM];
	r.reason = p[TR_REASON];
	r.mono = get_le64(p + TR_MONO);
	for (size_t i = TR_ZERO; i < TR_MONO; i++)
		if (p[i])
			return "reserved bytes of the terminal record are not zero";
	if (r.type == TERMINAL_OUTPUT || r.type == TERMINAL_INPUT)
		r.data = (struct str){ bytes.p + TR_BODY, body };
	why = check(&r);
	if (why)
		return why;
	if (r.type == TERMINAL_RESIZE) {
		if (body != RESIZE_LEN)
			return "the terminal record's length is out of range";
		r.cols = (uint16_t)get_le32(p + TR_BODY);
		r.rows = (uint16_t)(get_le32(p + TR_BODY) >> 16);
	} else if (!r.data.n) {
		if (body != COUNT_LEN)
			return "the terminal record's length is out of range";
		r.bytes = get_le64(p + TR_BODY);
	}
	*ret = r;
	return NULL;
}

/* ---- reader ---- */

struct terminal_reader {
	struct journal_reader *journal;
	uint64_t skip_before; /* records older than that are passed over */
};

DEFINE_AUTO(terminal_reader, terminal_reader_free)

void terminal_reader_free(struct terminal_reader *r)
{
	if (!r)
		return;
	journal_reader_free(r->journal);
	free(r);
}

int terminal_reader_open(struct terminal_reader **ret, int dirfd, struct err *err)
{
	AUTO(terminal_reader) struct terminal_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return err_set(err, ENOMEM, "terminal reader: %m");
	e = journal_reader_open_kind(&r->journal, dirfd, SEGMENT_TTY, err);
	if (e < 0)
		return e;
	*ret = take_ptr(r);
	return 0;
}

int terminal_reader_next(struct terminal_reader *r, struct terminal_record *ret, uint64_t *ret_seq,
			 struct err *err)
{
	struct terminal_record rec;
	const char *why;
	struct str bytes;
	uint64_t seq;
	int s;

	do {
		s = journal_reader_next(r->journal, &bytes, &seq, err);
		if (s <= 0)
			return s;
		why = terminal_record_decode(&rec, bytes);
		if (why)
			return err_set(err, EBADMSG, "terminal record %llu: %s",
				       (unsigned long long)seq, why);
	} while (rec.mono < r->skip_before);
	r->skip_before = 0;
	*ret = rec;
	if (ret_seq)
		*ret_seq = seq;
	return 1;
}

int terminal_reader_seek(struct terminal_reader *r, uint64_t seq, struct err *err)
{
	r->skip_before = 0;
	return journal_reader_seek(r->journal, seq, err);
}

int terminal_reader_seek_time(struct terminal_reader *r, uint64_t mono, struct err *err)
{
	r->skip_before = mono;
	return journal_reader_seek_time(r->journal, mono, err);
}

int terminal_reader_seek_back(struct terminal_reader *r, uint64_t mono, size_t bytes,
			      bool *ret_start, struct err *err)
{
	r->skip_before = 0;
	return journal_reader_seek_back(r->journal, mono, bytes, ret_start, err);
}
