/* SPDX-License-Identifier: Apache-2.0 */
/* A session as one HTML page: no network, opens from disk, nothing of the sandbox becomes markup.
 *
 * The page holds its data as deflated, base64 coded JSON, strings and sets of process fields once each:
 *   { verify, session, kinds[], fields[], strings[], snapshots[][field, string, ...],
 *     events[][seq, us since the one before, kind, snapshot, text, [field, string, ...]], omitted }
 * Strings are safe for a terminal already (text_for_terminal). */
#ifndef WARDER_REPLAY_REPORT_H
#define WARDER_REPLAY_REPORT_H

#include <stdbool.h>
#include "userspace/event/event.h"

#define REPORT_EVENTS_MAX 200000u /* the rest is counted, and the page says so */
#define REPORT_VALUE_MAX  8192	  /* bytes of one value */

struct report;

/* What the evidence strip shows: the verdict of verify. Strings are ours (hex, sentences). */
struct report_evidence {
	int code;
	const char *text, *head, *host_key;
	bool is_signed, is_trusted;
	uint64_t records, lost, checkpoints;
};

int report_new(struct report **ret);
void report_free(struct report *r);
/* In the order of the record. 0 or -ENOMEM. */
int report_add(struct report *r, const struct event *ev);
/* The whole page. 0, -ENOMEM, -EMSGSIZE. */
int report_write(struct report *r, const struct report_evidence *e, struct buf *out);

#endif
