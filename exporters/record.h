/* SPDX-License-Identifier: Apache-2.0 */
/* The few members of a journal record that sinks need, found without parsing all of it. */
#ifndef WARDER_EXPORTERS_RECORD_H
#define WARDER_EXPORTERS_RECORD_H

#include "exporters/exporter.h"

/* Members looked at before giving up; ours stand among the first dozen. */
#define RECORD_SCAN_MEMBERS 24
/* Bytes looked at before giving up: our header is a few hundred. */
#define RECORD_SCAN_BYTES 8192

/* Fill id, kind, session, sandbox and time from the top-level members of `json`; the strings point into
 * it. Nested members and text inside strings never match. A member that is absent, no string, or
 * holds an escape (ours never do) stays empty. -EBADMSG when it is no JSON object so far as it was
 * looked at. */
int record_scan(struct export_record *rec, struct str json);

/* The record's time in ns since 1970, 0 when it has none that we wrote. */
uint64_t record_time_ns(const struct export_record *rec);

#endif
