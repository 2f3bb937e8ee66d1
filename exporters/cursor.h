/* SPDX-License-Identifier: Apache-2.0 */
/* What a sink keeps on disk beside the journal: how far it got, and what was refused for good. */
#ifndef WARDER_EXPORTERS_CURSOR_H
#define WARDER_EXPORTERS_CURSOR_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"

/* The dead-letter file stops growing here; what comes later is still in the journal. */
#define DEAD_LETTER_MAX (64ll << 20)

/* `<session>.<sink>.cursor` in dirfd: one line with a checksum. Absent: 0 and *ret_seq = 0.
 * -EBADMSG when damaged or another's: the caller starts at 0, duplicates have equal ids. */
int cursor_load(int dirfd, const char *session, const char *sink, uint64_t *ret_seq);
/* Atomic and durable. `required`: the journal is kept until the sink took it (cursor_floor). */
int cursor_store(int dirfd, const char *session, const char *sink, uint64_t seq, bool required);
/* Up to where every required sink of the session has come: what lies behind it must be kept.
 * UINT64_MAX when none is required. A damaged cursor counts as a required one at 0. `ret_sink`
 * (CURSOR_SINK_MAX bytes): the one that is farthest behind, "" when there is none. */
#define CURSOR_SINK_MAX 64
int cursor_floor(int dirfd, const char *session, uint64_t *ret_seq, char *ret_sink);

/* Deletes what sinks keep of a session that is no more, dead letters included. Returns how many files. */
int cursor_forget(int dirfd, const char *session);
/* The same for every session that `is_there` does not know and whose files were not touched for `age_s` seconds:
 * sessions in directories of their own are not known, and may still be sent. */
int cursor_sweep(int dirfd, uint64_t age_s, bool (*is_there)(void *arg, const char *session),
		 void *arg);

/* Append one line to `<session>.<sink>.dlq.jsonl`: {"seq","time","sink","why","record"}. `is_json`:
 * the record is embedded as it is, else as a string. -EFBIG past DEAD_LETTER_MAX. */
int dead_letter_append(int dirfd, const char *session, const char *sink, uint64_t seq,
		       struct str record, bool is_json, const char *why);

#endif
