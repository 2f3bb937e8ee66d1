// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/dns_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"

#define HEADER_LEN 12

static void stream_forget(struct dns_stream *t)
{
	free(t->p);
	memset(t, 0, sizeof(*t));
}

void dns_streams_done(struct dns_streams *s)
{
	for (size_t i = 0; i < DNS_STREAMS_MAX; i++)
		stream_forget(&s->v[i]);
}

static bool is_of(const struct dns_stream *t, const struct wire_dns *w)
{
	return t->w.h.kind == w->h.kind && t->w.h.sandbox == w->h.sandbox &&
	       t->w.cookie == w->cookie && t->w.sport == w->sport && t->w.dport == w->dport;
}

/* A free place, or the oldest stream's: of the same sandbox when it has many, so that one sandbox's
 * flood costs another nothing. */
static struct dns_stream *stream_slot(struct dns_streams *s, uint32_t sandbox)
{
	struct dns_stream *oldest = NULL, *own = NULL;
	size_t own_n = 0;

	for (size_t i = 0; i < DNS_STREAMS_MAX; i++) {
		struct dns_stream *t = &s->v[i];

		if (t->w.h.kind == 0 && own_n < DNS_STREAMS_SANDBOX) {
			oldest = t;
			break;
		}
		if (t->w.h.kind && t->w.h.sandbox == sandbox) {
			own_n++;
			if (!own || t->age < own->age)
				own = t;
		}
		if (!oldest || t->age < oldest->age)
			oldest = t;
	}
	if (own_n >= DNS_STREAMS_SANDBOX)
		oldest = own;
	s->lost += oldest->n > oldest->taken || oldest->islands_n;
	stream_forget(oldest);
	return oldest;
}

static struct dns_stream *stream_find(struct dns_streams *s, const struct wire_dns *w)
{
	for (size_t i = 0; i < DNS_STREAMS_MAX; i++)
		if (is_of(&s->v[i], w))
			return &s->v[i];
	return NULL;
}

static int make_room(struct dns_stream *t, uint32_t need)
{
	uint32_t room = t->room ? t->room : 512;
	uint8_t *p;

	if (need <= t->room)
		return 0;
	while (room < need)
		room *= 2;
	room = MIN(room, DNS_STREAM_BYTES);
	p = realloc(t->p, room);
	if (!p)
		return -ENOMEM;
	t->p = p;
	t->room = room;
	return 0;
}

/* What lies behind messages handed out moves to the front. */
static void compact(struct dns_stream *t)
{
	uint32_t end = t->n;

	if (!t->taken)
		return;
	for (size_t i = 0; i < t->islands_n; i++) {
		end = MAX(end, t->islands[i].end);
		t->islands[i].at -= t->taken;
		t->islands[i].end -= t->taken;
	}
	memmove(t->p, t->p + t->taken, end - t->taken);
	t->n -= t->taken;
	t->taken = 0;
	if (t->n == 0 && t->islands_n == 0) {
		free(t->p);
		t->p = NULL;
		t->room = 0;
	}
}

/* Islands that what is complete has reached become part of it. */
static void join_islands(struct dns_stream *t)
{
	for (size_t i = 0; i < t->islands_n;) {
		if (t->islands[i].at > t->n) {
			i++;
			continue;
		}
		if (t->islands[i].end > t->n) {
			t->next_seq += t->islands[i].end - t->n;
			t->n = t->islands[i].end;
		}
		t->islands[i] = t->islands[--t->islands_n];
		i = 0;
	}
}

/* The sender's numbers make no sense, or a piece was lost for good: go on with this one, which begins
 * with a message more often than not. */
static void resync(struct dns_stream *t, uint32_t seq)
{
	t->n = t->taken = 0;
	t->islands_n = 0;
	t->next_seq = seq;
}

