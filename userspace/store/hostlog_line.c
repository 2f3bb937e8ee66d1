// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/hostlog_line.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/store/chain.h"
#include "userspace/store/format.h"

#define DOMAIN	  "warder-host-log"
#define SIG_FIXED (4 + 4 + KEY_LEN + KEY_SIG_LEN)
#define SIG_MAX	  (SIG_FIXED + KEY_DEPTH_MAX * STORE_HASH_LEN)
#define VARIANT	  sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define HEX	  (2 * (size_t)STORE_HASH_LEN)

int hostlog_hash(uint8_t hash[STORE_HASH_LEN], struct str body)
{
	auto_chain struct chain *c = NULL;
	uint8_t head[sizeof(DOMAIN) + STORE_HASH_LEN];
	int r = chain_new(&c);

	memcpy(head, DOMAIN, sizeof(DOMAIN)); /* with its NUL */
	memcpy(head + sizeof(DOMAIN), hash, STORE_HASH_LEN);
	return r < 0 ? r : chain_hash(c, hash, head, sizeof(head), body.p, body.n);
}

void hostlog_sig_text(struct buf *out, const struct key_signature *s)
{
	uint8_t raw[SIG_MAX];
	char text[sodium_base64_ENCODED_LEN(SIG_MAX, VARIANT)];
	size_t path = s->depth * (size_t)STORE_HASH_LEN;

	put_le32(raw, s->epoch);
	put_le32(raw + 4, s->depth);
	memcpy(raw + 8, s->public_key, KEY_LEN);
	memcpy(raw + 8 + KEY_LEN, s->sig, KEY_SIG_LEN);
	memcpy(raw + SIG_FIXED, s->path, path);
	sodium_bin2base64(text, sizeof(text), raw, SIG_FIXED + path, VARIANT);
	buf_addz(out, text);
}

void hostlog_write_sig(struct buf *out, const struct key_signature *s)
{
	buf_addz(out, ",\"sig\":\"");
	hostlog_sig_text(out, s);
	buf_addc(out, '"');
}

int hostlog_sig_parse(struct str text, struct key_signature *ret)
{
	uint8_t raw[SIG_MAX];
	size_t n;

	*ret = (struct key_signature){ 0 };
	if (sodium_base642bin(raw, sizeof(raw), text.p, text.n, NULL, &n, NULL, VARIANT) != 0 ||
	    n < SIG_FIXED)
		return -EBADMSG;
	ret->epoch = get_le32(raw);
	ret->depth = get_le32(raw + 4);
	if (ret->depth > KEY_DEPTH_MAX || n != SIG_FIXED + ret->depth * (size_t)STORE_HASH_LEN)
		return -EBADMSG;
	memcpy(ret->public_key, raw + 8, KEY_LEN);
	memcpy(ret->sig, raw + 8 + KEY_LEN, KEY_SIG_LEN);
	memcpy(ret->path, raw + SIG_FIXED, ret->depth * (size_t)STORE_HASH_LEN);
	return 0;
}

static bool take(struct str *s, struct str literal)
{
	if (!str_starts(*s, literal))
		return false;
	*s = (struct str){ s->p + literal.n, s->n - literal.n };
	return true;
}

/* The inside of a string up to its quote, escapes left as they are. */
static bool take_string(struct str *s, struct str *ret)
{
	size_t i = 0;

	while (i < s->n && s->p[i] != '"')
		i += s->p[i] == '\\' ? 2 : 1;
	if (i >= s->n)
		return false;
	*ret = (struct str){ s->p, i };
	*s = (struct str){ s->p + i + 1, s->n - i - 1 };
	return true;
}

static bool take_number(struct str *s, uint64_t *ret)
{
	size_t i = 0;

	for (*ret = 0; i < s->n && s->p[i] >= '0' && s->p[i] <= '9' && i < 18; i++)
		*ret = *ret * 10 + (uint64_t)(s->p[i] - '0');
	*s = (struct str){ s->p + i, s->n - i };
	return i > 0;
}

static bool take_hash_back(struct str *s, struct str literal, uint8_t ret[STORE_HASH_LEN])
{
	size_t all = literal.n + HEX + 1, n;
	const char *p;

	if (s->n < all)
		return false;
	p = s->p + s->n - all;
	if (memcmp(p, literal.p, literal.n) != 0 || p[all - 1] != '"' ||
	    sodium_hex2bin(ret, STORE_HASH_LEN, p + literal.n, HEX, NULL, &n, NULL) != 0 ||
	    n != STORE_HASH_LEN)
		return false;
	s->n -= all;
	return true;
}

/* Last things first: they have fixed lengths, what is before them was not made by us alone. */
static int parse_tail(struct str *s, struct hostlog_parts *ret)
{
	struct str key = STR(",\"hash\":\""), sig_key = STR(",\"sig\":\""), sig;
	const size_t hash_n = key.n + HEX + 1;
	const char *p, *next;

	if (s->n < 2 || s->p[s->n - 1] != '}')
		return -EBADMSG;
	s->n--;
	for (p = NULL, next = s->p;
	     (next = memmem(next, s->n - (size_t)(next - s->p), key.p, key.n)); next++)
		p = next;
	if (!p)
		return -EBADMSG;
	sig = (struct str){ p, s->n - (size_t)(p - s->p) };
	if (sig.n > hash_n + sig_key.n + 1) {
		sig = (struct str){ sig.p + hash_n, sig.n - hash_n };
		if (!take(&sig, sig_key) || sig.p[sig.n - 1] != '"' ||
		    hostlog_sig_parse((struct str){ sig.p, sig.n - 1 }, &ret->sig) < 0)
			return -EBADMSG;
		ret->line.is_signed = true;
		s->n = (size_t)(p - s->p) + hash_n;
	}
	return take_hash_back(s, key, ret->hash) ? 0 : -EBADMSG;
}

int hostlog_parse(struct str text, struct hostlog_parts *ret)
{
	struct hostlog_line *l = &ret->line;
	struct str s = text;

	*l = (struct hostlog_line){ .text = text };
	if (sodium_init() < 0 || parse_tail(&s, ret) < 0)
		return -EBADMSG;
	ret->body = s;
	if (!take_hash_back(&s, STR(",\"prev\":\""), ret->prev))
		return -EBADMSG;
	if (take(&s, STR("{\"n\":")) && take_number(&s, &l->n) && take(&s, STR(",\"time\":\"")) &&
	    take_string(&s, &l->time) && take(&s, STR(",\"kind\":\"")) &&
	    take_string(&s, &l->kind) && take(&s, STR(",\"session\":\"")) &&
	    take_string(&s, &l->session) && take(&s, STR(",\"who\":\"")) &&
	    take_string(&s, &l->who) && take(&s, STR(",\"data\":")) && s.n >= 2 && s.p[0] == '{' &&
	    s.p[s.n - 1] == '}') {
		l->data = s;
		return 0;
	}
	return -EBADMSG;
}
