// SPDX-License-Identifier: Apache-2.0
#include "userspace/redact/escrow.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/redact.h"

#define MAGIC	   "WARDESC1"
#define HEAD_LEN   44
#define INNER_HEAD 14 /* before the rule's name */
#define INNER_MAX  (INNER_HEAD + REDACT_NAME_MAX + ESCROW_ORIGINAL_MAX + ESCROW_PAD)
#define BOX_MAX	   (INNER_MAX + crypto_box_SEALBYTES)
#define INNER_FORM 1
#define SEEN_SLOTS (2 * ESCROW_ENTRIES_MAX) /* a power of two, never more than half full */
#define SEEN_LEN   16

struct redact_escrow {
	uint8_t public_key[ESCROW_KEY_LEN];
	uint8_t seen_key[crypto_generichash_KEYBYTES];
	pthread_mutex_t lock; /* of what follows */
	struct buf waiting;   /* u32 length, box; one behind another */
	uint64_t bytes, sealed, kept, not_kept;
	uint8_t seen[SEEN_SLOTS][SEEN_LEN]; /* what was kept; all zero = none */
	uint8_t inner[INNER_MAX];
};

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

int redact_escrow_new(struct redact_escrow **ret, const uint8_t public_key[ESCROW_KEY_LEN])
{
	struct redact_escrow *e;

	if (sodium_init() < 0)
		return -EIO;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	memcpy(e->public_key, public_key, ESCROW_KEY_LEN);
	randombytes_buf(e->seen_key, sizeof(e->seen_key));
	pthread_mutex_init(&e->lock, NULL);
	buf_init(&e->waiting, ESCROW_BYTES_MAX + BOX_MAX);
	*ret = e;
	return 0;
}

void redact_escrow_free(struct redact_escrow *e)
{
	if (!e)
		return;
	pthread_mutex_destroy(&e->lock);
	buf_done(&e->waiting);
	sodium_memzero(e, sizeof(*e));
	free(e);
}

/* The place of this one in the table: free (all zero), or it is there already. */
static uint8_t *seen_place(struct redact_escrow *e, const uint8_t *inner, size_t n,
			   uint8_t hash[SEEN_LEN], bool *ret_there)
{
	size_t i;

	crypto_generichash(hash, SEEN_LEN, inner, n, e->seen_key, sizeof(e->seen_key));
	hash[0] |= 1;
	i = get32(hash + 4) % SEEN_SLOTS;
	while (!sodium_is_zero(e->seen[i], SEEN_LEN)) {
		if (memcmp(e->seen[i], hash, SEEN_LEN) == 0) {
			*ret_there = true;
			return e->seen[i];
		}
		i = (i + 1) % SEEN_SLOTS;
	}
	*ret_there = false;
	return e->seen[i];
}

static size_t fill_inner(struct redact_escrow *e, const char *rule, const uint8_t *tag,
			 struct str original)
{
	size_t name = strnlen(rule, REDACT_NAME_MAX), n = INNER_HEAD + name + original.n;
	uint8_t *p = e->inner;

	p[0] = INNER_FORM;
	p[1] = (uint8_t)name;
	p[2] = p[3] = 0;
	put32(p + 4, (uint32_t)original.n);
	memcpy(p + 8, tag, REDACT_TAG_LEN);
	memcpy(p + INNER_HEAD, rule, name);
	memcpy(p + INNER_HEAD + name, original.p, original.n);
	while (n % ESCROW_PAD)
		p[n++] = 0;
	return n;
}

static int keep(struct redact_escrow *e, const char *rule, const uint8_t *tag, struct str original)
{
	uint8_t hash[SEEN_LEN], *place, *p;
	size_t n, box;
	bool there;

	n = fill_inner(e, rule, tag, original);
	place = seen_place(e, e->inner, n, hash, &there);
	if (there)
		return 0;
	box = n + crypto_box_SEALBYTES;
	if (e->sealed == ESCROW_ENTRIES_MAX || e->bytes + box > ESCROW_BYTES_MAX)
		return -ENOSPC;
	if (buf_reserve(&e->waiting, 4 + box) < 0) {
		e->waiting.failed = false;
		return -ENOMEM;
	}
	p = (uint8_t *)e->waiting.p + e->waiting.n;
	put32(p, (uint32_t)box);
	if (crypto_box_seal(p + 4, e->inner, n, e->public_key) != 0)
		return -EIO;
	e->waiting.n += 4 + box;
	memcpy(place, hash, SEEN_LEN);
	e->bytes += box;
	e->kept++;
	e->sealed++;
	return 0;
}

void redact_escrow_take(struct redact_escrow *e, const char *rule, const uint8_t *tag,
			struct str original)
{
	pthread_mutex_lock(&e->lock);
	if (original.n > ESCROW_ORIGINAL_MAX || keep(e, rule, tag, original) < 0)
		e->not_kept++;
	sodium_memzero(e->inner, sizeof(e->inner));
	pthread_mutex_unlock(&e->lock);
}

