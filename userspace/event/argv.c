// SPDX-License-Identifier: Apache-2.0
/* An argv that is longer than a record comes in pieces, before its exec record. They are kept here
 * until that record asks for them; what never gets asked for is thrown out, oldest first. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/decoder.h"

int decoder_new(struct decoder **ret)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	*ret = d;
	return 0;
}

static void pending_drop(struct decoder *d, struct pending_exec *p)
{
	for (size_t i = 0; i < p->chunks_n; i++) {
		d->pending_bytes -= p->chunks[i].n;
		free(p->chunks[i].data);
	}
	p->exec_id = 0;
	p->chunks_n = 0;
}

void decoder_free(struct decoder *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < PENDING_EXECS_MAX; i++)
		pending_drop(d, &d->pending[i]);
	dns_streams_done(&d->dns);
	free(d);
}

const struct decode_stats *decoder_stats(const struct decoder *d)
{
	return &d->stats;
}

static struct pending_exec *pending_find(struct decoder *d, uint64_t exec_id)
{
	for (size_t i = 0; i < PENDING_EXECS_MAX; i++)
		if (d->pending[i].exec_id == exec_id)
			return &d->pending[i];
	return NULL;
}

/* Give up the execs that have waited longest, never `keep`. */
static void pending_make_room(struct decoder *d, size_t bytes, const struct pending_exec *keep)
{
	while (d->pending_bytes + bytes > PENDING_BYTES_MAX) {
		struct pending_exec *oldest = NULL;

		for (size_t i = 0; i < PENDING_EXECS_MAX; i++) {
			struct pending_exec *p = &d->pending[i];

			if (p->exec_id && p != keep && (!oldest || p->age < oldest->age))
				oldest = p;
		}
		if (!oldest)
			return;
		d->stats.chunks_lost += oldest->chunks_n;
		pending_drop(d, oldest);
	}
}

static struct pending_exec *pending_slot(struct decoder *d, uint64_t exec_id)
{
	struct pending_exec *p = pending_find(d, exec_id), *oldest = &d->pending[0];

	if (p)
		return p;
	p = pending_find(d, 0);
	if (!p) {
		for (size_t i = 1; i < PENDING_EXECS_MAX; i++)
			if (d->pending[i].age < oldest->age)
				oldest = &d->pending[i];
		d->stats.chunks_lost += oldest->chunks_n;
		pending_drop(d, oldest);
		p = oldest;
	}
	p->exec_id = exec_id;
	return p;
}

int decoder_keep_chunk(struct decoder *d, const void *rec, size_t len)
{
	struct pending_exec *p;
	struct wire_chunk w;
	char *data;

	if (len < sizeof(w))
		goto bad_size;
	memcpy(&w, rec, sizeof(w));
	if (w.n > len - sizeof(w) || w.n > WIRE_CHUNK_MAX || w.what > WIRE_CHUNK_ENV)
		goto bad_size;
	if (w.n == 0 || w.exec_id == 0)
		return 0;

	p = pending_slot(d, w.exec_id);
	pending_make_room(d, w.n, p);
	if (p->chunks_n == PENDING_CHUNKS_MAX || d->pending_bytes + w.n > PENDING_BYTES_MAX) {
		d->stats.chunks_lost++;
		return 0;
	}
	data = malloc(w.n);
	if (!data) {
		d->stats.chunks_lost++;
		return -ENOMEM;
	}
	memcpy(data, (const char *)rec + sizeof(w), w.n);
	p->chunks[p->chunks_n++] = (struct chunk){ w.offset, w.n, w.what, data };
	p->age = ++d->clock;
	d->pending_bytes += w.n;
	return 0;

bad_size:
	d->stats.bad_size++;
	return 0;
}

/* Where a piece lies among the bytes that were sent: of an argv that is longer than WIRE_ARGS_SENT the
 * middle was left out, and what is behind it moves up. */
static size_t sent_at(const struct chunk *k, size_t total)
{
	if (k->what == WIRE_CHUNK_ARGS && total > WIRE_ARGS_SENT &&
	    k->offset >= total - WIRE_ARGS_TAIL)
		return k->offset - (total - WIRE_ARGS_TAIL) + WIRE_ARGS_SENT - WIRE_ARGS_TAIL;
	return k->offset;
}

static int by_offset(const void *a, const void *b)
{
	const struct chunk *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Everything from the start up to the first hole; behind a hole nobody knows where words begin. */
static size_t fill_area(char *out, size_t n, size_t want, const struct pending_exec *p,
			enum wire_chunk_what what, size_t total)
{
	for (size_t i = 0; i < p->chunks_n; i++) {
		const struct chunk *k = &p->chunks[i];
		size_t at = sent_at(k, total), skip, take;

		if (k->what != what)
			continue;
		if (at > n) /* a hole: the piece before it was lost */
			break;
		skip = n - at;
		if (skip >= k->n)
			continue;
		take = MIN(k->n - skip, want - n);
		memcpy(out + n, k->data + skip, take);
		n += take;
	}
	return n;
}

struct str decode_area(struct decode_ctx *c, uint64_t exec_id, enum wire_chunk_what what,
		       struct str head, size_t total)
{
	size_t max = what == WIRE_CHUNK_ARGS ? WIRE_ARGS_SENT : WIRE_ENV_MAX;
	size_t want = MIN(total, max), n = MIN(head.n, want);
	struct decoder *d = c->decoder;
	struct pending_exec *p = exec_id ? pending_find(d, exec_id) : NULL;
	char *out;

	if (!p) {
		if (n < want && !(c->ev->hdr.flags & WIRE_F_TRUNC))
			d->stats.chunks_lost++;
		return (struct str){ head.p, n };
	}
	out = arena_alloc(c->ev->arena, want + 1);
	if (!out) {
		c->no_memory = true;
		return (struct str){ head.p, n };
	}
	if (n)
		memcpy(out, head.p, n);
	qsort(p->chunks, p->chunks_n, sizeof(p->chunks[0]), by_offset);
	n = fill_area(out, n, want, p, what, total);
	if (n < want)
		d->stats.chunks_lost++;
	return (struct str){ out, n };
}

void decode_areas_done(struct decode_ctx *c, uint64_t exec_id)
{
	struct pending_exec *p = exec_id ? pending_find(c->decoder, exec_id) : NULL;

	if (p)
		pending_drop(c->decoder, p);
}
