// SPDX-License-Identifier: Apache-2.0
/* Batches whose request was answered, and whose records are safe only when the other side says so later. */
#include "exporters/http.h"

unsigned http_batch_wait(struct http_sink *s)
{
	unsigned batch = 0;

	while (s->waiting & 1u << batch)
		batch++;
	s->waiting |= 1u << batch;
	for (size_t i = 0; i < s->sent_n; i++)
		if (http_is_open(&s->items[i]))
			s->items[i].batch = (uint8_t)(batch + 1);
	return batch;
}

static void end_batch(struct http_sink *s, unsigned batch, bool done)
{
	s->waiting &= ~(1u << batch);
	for (size_t i = 0; i < s->items_n; i++) {
		if (s->items[i].batch != batch + 1)
			continue;
		s->items[i].batch = 0;
		s->items[i].done = done;
	}
}

void http_batch_done(struct http_sink *s, unsigned batch)
{
	end_batch(s, batch, true);
}

void http_batch_again(struct http_sink *s, unsigned batch)
{
	end_batch(s, batch, false);
}
