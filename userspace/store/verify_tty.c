// SPDX-License-Identifier: Apache-2.0
/* The terminal's recording against what the events say of it: each `terminal` event binds the records up
 * to one, the seal binds all of the files. Both are walked side by side, so memory stays bounded. */
#include <errno.h>
#include <string.h>

#include "userspace/store/verify.h"

#define KIND_WITHIN 256 /* FORMAT.md: where in a record its kind stands */

struct mark {
	uint64_t first, last;
	uint8_t head[STORE_HASH_LEN];
};

static bool scan(struct str *s, const char *z)
{
	size_t n = strlen(z);

	if (s->n < n || memcmp(s->p, z, n) != 0)
		return false;
	s->p += n;
	s->n -= n;
	return true;
}

static bool scan_u64(struct str *s, uint64_t *ret)
{
	size_t i = 0;
	uint64_t v = 0;

	for (; i < s->n && i < 19 && s->p[i] >= '0' && s->p[i] <= '9'; i++)
		v = v * 10 + (uint64_t)(s->p[i] - '0');
	if (!i)
		return false;
	s->p += i;
	s->n -= i;
	*ret = v;
	return true;
}

bool verify_scan_hash(struct str *s, uint8_t ret[STORE_HASH_LEN])
{
	static const char digits[] = "0123456789abcdef";

	if (s->n < 2 * STORE_HASH_LEN)
		return false;
	for (size_t i = 0; i < STORE_HASH_LEN; i++) {
		const char *a = memchr(digits, s->p[2 * i], 16);
		const char *b = memchr(digits, s->p[2 * i + 1], 16);

		if (!a || !b)
			return false;
		ret[i] = (uint8_t)((a - digits) << 4 | (b - digits));
	}
	s->p += 2 * STORE_HASH_LEN;
	s->n -= 2 * STORE_HASH_LEN;
	return true;
}

/* The record is a `terminal` event; false: not one that we would have written. */
static bool read_mark(struct str rec, struct mark *ret)
{
	static const char begin[] = "\"terminal\":{\"first\":";
	const char *at = memmem(rec.p, rec.n, begin, sizeof(begin) - 1);
	struct str s;
	uint64_t bytes;

	if (!at)
		return false;
	s = (struct str){ at, rec.n - (size_t)(at - rec.p) };
	return scan(&s, begin) && scan_u64(&s, &ret->first) && scan(&s, ",\"last\":") &&
	       scan_u64(&s, &ret->last) && scan(&s, ",\"bytes\":") && scan_u64(&s, &bytes) &&
	       scan(&s, ",\"head\":\"") && verify_scan_hash(&s, ret->head) && scan(&s, "\"}");
}

static int bad_file(struct verify *v, uint64_t seq, const char *why)
{
	v->report->first_bad = seq;
	return verify_finding(v, VERIFY_ALTERED,
			      "altered: tty.%04u.seg, byte %llu: %s; the %llu terminal records "
			      "before it are as they were written",
			      v->tty.file.fd < 0 ? 1 : v->tty.file.number,
			      (unsigned long long)v->tty.off, why,
			      (unsigned long long)v->tty.next_seq - 1);
}

static int bad_mark(struct verify *v, uint64_t seq, const char *why)
{
	v->report->first_bad = seq;
	return verify_finding(
		v, VERIFY_ALTERED,
		"altered: event %llu says of the terminal's recording what is not so: "
		"%s; %llu terminal records are there",
		(unsigned long long)seq, why, (unsigned long long)v->tty.next_seq - 1);
}

static int start(struct verify *v)
{
	if (v->tty.chain)
		return 0;
	return terminal_walk_start(&v->tty, v->dirfd, v->report->session, v->list.tty_max,
				   v->chain);
}

static int check_mark(struct verify *v, uint64_t seq, const struct mark *m)
{
	const char *why;
	int r;

	if (m->first != v->tty.next_seq || m->last < m->first)
		return bad_mark(v, seq, "it does not go on from the event before");
	while (v->tty.next_seq <= m->last) {
		r = terminal_walk_next(&v->tty, &why);
		if (r == -EBADMSG)
			return bad_file(v, seq, why);
		if (r == READ_END || r == READ_TORN)
			return bad_mark(v, seq, "the end is missing");
		if (r < 0)
			return r;
	}
	if (v->tty.next_seq != m->last + 1 || memcmp(v->tty.head, m->head, STORE_HASH_LEN) != 0)
		return bad_mark(v, seq, "the records have another hash");
	return WALK_ON;
}

int verify_tty_records(struct verify *v, const uint8_t *raw, size_t n, uint64_t first_seq)
{
	static const char kind[] = "\"kind\":\"terminal\"";
	size_t at = 0;
	int r;

	for (uint64_t seq = first_seq; at < n; seq++) {
		uint32_t len = get_le32(raw + at); /* chain_records has judged it */
		struct str rec = { (const char *)raw + at + 4, len };
		struct mark m;

		at += 4 + (size_t)len;
		if (!memmem(rec.p, MIN(rec.n, (size_t)KIND_WITHIN), kind, sizeof(kind) - 1))
			continue;
		if (!read_mark(rec, &m))
			return bad_mark(v, seq, "it is malformed");
		r = start(v);
		if (r == 0)
			r = check_mark(v, seq, &m);
		if (r != WALK_ON)
			return r;
	}
	return WALK_ON;
}

/* To the end of the files. */
static int walk_rest(struct verify *v)
{
	const char *why;
	int r;

	do {
		r = terminal_walk_next(&v->tty, &why);
	} while (r == READ_OK);
	if (r == -EBADMSG)
		return bad_file(v, 0, why);
	if (r == READ_TORN && v->sealed)
		return bad_file(v, 0, "cut");
	return r < 0 ? r : WALK_ON;
}

int verify_tty_end(struct verify *v)
{
	static const uint8_t none[STORE_HASH_LEN];
	bool promised = v->sealed && memcmp(v->seal.tty, none, sizeof(none)) != 0;
	int r;

	if (!v->list.tty_max && !promised)
		return WALK_ON;
	r = start(v);
	if (r == 0)
		r = walk_rest(v);
	if (r != WALK_ON)
		return r;
	v->report->terminal_records = v->tty.next_seq - 1;
	if (v->sealed && memcmp(v->seal.tty, v->tty.link, STORE_HASH_LEN) != 0)
		return bad_file(v, 0,
				promised ? "the recording is not the one that was sealed"
					 : "the recording was added to a bundle without one");
	return WALK_ON;
}

void verify_tty_tell(struct verify *v)
{
	size_t n = strlen(v->report->text);

	if (v->report->redactions) {
		snprintf(v->report->text + n, sizeof(v->report->text) - n, "; %u place%s redacted",
			 v->report->redactions, VERIFY_S(v->report->redactions));
		n = strlen(v->report->text);
	}
	if (v->report->terminal_records)
		snprintf(v->report->text + n, sizeof(v->report->text) - n,
			 "; %llu record%s of its terminal or output",
			 (unsigned long long)v->report->terminal_records,
			 VERIFY_S(v->report->terminal_records));
}
