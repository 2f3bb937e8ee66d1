// SPDX-License-Identifier: Apache-2.0
/* A DNS message by itself: the first byte says whether it came over TCP and how much was cut off. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/decode.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event ev;
	struct arena arena;
	size_t cut, text = 0;
	uint8_t *copy;

	if (size == 0)
		return 0;
	cut = data[0] >> 1;
	arena_init(&arena, 4 << 20);
	event_init(&ev, WIRE_DNS_ANSWER, &arena);
	copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	dns_decode(&ev, copy, size - 1, size - 1 + cut, data[0] & 1);
	free(copy);
	if (event_has(&ev, F_DNS_NAME))
		check_text(event_str(&ev, F_DNS_NAME));
	if (event_has(&ev, F_DNS_ANSWERS)) {
		for (size_t i = 0; i < ev.v[F_DNS_ANSWERS].answers.n; i++) {
			const struct event_dns_answer *a = &ev.v[F_DNS_ANSWERS].answers.v[i];

			check_text(a->name);
			check_text(a->type);
			check_text(a->data);
			text += a->name.n + a->data.n;
		}
		if (text > 32 << 10)
			abort();
	}
	arena_done(&arena);
	return 0;
}
