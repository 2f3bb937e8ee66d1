/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's terminal showed, or its stdout and stderr: `tty.NNNN.seg` of a bundle, FORMAT.md
 * section 13. The same frames and chains as the events; each commit is bound into the events' own chain by
 * a `terminal` event. Times are those of the events' `mono` (CLOCK_BOOTTIME): one clock for both. */
#ifndef WARDER_STORE_TERMINAL_H
#define WARDER_STORE_TERMINAL_H

#include "userspace/store/store.h"

#define TERMINAL_DATA_MAX   65536 /* bytes in one record */
#define TERMINAL_RECORD_LEN 16	  /* before the bytes */
#define TERMINAL_RECORD_MAX (TERMINAL_RECORD_LEN + TERMINAL_DATA_MAX)

enum terminal_type {
	TERMINAL_OUTPUT = 1, /* data, as the payload wrote it (after redaction) */
	TERMINAL_INPUT = 2,  /* data, as it was typed */
	TERMINAL_RESIZE = 3, /* cols, rows */
	TERMINAL_CUT = 4,    /* `bytes` of the stream were not kept, from here on */
	TERMINAL_WITHHELD =
		5, /* `bytes` of input not kept: typed while the terminal did not echo */
};

enum terminal_stream {
	TERMINAL_TTY = 0, /* a terminal: both directions, and all its resizes */
	TERMINAL_STDOUT = 1,
	TERMINAL_STDERR = 2,
	TERMINAL_STREAMS,
};

enum terminal_reason {
	TERMINAL_FOR_LIMIT = 1, /* past the output limit: the first and the last half are there */
	TERMINAL_FOR_DISK = 2,	/* could not be written in time */
};

struct terminal_record {
	enum terminal_type type;
	enum terminal_stream stream;
	enum terminal_reason reason; /* CUT only */
	uint64_t mono;		     /* ns, CLOCK_BOOTTIME: as an event's `mono` */
	uint16_t cols, rows;	     /* RESIZE */
	uint64_t bytes;		     /* CUT, WITHHELD */
	struct str data;	     /* OUTPUT, INPUT: 1 to TERMINAL_DATA_MAX bytes of anything */
};

/* Appends to `out`. -EINVAL: no such record; -ENOMEM, -EMSGSIZE of the buffer. */
int terminal_record_encode(struct buf *out, const struct terminal_record *rec);
/* NULL when good, else what is wrong. `ret->data` points into `bytes`. */
const char *terminal_record_decode(struct terminal_record *ret, struct str bytes);

/* ---- reader: any number, any process; also while it is being written ---- */

struct terminal_reader;

/* A session without a recording has no records: that is no error. */
int terminal_reader_open(struct terminal_reader **ret, int dirfd, struct err *err);
void terminal_reader_free(struct terminal_reader *r);
/* In order of time. 1: ret->data is valid until the next call; 0: nothing more there (yet); -EBADMSG:
 * damaged. Memory: one frame. */
int terminal_reader_next(struct terminal_reader *r, struct terminal_record *ret, uint64_t *ret_seq,
			 struct err *err);
/* The next record is number `seq` + 1 (0: from the start). */
int terminal_reader_seek(struct terminal_reader *r, uint64_t seq, struct err *err);
/* The next record is the first at `mono` or later. Reads frame headers and one frame. */
int terminal_reader_seek_time(struct terminal_reader *r, uint64_t mono, struct err *err);

/* As journal_reader_seek_back: the next record is the first of a frame. */
int terminal_reader_seek_back(struct terminal_reader *r, uint64_t mono, size_t bytes,
			      bool *ret_start, struct err *err);

/* ---- writer: one thread, one a bundle; the directory's lock is the journal's ---- */

struct terminal_log;

/* What a commit has made durable, for the `terminal` event that binds it. */
struct terminal_mark {
	uint64_t redactions;  /* secrets taken out since the mark before; by who appends */
	uint64_t first, last; /* numbers of the records; last < first: nothing new */
	uint64_t bytes;	      /* of output and input in them */
	uint8_t head[STORE_HASH_LEN];
};

/* Of the whole recording, for seal and manifest. */
struct terminal_end {
	uint64_t records, frames, bytes; /* bytes: of its files */
	unsigned segments;
	uint8_t head[STORE_HASH_LEN], link[STORE_HASH_LEN];
};

/* Creates tty.0001.seg. Of the options: session, segment_max, zstd_level, no_sync. */
int terminal_log_create(struct terminal_log **ret, int dirfd, const struct journal_options *opt,
			struct err *err);
void terminal_log_free(struct terminal_log *t);
/* As journal_append. */
int terminal_log_append(struct terminal_log *t, const struct terminal_record *rec);
/* As journal_commit. 0: *ret_mark tells what is durable since the last one. */
int terminal_log_commit(struct terminal_log *t, struct terminal_mark *ret_mark);
size_t terminal_log_behind(const struct terminal_log *t);
/* After a commit that was good. */
void terminal_log_end(const struct terminal_log *t, struct terminal_end *ret);

#endif
