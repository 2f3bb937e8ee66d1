// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/consume_check.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/enrich/lru.h"

struct hole {
	uint64_t first, last;
};

struct session {
	struct lru_node node;
	uint64_t next; /* the seq that should come next */
	unsigned holes_n;
	struct hole holes[CONSUME_HOLES_MAX];
};

struct id {
	struct lru_node node;
	uint64_t body; /* hash */
};

struct consume_check {
	bool whole;
	uint8_t secret[crypto_shorthash_KEYBYTES];
	struct lru sessions, ids;
	struct consume_counts counts;
};

static uint64_t hash64(const struct consume_check *c, struct str s)
{
	uint8_t h[crypto_shorthash_BYTES];
	uint64_t v;

	crypto_shorthash(h, (const uint8_t *)s.p, s.n, c->secret);
	memcpy(&v, h, sizeof(v));
	return v;
}

static struct lru_key key_of(const struct consume_check *c, struct str s)
{
	struct lru_key k = { 0 };
	uint8_t h[crypto_generichash_BYTES_MIN];

	crypto_generichash(h, sizeof(h), (const uint8_t *)s.p, s.n, NULL, 0);
	memcpy(&k.a, h, 8);
	memcpy(&k.b, h + 8, 8);
	k.hash = hash64(c, s);
	return k;
}

int consume_check_new(struct consume_check **ret, bool whole)
{
	struct consume_check *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (sodium_init() < 0) {
		free(c);
		return -EIO;
	}
	c->whole = whole;
	randombytes_buf(c->secret, sizeof(c->secret));
	lru_init(&c->sessions, sizeof(struct session), CONSUME_SESSIONS_MAX, NULL, NULL);
	lru_init(&c->ids, sizeof(struct id), CONSUME_IDS_MAX, NULL, NULL);
	*ret = c;
	return 0;
}

void consume_check_free(struct consume_check *c)
{
	if (!c)
		return;
	lru_done(&c->sessions);
	lru_done(&c->ids);
	free(c);
}

/* Is it the first time that this id comes? */
static bool is_new_id(struct consume_check *c, struct str id, struct str body)
{
	struct lru_key k = key_of(c, id);
	struct id *e = (struct id *)lru_find(&c->ids, &k);
	uint64_t h = hash64(c, body);

	if (e) {
		lru_touch(&c->ids, &e->node);
		c->counts.altered += e->body != h;
		return false;
	}
	e = (struct id *)lru_add(&c->ids, &k);
	if (e)
		e->body = h;
	return true;
}

/* Takes seq out of the holes. false: it was in none. */
static bool fill_hole(struct session *s, uint64_t seq)
{
	for (unsigned i = 0; i < s->holes_n; i++) {
		struct hole *h = &s->holes[i];

		if (seq < h->first || seq > h->last)
			continue;
		if (h->first == h->last) {
			*h = s->holes[--s->holes_n];
		} else if (seq == h->first) {
			h->first++;
		} else if (seq == h->last) {
			h->last--;
		} else if (s->holes_n < CONSUME_HOLES_MAX) {
			s->holes[s->holes_n++] = (struct hole){ seq + 1, h->last };
			h->last = seq - 1;
		} else {
			h->first = seq + 1; /* no room to tell the part before it: stays missing */
		}
		return true;
	}
	return false;
}

static enum consume_verdict check_seq(struct consume_check *c, struct str session, uint64_t seq,
				      bool new_id, uint64_t *ret_missed)
{
	struct lru_key k = key_of(c, session);
	struct session *s = (struct session *)lru_find(&c->sessions, &k);

	if (!s) {
		s = (struct session *)lru_add(&c->sessions, &k);
		if (!s)
			return new_id ? CONSUME_NEW : CONSUME_DUPLICATE;
		s->next = 1;
		s->holes_n = 0;
		c->counts.sessions++;
	}
	lru_touch(&c->sessions, &s->node);
	if (seq < s->next) {
		if (!fill_hole(s, seq))
			return CONSUME_DUPLICATE; /* so long ago that its id is forgotten */
		c->counts.missing--;
		return CONSUME_LATE;
	}
	if (seq > s->next) {
		*ret_missed = seq - s->next;
		c->counts.missing += *ret_missed;
		if (s->holes_n < CONSUME_HOLES_MAX)
			s->holes[s->holes_n++] = (struct hole){ s->next, seq - 1 };
	}
	s->next = seq + 1;
	return CONSUME_NEW;
}

enum consume_verdict consume_check_record(struct consume_check *c, struct str session,
					  struct str id, uint64_t seq, struct str body,
					  uint64_t *ret_missed)
{
	bool new_id = is_new_id(c, id, body);
	enum consume_verdict v = new_id ? CONSUME_NEW : CONSUME_DUPLICATE;

	*ret_missed = 0;
	c->counts.records++;
	if (new_id && c->whole && seq)
		v = check_seq(c, session, seq, new_id, ret_missed);
	if (v == CONSUME_DUPLICATE)
		c->counts.duplicates++;
	else
		c->counts.events++;
	c->counts.late += v == CONSUME_LATE;
	return v;
}

void consume_check_counts(const struct consume_check *c, struct consume_counts *ret)
{
	*ret = c->counts;
}
