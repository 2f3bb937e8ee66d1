/* SPDX-License-Identifier: Apache-2.0 */
/* Wire records that we write ourselves: the launcher's side of the contract in bpf/abi/wire.h. */
#ifndef WARDER_PIPELINE_RECORD_H
#define WARDER_PIPELINE_RECORD_H

#include "bpf/abi/wire.h"
#include "userspace/base/buf.h"
#include "userspace/pipeline/outcome.h"

/* ---- what each is made of: buf_reset, the fixed part, its strings, its end ---- */

/* Of vantage runtime, now, by nobody of the sandbox. */
struct wire_hdr record_header(uint32_t sandbox_id, enum wire_kind kind);
/* Bytes behind what is there; empty when there are none or no memory. */
struct wire_str record_tail(struct buf *out, const void *p, size_t n);
/* `rec`, the fixed part of `size` bytes, gets its length and its place at the start of `out`. -ENOMEM. */
int record_finish(struct buf *out, void *rec, size_t size);

struct session_record {
	uint32_t sandbox_id;
	const char *backend;
	const char *name;
	const char *tenant;
	const char *policy; /* hash of the plan */
	const char *image;  /* NULL: none */
	const char *host;
	char *const *command; /* NULL-terminated */
	const char *const *degraded;
	size_t degraded_n;
	const char *const *secrets; /* names */
	size_t secrets_n;
};

/* SESSION_START. Strings that do not fit a record are cut and flagged WIRE_F_TRUNC. */
int record_session_start(struct buf *out, const struct session_record *s);
/* SESSION_STOP. */
int record_session_stop(struct buf *out, const struct session_record *s,
			const struct run_facts *facts, const struct outcome *o);

/* A limit that the root part saw to be hit. */
struct limit_hit {
	enum wire_limit type;
	uint64_t value, used; /* 0 = not known */
	uint64_t count;	      /* since it was told last */
	bool killed;	      /* the sandbox is ended for it */
	const char *target;   /* NULL = none */
};
/* The header of a sample, whose other members are filled. */
void record_usage(struct wire_usage *rec, uint32_t sandbox_id);
/* A further command that the launcher started in a sandbox whose kernel tells nobody of it. `words`: NUL-terminated,
 * one behind the other; `pid` is the guest's own. */
int record_exec(struct buf *out, uint32_t sandbox_id, uint32_t pid, const char *words, size_t n);
/* An escape signal that the launcher saw. */
void record_escape(struct wire_escape *rec, uint32_t sandbox_id, enum wire_escape_type type);
int record_limit(struct buf *out, uint32_t sandbox_id, const struct limit_hit *hit);

#endif
