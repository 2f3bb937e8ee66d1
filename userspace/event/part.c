// SPDX-License-Identifier: Apache-2.0
#include "userspace/event/part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/json.h"

_Static_assert(F_PROC_ANCESTORS < 64, "fields of a part are of the first 64");

static uint64_t last_serial;

/* What is made of one event: strings behind each other, lists first, for their alignment. */
struct packing {
	char *at;
	size_t bytes;
	bool valid;
};

static struct str pack(struct packing *k, struct str s)
{
	struct str out = { k->at, s.n };

	k->valid &= utf8_is_valid(s);
	k->bytes += s.n + 1;
	if (!k->at || !s.p)
		return s.p ? out : (struct str){ 0 };
	memcpy(k->at, s.p, s.n);
	k->at[s.n] = 0;
	k->at += s.n + 1;
	return out;
}

static void *pack_array(struct packing *k, size_t bytes)
{
	void *out = k->at;

	k->bytes += bytes;
	if (k->at)
		k->at += bytes;
	return out;
}

/* Arrays in the first pass over the fields, their strings in the second. */
static void pack_lists(struct packing *k, unsigned type, union field_value *v)
{
	if (type == FT_STRLIST)
		v->list.v = pack_array(k, v->list.n * sizeof(*v->list.v));
	else if (type == FT_ANCESTORS)
		v->ancestors.v = pack_array(k, v->ancestors.n * sizeof(*v->ancestors.v));
}

static void pack_texts(struct packing *k, unsigned type, const union field_value *from,
		       union field_value *to)
{
	struct event_ancestor *a = (struct event_ancestor *)(uintptr_t)to->ancestors.v;
	struct str *list = (struct str *)(uintptr_t)to->list.v;

	if (type == FT_STR)
		to->s = pack(k, from->s);
	for (size_t i = 0; type == FT_STRLIST && i < from->list.n; i++) {
		struct str s = pack(k, from->list.v[i]);

		if (list)
			list[i] = s;
	}
	for (size_t i = 0; type == FT_ANCESTORS && i < from->ancestors.n; i++) {
		const struct event_ancestor *was = &from->ancestors.v[i];
		struct str comm = pack(k, was->comm), exe = pack(k, was->exe);

		if (a)
			a[i] = (struct event_ancestor){ was->pid, was->start, comm, exe };
	}
}

static void pack_fields(struct packing *k, const struct event *ev, struct event_part *p)
{
	for (unsigned i = 0; i < p->n; i++) {
		p->v[i] = ev->v[p->field[i]];
		pack_lists(k, event_fields[p->field[i]].type, &p->v[i]);
	}
	for (unsigned i = 0; i < p->n; i++)
		pack_texts(k, event_fields[p->field[i]].type, &ev->v[p->field[i]], &p->v[i]);
}

static bool is_pair(unsigned type)
{
	return type == FT_STR || type == FT_STRLIST || type == FT_ANCESTORS;
}

static bool is_number(unsigned type)
{
	return type == FT_U64 || type == FT_I64 || type == FT_BOOL;
}

static int choose_fields(struct event_part *p, bool (*is_wanted)(unsigned type))
{
	for (uint64_t bits = p->mask; bits; bits &= bits - 1) {
		int f = __builtin_ctzll(bits);

		if (!is_wanted(event_fields[f].type))
			continue;
		if (p->n == EVENT_PART_FIELDS)
			return -EMSGSIZE;
		p->field[p->n++] = (uint8_t)f;
	}
	return p->n;
}

int event_part_make(struct event_part *p, const struct event *ev, uint64_t span)
{
	struct event_part made = { .mask = ev->present[0] & span, .span = span };
	struct packing k = { .valid = true };
	auto_buf struct buf json = { 0 };
	int r;

	event_part_done(p);
	r = choose_fields(&made, is_pair);
	made.pairs = made.n;
	if (r >= 0)
		r = choose_fields(&made, is_number);
	if (r != __builtin_popcountll(made.mask) || !made.n) /* too many, or of another type */
		return -EMSGSIZE;
	pack_fields(&k, ev, &made);
	if (!k.valid)
		return -EILSEQ;
	buf_init(&json, EVENT_PART_BYTES);
	r = event_members_to_json(ev, made.mask, &json);
	if (r < 0 || k.bytes + json.n > EVENT_PART_BYTES)
		return r == -ENOMEM ? r : -EMSGSIZE;
	made.block = malloc(k.bytes + json.n + 1);
	if (!made.block)
		return -ENOMEM;
	k.at = made.block;
	pack_fields(&k, ev, &made);
	memcpy(k.at, json.p, json.n);
	made.json = (struct str){ k.at, json.n };
	made.serial = __atomic_add_fetch(&last_serial, 1, __ATOMIC_RELAXED);
	*p = made;
	return 0;
}

void event_part_done(struct event_part *p)
{
	free(p->block);
	*p = (struct event_part){ 0 };
}

void event_part_give(const struct event_part *p, struct event *ev)
{
	for (unsigned i = 0; i < p->n; i++)
		ev->v[p->field[i]] = p->v[i];
	ev->present[0] |= p->mask;
}

bool event_part_holds(const struct event_part *p, const struct event *ev)
{
	if ((ev->present[0] & p->span) != p->mask)
		return false;
	for (unsigned i = 0; i < p->pairs; i++) {
		const union field_value *v = &ev->v[p->field[i]];

		if (v->s.p != p->v[i].s.p || v->s.n != p->v[i].s.n)
			return false;
	}
	return true;
}
