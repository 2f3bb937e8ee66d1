// SPDX-License-Identifier: Apache-2.0
/* Tries twice and half the size now and then, and keeps what the rate says: a larger window must be worth it, a
 * smaller one must cost nothing. */
#include "exporters/kafka_window.h"

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

void kafka_window_init(struct kafka_window *w)
{
	*w = (struct kafka_window){ .size = WINDOW_MIN };
}

static void measure_anew(struct kafka_window *w)
{
	w->since = 0;
	w->acked = 0;
}

static void start_trial(struct kafka_window *w, uint64_t now, uint64_t rate)
{
	bool down = w->down_next && w->size > WINDOW_MIN;

	w->rate = rate;
	w->down_next = !w->down_next;
	w->next_try = now + WINDOW_REST_NS;
	if (down) {
		w->size = MAX(w->size / 2, (size_t)WINDOW_MIN);
		w->trial = WINDOW_SHRUNK;
	} else if (w->size < WINDOW_MAX) {
		w->size = MIN(w->size * 2, (size_t)WINDOW_MAX);
		w->trial = WINDOW_GROWN;
	}
}

/* 1.3: where the broker's distance is the limit it is twice the rate. 0.9: less is noise. */
static void end_trial(struct kafka_window *w, uint64_t now, uint64_t rate)
{
	bool good = w->trial == WINDOW_GROWN ? rate * 10 > w->rate * 13 : rate * 10 > w->rate * 9;
	bool grown = w->trial == WINDOW_GROWN;

	w->trial = WINDOW_STAYS;
	if (!good) {
		w->size = grown ? w->size / 2 : MIN(w->size * 2, (size_t)WINDOW_MAX);
		return;
	}
	w->down_next = !grown; /* and on in the same direction */
	start_trial(w, now, rate);
}

void kafka_window_acked(struct kafka_window *w, uint64_t now, uint64_t n, bool limited)
{
	uint64_t rate;

	if (!limited) {
		measure_anew(w);
		return;
	}
	if (!w->since) { /* what is acknowledged now was sent before */
		w->since = now;
		return;
	}
	w->acked += n;
	if (now - w->since < WINDOW_PERIOD_NS)
		return;
	rate = w->acked * NSEC_PER_SEC / (now - w->since);
	measure_anew(w);
	if (w->trial != WINDOW_STAYS)
		end_trial(w, now, rate);
	else if (now >= w->next_try)
		start_trial(w, now, rate);
}
