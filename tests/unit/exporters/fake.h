/* SPDX-License-Identifier: Apache-2.0 */
/* A journal and a sink in memory. The sink acknowledges as its script says; what the other side
 * "has" is a counter for each seq. */
#ifndef WARDER_TESTS_FAKE_H
#define WARDER_TESTS_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/exporter.h"
#include "exporters/prefix.h"

#define FAKE_MAX    20001
#define FAKE_WINDOW 64

struct fake_journal {
	atomic_ulong n;	 /* committed records, seq 1..n */
	atomic_int fail; /* next() returns this while not 0 */
};

struct fake_source {
	struct fake_journal *journal;
	uint64_t pos;
	char line[160];
};

/* One "other side"; outlives the sinks that are opened on it. */
struct fake_peer {
	pthread_mutex_t lock;
	unsigned got[FAKE_MAX]; /* acknowledged deliveries of each seq */
	unsigned order_errors;	/* first deliveries out of order */
	uint64_t last_first;
	atomic_int polls;
	atomic_bool hold;				   /* acknowledge nothing */
	atomic_bool down;				   /* take nothing */
	unsigned poison_every, full_chance, rewind_chance; /* 1 in N, 0 = never */
	bool shuffle;
};

struct fake_sink {
	struct exporter x;
	struct fake_peer *peer;
	struct prefix prefix;
	uint64_t tickets[FAKE_WINDOW], seqs[FAKE_WINDOW];
	size_t n;
	const struct exporter_host *host;
};

static struct fake_peer *fake_next_peer; /* of the sink that is opened next */

static inline bool one_in(unsigned n)
{
	return n && (unsigned)random() % n == 0;
}

static int fake_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	struct fake_source *s = arg;
	int fail = atomic_load(&s->journal->fail), n;

	if (fail)
		return err_set(err, fail, "segment 1 is damaged");
	if (s->pos >= atomic_load(&s->journal->n))
		return 0;
	s->pos++;
	n = snprintf(s->line, sizeof(s->line),
		     "{\"v\":1,\"id\":\"i-%llu\",\"seq\":%llu,\"kind\":\"exec\",\"session\":\"s\"}",
		     (unsigned long long)s->pos, (unsigned long long)s->pos);
	*ret_rec = (struct str){ s->line, (size_t)n };
	*ret_seq = s->pos;
	return 1;
}

static int fake_seek(void *arg, uint64_t seq, struct err *err)
{
	(void)err;
	((struct fake_source *)arg)->pos = seq;
	return 0;
}

static int fake_open_source(void *arg, struct export_source *ret, struct err *err)
{
	struct fake_source *s = calloc(1, sizeof(*s));

	(void)err;
	s->journal = arg;
	*ret = (struct export_source){ s, fake_next, fake_seek, free };
	return 0;
}

static enum export_result fake_write(struct exporter *x, const struct export_record *rec)
{
	struct fake_sink *s = (struct fake_sink *)x;
	struct fake_peer *p = s->peer;
	char id[32];

	snprintf(id, sizeof(id), "i-%llu", (unsigned long long)rec->seq);
	if (!str_eqz(rec->id, id) || !str_eqz(rec->kind, "exec"))
		abort();
	if (one_in(p->rewind_chance)) {
		x->rewind = true;
		return EXPORT_FULL;
	}
	if (atomic_load(&p->down) || prefix_is_full(&s->prefix) || one_in(p->full_chance))
		return EXPORT_FULL;
	if (p->poison_every && rec->seq % p->poison_every == 0) {
		x->why = "fake refusal";
		return EXPORT_POISON;
	}
	prefix_add(&s->prefix, rec->seq, 1, &s->tickets[s->n]);
	s->seqs[s->n++] = rec->seq;
	return EXPORT_OK;
}

static void fake_ack(struct fake_sink *s, size_t i)
{
	struct fake_peer *p = s->peer;
	uint64_t seq = s->seqs[i];

	if (!p->got[seq]++) {
		p->order_errors += seq < p->last_first;
		p->last_first = seq;
	}
	prefix_mark(&s->prefix, s->tickets[i]);
	s->n--;
	memmove(s->tickets + i, s->tickets + i + 1, (s->n - i) * sizeof(*s->tickets));
	memmove(s->seqs + i, s->seqs + i + 1, (s->n - i) * sizeof(*s->seqs));
}

static uint64_t fake_poll(struct exporter *x, int timeout_ms)
{
	struct fake_sink *s = (struct fake_sink *)x;
	struct fake_peer *p = s->peer;

	(void)timeout_ms;
	atomic_fetch_add(&p->polls, 1);
	pthread_mutex_lock(&p->lock);
	while (s->n && !atomic_load(&p->hold) && !(p->shuffle && one_in(8)))
		fake_ack(s, p->shuffle ? (size_t)random() % s->n : 0);
	pthread_mutex_unlock(&p->lock);
	if (x->rewind || one_in(p->rewind_chance)) {
		x->rewind = true;
		prefix_reset(&s->prefix);
		s->n = 0;
	}
	return s->prefix.acked;
}

static const char *fake_status(const struct exporter *x)
{
	return atomic_load(&((const struct fake_sink *)x)->peer->down) ? "peer is down" : "";
}

static void fake_close(struct exporter *x)
{
	prefix_done(&((struct fake_sink *)x)->prefix);
	free(x);
}

static int fake_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err);

static const struct exporter_property fake_properties[] = { { "x", "X", "", "", true }, { 0 } };
static const struct exporter_class fake_class = {
	.name = "fake",
	.doc = "",
	.properties = fake_properties,
	.open = fake_open,
	.write = fake_write,
	.poll = fake_poll,
	.status = fake_status,
	.close = fake_close,
};

static int fake_open(struct exporter **ret, const struct exporter_config *cfg, struct err *err)
{
	struct fake_sink *s = calloc(1, sizeof(*s));

	(void)err;
	s->x.class = &fake_class;
	s->peer = fake_next_peer;
	s->host = cfg->host;
	prefix_init(&s->prefix, FAKE_WINDOW);
	*ret = &s->x;
	return 0;
}

static inline struct fake_peer *fake_peer_new(void)
{
	struct fake_peer *p = calloc(1, sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	return p;
}

static inline struct exporter_config fake_config(const char *name)
{
	struct exporter_config cfg = { .class = &fake_class };

	snprintf(cfg.name, sizeof(cfg.name), "%s", name);
	return cfg;
}

#endif