static int place(struct dns_stream *t, uint32_t seq, const uint8_t *p, uint32_t n)
{
	int32_t ahead = (int32_t)(seq - t->next_seq);
	uint32_t at;
	int r;

	if (ahead < 0) { /* sent again */
		uint32_t skip = (uint32_t) - (int64_t)ahead;

		if (skip >= n)
			return 0;
		p += skip;
		n -= skip;
		ahead = 0;
	}
	n = MIN(n, DNS_STREAM_BYTES / 2);
	if ((uint32_t)ahead > DNS_STREAM_BYTES - n - t->n ||
	    (ahead && t->islands_n == DNS_ISLANDS_MAX)) {
		resync(t, seq);
		ahead = 0;
	}
	at = t->n + (uint32_t)ahead;
	r = make_room(t, at + n);
	if (r < 0)
		return r;
	memcpy(t->p + at, p, n);
	if (ahead) {
		t->islands[t->islands_n++] = (struct dns_island){ at, at + n };
		return 0;
	}
	t->n += n;
	t->next_seq += n;
	join_islands(t);
	return 0;
}

int dns_stream_feed(struct dns_streams *s, const struct wire_dns *w, struct str data)
{
	struct dns_stream *t;

	if (!data.n)
		return 0;
	t = stream_find(s, w);
	if (!t) {
		t = stream_slot(s, w->h.sandbox);
		t->next_seq = w->tcp_seq;
	}
	t->w = *w;
	t->age = ++s->clock;
	t->messages = 0;
	t->tell = t->broken;
	if (t->broken)
		return 0;
	compact(t);
	return place(t, w->tcp_seq, (const uint8_t *)data.p, (uint32_t)data.n);
}

void dns_stream_close(struct dns_streams *s, uint32_t sandbox, uint64_t cookie)
{
	for (size_t i = 0; i < DNS_STREAMS_MAX; i++)
		if (s->v[i].w.h.kind && s->v[i].w.h.sandbox == sandbox &&
		    s->v[i].w.cookie == cookie)
			s->v[i].ending = true;
}

static bool give_up(struct dns_stream *t, struct dns_message *ret, const char *why)
{
	*ret = (struct dns_message){ .w = t->w, .bad = why };
	t->broken = true;
	t->tell = false;
	free(t->p);
	t->p = NULL;
	t->room = 0;
	resync(t, t->next_seq);
	return true;
}

static bool stream_next(struct dns_stream *t, struct dns_message *ret)
{
	uint32_t left = t->n - t->taken, told;
	const uint8_t *p;

	if (t->tell)
		return give_up(t, ret, "behind what was no message");
	if (left < 2 || t->broken)
		return false;
	p = t->p + t->taken;
	told = (uint32_t)p[0] << 8 | p[1];
	if (told < HEADER_LEN)
		return give_up(t, ret, "shorter than a header");
	if (t->messages == DNS_MESSAGES_MAX)
		return give_up(t, ret, "too many messages in one piece");
	if (left - 2 < told)
		return false;
	t->messages++;
	t->taken += 2 + told;
	*ret = (struct dns_message){ .w = t->w, .p = p + 2, .n = told, .total = told };
	return true;
}

/* The connection is over. What stays behind is told as far as it goes. */
static bool stream_end(struct dns_stream *t, struct dns_message *ret)
{
	uint32_t left = t->n - t->taken;
	const uint8_t *p;

	if (left <= 2 || t->broken)
		return false;
	p = t->p + t->taken;
	t->broken = true;
	*ret = (struct dns_message){
		.w = t->w, .p = p + 2, .n = left - 2, .total = (size_t)p[0] << 8 | p[1]
	};
	return true;
}

bool dns_stream_next(struct dns_streams *s, struct dns_message *ret)
{
	for (size_t i = 0; i < DNS_STREAMS_MAX; i++) {
		struct dns_stream *t = &s->v[i];

		if (t->w.h.kind == 0)
			continue;
		if (stream_next(t, ret))
			return true;
		if (!t->ending)
			continue;
		if (stream_end(t, ret))
			return true;
		stream_forget(t);
	}
	return false;
}
