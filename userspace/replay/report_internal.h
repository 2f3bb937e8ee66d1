/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_REPLAY_REPORT_INTERNAL_H
#define WARDER_REPLAY_REPORT_INTERNAL_H

#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/replay/intern.h"
#include "userspace/replay/report.h"
#include "userspace/replay/report_stream.h"

#define REPORT_BLOCK	  (64 * 1024)	     /* a line of data goes out when it has grown to this */
#define REPORT_INTERN_MAX ((size_t)32 << 20) /* strings remembered; then they are told anew */
#define REPORT_BLOBS_N	  2000
#define REPORT_BINS	  512

/* Strings numbered through the whole page; which of them are known is forgotten when they are too much. */
struct report_strings {
	struct intern known;
	uint32_t before;  /* numbers given out and forgotten */
	struct buf fresh; /* JSON, since the line before */
};

struct report {
	struct report_options opt;
	struct report_stream stream;
	struct report_strings strings, snapshots;
	struct buf rows, own, terminal, text, pairs, session, line;
	uint64_t events, omitted, seq, us, first_mono;
	bool has_start, in_set;
	size_t elements; /* in pairs */

	/* events that are not in the page, by kind and time: bins that double in width */
	uint32_t *bins;
	uint64_t bin_us;

	uint64_t frame_us, frames, terminal_bytes, terminal_omitted, blob_bytes, blobs_omitted;
	int text_field, text_before_field;
	char blobs[REPORT_BLOBS_N][72];
	size_t blobs_n;

	/* of session.start and session.stop */
	char id[64], started[RFC3339_NS_LEN + 1], reason[32], code[24], signal[24];
};

/* report_page.c */
int report_page_begin(struct report *r, const struct report_evidence *e);
int report_page_end(struct report *r, const char *damage);
/* report_density.c */
int report_density_init(struct report *r);
void report_density_add(struct report *r, enum wire_kind kind, uint64_t us);
void report_density_json(const struct report *r, struct json *j);

uint32_t report_kind_index(enum wire_kind kind);

#endif
