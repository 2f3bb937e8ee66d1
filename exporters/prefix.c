// SPDX-License-Identifier: Apache-2.0
#include "exporters/prefix.h"

#include <errno.h>
#include <stdlib.h>

int prefix_init(struct prefix *p, size_t cap)
{
	*p = (struct prefix){ .cap = cap, .head = 1, .tail = 1 }; /* ticket 0 is never given out */
	p->slots = calloc(cap, sizeof(*p->slots));
	return p->slots ? 0 : -ENOMEM;
}

void prefix_done(struct prefix *p)
{
	free(p->slots);
	p->slots = NULL;
}

static bool is_outstanding(const struct prefix *p, uint64_t ticket)
{
	return ticket >= p->head && ticket < p->tail;
}

int prefix_add(struct prefix *p, uint64_t seq, uint8_t parts, uint64_t *ret_ticket)
{
	if (prefix_is_full(p))
		return -ENOBUFS;
	p->slots[p->tail % p->cap] = (struct prefix_slot){ .seq = seq, .left = parts };
	*ret_ticket = p->tail++;
	return 0;
}

void prefix_cancel(struct prefix *p, uint64_t ticket)
{
	if (is_outstanding(p, ticket) && ticket == p->tail - 1)
		p->tail--;
}

bool prefix_mark(struct prefix *p, uint64_t ticket)
{
	struct prefix_slot *s = &p->slots[ticket % p->cap];

	if (!is_outstanding(p, ticket) || !s->left)
		return false;
	s->left--;
	while (p->head < p->tail && !p->slots[p->head % p->cap].left)
		p->acked = p->slots[p->head++ % p->cap].seq;
	return true;
}

uint64_t prefix_seq(const struct prefix *p, uint64_t ticket)
{
	return is_outstanding(p, ticket) ? p->slots[ticket % p->cap].seq : 0;
}

void prefix_reset(struct prefix *p)
{
	p->head = p->tail;
}
