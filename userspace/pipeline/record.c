// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

/* Room for the command in a record, beside the other strings. */
#define COMMAND_MAX 24000
#define LABEL_MAX   512
#define SECRETS_MAX 1024 /* bytes of their names: more than a sandbox can have */

struct wire_hdr record_header(uint32_t sandbox_id, enum wire_kind kind)
{
	const uint32_t pid = (uint32_t)getpid();

	return (struct wire_hdr){
		.kind = (uint16_t)kind,
		.ts = clock_boot_ns(),
		.sandbox = sandbox_id,
		.tgid = pid,
		.tid = pid,
		.nr = WIRE_NR_NONE,
		.ring = WIRE_RING_NONE,
		.vantage = WIRE_V_RUNTIME,
		.comm = "warder",
	};
}

struct wire_str record_tail(struct buf *out, const void *p, size_t n)
{
	struct wire_str s = { (uint16_t)out->n, (uint16_t)n };

	return n && buf_add(out, p, n) == 0 ? s : (struct wire_str){ 0, 0 };
}

static struct wire_str tail_label(struct buf *out, const char *z)
{
	return z ? record_tail(out, z, strnlen(z, LABEL_MAX)) : (struct wire_str){ 0, 0 };
}

/* NUL-separated words; *cut when they did not fit. */
static struct wire_str tail_words(struct buf *out, const char *const *v, size_t n, size_t max,
				  bool *cut)
{
	uint16_t start = (uint16_t)out->n;
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(v[i]) + 1;

		if (k > max - used) {
			*cut = true;
			break;
		}
		if (buf_add(out, v[i], k) < 0)
			break;
		used += k;
	}
	return (struct wire_str){ used ? start : 0, (uint16_t)used };
}

int record_finish(struct buf *out, void *rec, size_t size)
{
	while (out->n % 8)
		buf_addc(out, 0);
	if (out->failed)
		return -ENOMEM;
	((struct wire_hdr *)rec)->len = (uint32_t)out->n; /* each record begins with it */
	memcpy(out->p, rec, size);
	return 0;
}

static void common_strings(struct buf *out, struct wire_session *rec,
			   const struct session_record *s)
{
	buf_reset(out);
	buf_add(out, rec, sizeof(*rec)); /* the place of the fixed part */
	rec->backend = tail_label(out, s->backend);
	rec->name = tail_label(out, s->name);
	rec->tenant = tail_label(out, s->tenant);
	rec->host = tail_label(out, s->host);
}

int record_session_start(struct buf *out, const struct session_record *s)
{
	struct wire_session rec = { .h = record_header(s->sandbox_id, WIRE_SESSION_START) };
	bool cut = false;
	size_t words = 0;

	common_strings(out, &rec, s);
	rec.policy = tail_label(out, s->policy);
	rec.image = tail_label(out, s->image);
	while (s->command && s->command[words])
		words++;
	rec.command = tail_words(out, (const char *const *)s->command, words, COMMAND_MAX, &cut);
	rec.degraded = tail_words(out, s->degraded, s->degraded_n, LABEL_MAX, &cut);
	rec.secrets = tail_words(out, s->secrets, s->secrets_n, SECRETS_MAX, &cut);
	if (cut)
		rec.h.flags |= WIRE_F_TRUNC;
	return record_finish(out, &rec, sizeof(rec));
}

int record_session_stop(struct buf *out, const struct session_record *s,
			const struct run_facts *facts, const struct outcome *o)
{
	struct wire_session rec = { .h = record_header(s->sandbox_id, WIRE_SESSION_STOP) };

	rec.exit_code = o->exit_code;
	rec.signal = facts->signal;
	rec.cpu_usec = facts->cpu_usec;
	rec.mem_peak = facts->mem_peak;
	rec.pids_peak = facts->pids_peak;
	rec.stdout_bytes = facts->stdout_bytes;
	rec.stderr_bytes = facts->stderr_bytes;
	common_strings(out, &rec, s);
	rec.reason = tail_label(out, o->reason);
	return record_finish(out, &rec, sizeof(rec));
}

void record_usage(struct wire_usage *rec, uint32_t sandbox_id)
{
	rec->h = record_header(sandbox_id, WIRE_USAGE);
	rec->h.len = sizeof(*rec);
}

int record_exec(struct buf *out, uint32_t sandbox_id, uint32_t pid, const char *words, size_t n)
{
	struct wire_exec rec = {
		.h = record_header(sandbox_id, WIRE_EXEC),
		.args_total = (uint32_t)n,
		.loginuid = UINT32_MAX,
	};

	rec.h.tgid = rec.h.tid = rec.h.nspid = pid;
	rec.h.start = rec.h.ts;
	memset(rec.h.comm, 0, sizeof(rec.h.comm));
	for (size_t i = 0; i < n; i++)
		rec.argc += !words[i];
	if (n > COMMAND_MAX) {
		n = COMMAND_MAX;
		rec.h.flags |= WIRE_F_TRUNC;
	}
	buf_reset(out);
	buf_add(out, &rec, sizeof(rec));
	rec.args = record_tail(out, words, n);
	rec.exe = record_tail(out, words, strnlen(words, n));
	return record_finish(out, &rec, sizeof(rec));
}

void record_escape(struct wire_escape *rec, uint32_t sandbox_id, enum wire_escape_type type)
{
	*rec = (struct wire_escape){ .h = record_header(sandbox_id, WIRE_ESCAPE), .type = type };
	rec->h.len = sizeof(*rec);
}

int record_limit(struct buf *out, uint32_t sandbox_id, const struct limit_hit *hit)
{
	struct wire_limit_hit rec = {
		.h = record_header(sandbox_id, WIRE_LIMIT),
		.value = hit->value,
		.used = hit->used,
		.type = hit->type,
		.count = (uint32_t)MIN(hit->count, (uint64_t)UINT32_MAX),
	};

	if (hit->killed)
		rec.h.flags |= WIRE_F_KILLED;
	buf_reset(out);
	buf_add(out, &rec, sizeof(rec));
	rec.target = tail_label(out, hit->target);
	return record_finish(out, &rec, sizeof(rec));
}
