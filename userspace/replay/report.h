/* SPDX-License-Identifier: Apache-2.0 */
/* A session as one HTML page: no network, opens from disk, nothing of the sandbox becomes markup. The page is
 * written while the record is read: memory is bounded whatever the session's length.
 *
 * The page holds its data as deflated, base64 coded lines of JSON; the order is that of the calls:
 *   { verify, kinds[], parts, fields[][name, type, common, doc], aliases, first, manifest, limits }
 *   { s[strings], p[sets of process fields], e[events], o[pairs] } any number; what is new since the line before
 *   { y[terminal records] }                                        any number
 *   { b: name of a blob, t: its text }
 *   { session, damage, omitted, density }                          the last
 * Lists are flat, since a browser makes an object of each bracket. An event is five numbers: seq and us since the one
 * before, kind, process set, how many elements of o[] are its own. Those are pairs of field and value, a value a
 * number, decimal digits, or the number of a string, or of several for a list; -1 is a new string, behind the last. A
 * terminal record is four: us since the one before, type, stream, data. Strings are safe for a terminal already
 * (text_for_terminal), but for those of the terminal itself, which are as they were. */
#ifndef WARDER_REPLAY_REPORT_H
#define WARDER_REPLAY_REPORT_H

#include <stdbool.h>
#include "userspace/event/event.h"

#define REPORT_EVENTS_MAX   200000u /* the rest is counted by time, and the page says so */
#define REPORT_VALUE_MAX    8192    /* bytes of one value */
#define REPORT_DATA_MAX	    ((uint64_t)192 << 20) /* of events, not deflated */
#define REPORT_TERMINAL_MAX ((uint64_t)24 << 20)  /* of the terminal's bytes */
#define REPORT_BLOBS_MAX    ((uint64_t)8 << 20)	  /* of files' texts */

struct report;

/* What the evidence strip shows: the verdict of verify. Strings are ours (hex, sentences). */
struct report_evidence {
	int code;
	const char *text, *head, *host_key;
	bool is_signed, is_trusted;
	uint64_t records, lost, checkpoints, redactions;
};

/* Another name that conditions may use for a field. */
struct report_alias {
	const char *name;
	enum field_id field;
};

struct report_options {
	/* Takes the page piece by piece. 0 or -errno, which the report's functions then return. */
	int (*write)(void *arg, const void *p, size_t n);
	void *write_arg;
	uint64_t from_ns,
		to_ns;	     /* of the session: events outside are counted only; to 0: its end */
	uint32_t events_max; /* 0 = REPORT_EVENTS_MAX */
	bool has_terminal;   /* report_terminal will be called: brings the player along */
	struct str manifest; /* of the bundle, when it is to be trusted: may still be any bytes */
	const struct report_alias *aliases;
	size_t aliases_n;
};

enum report_terminal_type {
	REPORT_OUTPUT = 'o',
	REPORT_INPUT = 'i',
	REPORT_RESIZE = 'r',
	REPORT_CUT = 'c',      /* bytes of the stream that were not kept */
	REPORT_WITHHELD = 'w', /* input that was not kept */
};

/* `stream`: 0 a terminal, 1 stdout, 2 stderr. */
struct report_frame {
	enum report_terminal_type type;
	unsigned stream;
	uint64_t mono;
	uint16_t cols, rows; /* RESIZE */
	uint64_t bytes;	     /* CUT, WITHHELD */
	struct str data;     /* OUTPUT, INPUT: any bytes */
};

/* Writes the page's beginning. `opt` is not kept, but what it points to is used until report_end. 0, -ENOMEM or
 * what `write` said; as all below. */
int report_begin(struct report **ret, const struct report_options *opt,
		 const struct report_evidence *e);
void report_free(struct report *r);
/* In the order of the record. */
int report_add(struct report *r, const struct event *ev);
/* Behind the last event, in order of time. What is past REPORT_TERMINAL_MAX is counted. */
int report_terminal(struct report *r, const struct report_frame *frame);
/* A text that the record keeps apart, by its name; counted only when it is past REPORT_BLOBS_MAX. */
int report_blob(struct report *r, struct str name, struct str text);
/* Names of blobs that events of the page mention; "" behind the last. */
const char *report_blob_wanted(const struct report *r, size_t i);
/* The rest of the page. `damage`: what kept the record from being read to its end, or NULL. */
int report_end(struct report *r, const char *damage);

#endif
