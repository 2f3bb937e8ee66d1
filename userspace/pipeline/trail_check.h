/* SPDX-License-Identifier: Apache-2.0 */
/* The host log against the records that it speaks of. */
#ifndef WARDER_PIPELINE_TRAIL_CHECK_H
#define WARDER_PIPELINE_TRAIL_CHECK_H

#include "userspace/store/hostlog.h"

#define TRAIL_SESSIONS_MAX 1000000

enum trail_fault {
	TRAIL_MISSING, /* its record is gone, and nobody said that it was pruned */
	TRAIL_UNLOGGED, /* a record that the log does not tell of: put there, or made where no log could be written */
	TRAIL_OTHER, /* its record is not the one that ended: another, or an older state of it */
};

typedef void (*trail_fault_fn)(void *arg, enum trail_fault fault, const char *session);

struct trail_check {
	struct hostlog_report log;
	uint64_t sessions, present,
		unended /* running, or warder was killed: there, but nothing says how it ended */;
	uint64_t pruned, elsewhere, missing, other, unlogged;
};

/* Only sessions below <state>/sessions are looked for; `elsewhere` counts the others, and what
 * lies there must be told of. Heads are compared
 * with the manifests', what is in a record is for store_verify. -ENOENT: no log; -E2BIG. */
int trail_verify(const struct verify_options *opt, trail_fault_fn fn, void *arg,
		 struct trail_check *ret, struct err *err);

#endif
