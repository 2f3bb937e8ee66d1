// SPDX-License-Identifier: Apache-2.0
/* A DNS message by itself (first byte even: half of it is how much was cut off), or a TCP stream of them
 * (odd): pieces of the length and at the distance that the bytes in front of each say. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/decode.h"
#include "userspace/event/dns_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Names and data are plain ASCII, whatever the packet says. */
static void check_text(struct str s)
{
	if (!s.p)
		abort();
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < 0x20 || s.p[i] > 0x7e)
			abort();
}

static void check(const struct event *ev)
{
	size_t text = 0;

	if (event_has(ev, F_DNS_NAME))
		check_text(event_str(ev, F_DNS_NAME));
	if (!event_has(ev, F_DNS_ANSWERS))
		return;
	for (size_t i = 0; i < ev->v[F_DNS_ANSWERS].answers.n; i++) {
		const struct event_dns_answer *a = &ev->v[F_DNS_ANSWERS].answers.v[i];

		check_text(a->name);
		check_text(a->type);
		check_text(a->data);
		text += a->name.n + a->data.n;
	}
	if (text > 32 << 10)
		abort();
}

/* Exactly the bytes on the heap, so that ASan sees one too far. */
static void decode(const uint8_t *p, size_t n, size_t total)
{
	static struct event ev;
	uint8_t *copy = malloc(n ? n : 1);
	struct arena arena;

	arena_init(&arena, 4 << 20);
	event_init(&ev, WIRE_DNS_ANSWER, &arena);
	if (n)
		memcpy(copy, p, n);
	dns_decode(&ev, copy, n, total);
	free(copy);
	check(&ev);
	arena_done(&arena);
}

static void messages(struct dns_streams *s)
{
	struct dns_message m;
	size_t k = 0;

	while (dns_stream_next(s, &m)) {
		if (k++ > DNS_MESSAGES_MAX + DNS_STREAMS_MAX)
			abort();
		if (!m.bad)
			decode(m.p, m.n, m.total);
	}
}

/* Of each piece: cookie, how far from the last one it lies (signed), its length. */
static void stream(const uint8_t *p, size_t n)
{
	static struct dns_streams s;
	struct wire_dns w = { .h.kind = WIRE_DNS_QUERY };

	while (n >= 3) {
		size_t k = p[2];
		uint8_t *copy;

		w.cookie = p[0] & 0x7f;
		if (p[0] & 0x80)
			dns_stream_close(&s, 0, w.cookie);
		w.tcp_seq += (uint32_t)(int8_t)p[1];
		p += 3;
		n -= 3;
		if (k > n)
			k = n;
		copy = malloc(k ? k : 1);
		memcpy(copy, p, k);
		dns_stream_feed(&s, &w, (struct str){ (const char *)copy, k });
		free(copy);
		messages(&s);
		w.tcp_seq += (uint32_t)k;
		p += k;
		n -= k;
	}
	for (uint64_t c = 0; c < 128; c++)
		dns_stream_close(&s, 0, c);
	messages(&s);
	dns_streams_done(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		stream(data + 1, size - 1);
	else
		decode(data + 1, size - 1, size - 1 + (data[0] >> 1));
	return 0;
}