int redact_escrow_next(struct redact_escrow *e, struct buf *out)
{
	uint32_t entries = 0;
	uint8_t head[HEAD_LEN];
	size_t n = 0;

	buf_reset(out);
	pthread_mutex_lock(&e->lock);
	while (n < e->waiting.n) {
		size_t next = n + 4 + get32((const uint8_t *)e->waiting.p + n);

		if (HEAD_LEN + next > ESCROW_PAYLOAD_MAX)
			break;
		n = next;
		entries++;
	}
	if (entries) {
		memcpy(head, MAGIC, 8);
		memcpy(head + 8, e->public_key, ESCROW_KEY_LEN);
		put32(head + 40, entries);
		buf_add(out, head, sizeof(head));
		buf_add(out, e->waiting.p, n);
		if (!out->failed)
			buf_consume(&e->waiting, n);
		if (!e->waiting.n)
			buf_done(&e->waiting);
	}
	pthread_mutex_unlock(&e->lock);
	if (out->failed) {
		out->failed = false;
		return -ENOMEM;
	}
	return entries > 0;
}

void redact_escrow_lost(struct redact_escrow *e, struct str payload)
{
	uint32_t n = get32((const uint8_t *)payload.p + 40);

	pthread_mutex_lock(&e->lock);
	e->kept -= n;
	e->not_kept += n;
	pthread_mutex_unlock(&e->lock);
}

void redact_escrow_counts(struct redact_escrow *e, struct redact_escrow_counts *ret)
{
	pthread_mutex_lock(&e->lock);
	*ret = (struct redact_escrow_counts){ e->kept, e->not_kept, e->public_key };
	pthread_mutex_unlock(&e->lock);
}

/* ---- the other side ---- */

int escrow_reader_init(struct escrow_reader *r, struct str payload)
{
	const uint8_t *p = (const uint8_t *)payload.p;

	if (payload.n < HEAD_LEN || memcmp(p, MAGIC, 8) != 0)
		return -EBADMSG;
	r->public_key = p + 8;
	r->entries = get32(p + 40);
	r->left = (struct str){ payload.p + HEAD_LEN, payload.n - HEAD_LEN };
	return 0;
}

static int open_inner(const uint8_t *p, size_t n, struct redact_original *ret)
{
	size_t name, text;

	if (n < INNER_HEAD || p[0] != INNER_FORM)
		return -EBADMSG;
	name = p[1];
	text = get32(p + 4);
	if (name > REDACT_NAME_MAX || text > n || INNER_HEAD + name + text > n)
		return -EBADMSG;
	ret->tag = (struct str){ (const char *)p + 8, REDACT_TAG_LEN };
	ret->rule = (struct str){ (const char *)p + INNER_HEAD, name };
	ret->text = (struct str){ (const char *)p + INNER_HEAD + name, text };
	return 0;
}

int escrow_reader_next(struct escrow_reader *r, const uint8_t secret[ESCROW_KEY_LEN],
		       struct buf *room, struct redact_original *ret)
{
	uint8_t own[ESCROW_KEY_LEN];
	const uint8_t *p = (const uint8_t *)r->left.p;
	size_t n;
	int e;

	if (r->entries == 0)
		return r->left.n ? -EBADMSG : 0;
	if (r->left.n < 4)
		return -EBADMSG;
	n = get32(p);
	if (n < crypto_box_SEALBYTES + INNER_HEAD || n > BOX_MAX || n > r->left.n - 4)
		return -EBADMSG;
	if (escrow_public_of(own, secret) < 0 || memcmp(own, r->public_key, sizeof(own)) != 0)
		return -EKEYREJECTED;
	buf_reset(room);
	if (buf_reserve(room, n) < 0)
		return -ENOMEM;
	if (crypto_box_seal_open((uint8_t *)room->p, p + 4, n, own, secret) != 0)
		return -EBADMSG;
	room->n = n - crypto_box_SEALBYTES;
	e = open_inner((const uint8_t *)room->p, room->n, ret);
	if (e < 0)
		return e;
	r->entries--;
	r->left.p += 4 + n;
	r->left.n -= 4 + n;
	return 1;
}

int escrow_key_parse(uint8_t ret[ESCROW_KEY_LEN], const char *line, struct str text)
{
	size_t n = strlen(line), got = 0;

	while (text.n && strchr(" \t\r\n", text.p[text.n - 1]))
		text.n--;
	if (text.n != n + 2 * (size_t)ESCROW_KEY_LEN || memcmp(text.p, line, n) != 0 ||
	    sodium_hex2bin(ret, ESCROW_KEY_LEN, text.p + n, text.n - n, NULL, &got, NULL) != 0 ||
	    got != ESCROW_KEY_LEN)
		return -EBADMSG;
	return 0;
}

int escrow_keys_make(uint8_t ret_public[ESCROW_KEY_LEN], uint8_t ret_secret[ESCROW_KEY_LEN])
{
	return sodium_init() < 0 || crypto_box_keypair(ret_public, ret_secret) != 0 ? -EIO : 0;
}

bool escrow_key_works(const uint8_t public_key[ESCROW_KEY_LEN])
{
	uint8_t box[1 + crypto_box_SEALBYTES];

	/* A point of low order, like zero, has no secret: with it nothing can be sealed. */
	return sodium_init() >= 0 && crypto_box_seal(box, (const uint8_t *)"", 1, public_key) == 0;
}

int escrow_public_of(uint8_t ret[ESCROW_KEY_LEN], const uint8_t secret[ESCROW_KEY_LEN])
{
	return sodium_init() < 0 || crypto_scalarmult_base(ret, secret) != 0 ? -EIO : 0;
}
