// SPDX-License-Identifier: Apache-2.0
#include "userspace/replay/intern.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 4096u

/* Keyed: who writes the strings must not be able to choose the slots. */
static uint64_t hash_of(struct str s)
{
	static unsigned char key[crypto_shorthash_KEYBYTES];
	static bool has_key;
	uint64_t h;

	if (!has_key) {
		crypto_shorthash_keygen(key);
		has_key = true;
	}
	crypto_shorthash((unsigned char *)&h, (const unsigned char *)s.p, s.n, key);
	return h;
}

int intern_init(struct intern *in, size_t max_bytes)
{
	*in = (struct intern){ 0 };
	if (sodium_init() < 0)
		return -EIO;
	arena_init(&in->arena, max_bytes);
	in->slots = calloc(SLOTS_FIRST, sizeof(*in->slots));
	in->slots_n = SLOTS_FIRST;
	return in->slots ? 0 : -ENOMEM;
}

void intern_done(struct intern *in)
{
	arena_done(&in->arena);
	free(in->v);
	free(in->slots);
	*in = (struct intern){ 0 };
}

static uint32_t *find_slot(struct intern *in, struct str s)
{
	uint32_t at = (uint32_t)hash_of(s) & (in->slots_n - 1);

	while (in->slots[at] && !str_eq(in->v[in->slots[at] - 1], s))
		at = (at + 1) & (in->slots_n - 1);
	return &in->slots[at];
}

static int grow(struct intern *in)
{
	uint32_t *old = in->slots;

	if (in->n == in->cap) {
		uint32_t cap = in->cap ? 2 * in->cap : 1024;
		struct str *v = reallocarray(in->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		in->v = v;
		in->cap = cap;
	}
	if (in->n < in->slots_n / 2)
		return 0;
	in->slots = calloc(2 * (size_t)in->slots_n, sizeof(*in->slots));
	if (!in->slots) {
		in->slots = old;
		return -ENOMEM;
	}
	in->slots_n *= 2;
	for (uint32_t i = 0; i < in->n; i++)
		*find_slot(in, in->v[i]) = i + 1;
	free(old);
	return 0;
}

int intern_add(struct intern *in, struct str s, uint32_t *ret)
{
	uint32_t *slot;
	const char *copy;

	if (grow(in) < 0)
		return -ENOMEM;
	slot = find_slot(in, s);
	if (!*slot) {
		copy = arena_strndup(&in->arena, s.n ? s.p : "", s.n).p;
		if (!copy)
			return -ENOMEM;
		in->v[in->n++] = (struct str){ copy, s.n };
		*slot = in->n;
	}
	*ret = *slot - 1;
	return 0;
}
