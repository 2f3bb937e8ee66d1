// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/dns.h"

#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"

#define HEADER	    12
#define LABEL_PTR   0xc0
#define CLASS_IN    1
#define FLAG_QR	    0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_RD	    0x0100
#define FLAG_RA	    0x0080

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static char shown(struct egress_question *q, uint8_t c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c | 0x20);
	if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')
		return (char)c;
	q->odd = true;
	return '?';
}

/* The name at p + at; the offset behind it, 0 when it is none. A question has no compression: there is nothing
 * in front that it could point to. */
static size_t parse_name(struct egress_question *q, const uint8_t *p, size_t n, size_t at)
{
	for (;;) {
		uint8_t k;

		if (at >= n)
			return 0;
		k = p[at++];
		if (k == 0)
			break;
		if (k & LABEL_PTR || k > n - at || q->name_n + k + 1 > EGRESS_NAME_MAX + 1)
			return 0;
		if (q->name_n)
			q->name[q->name_n++] = '.';
		for (uint8_t i = 0; i < k; i++)
			q->name[q->name_n++] = shown(q, p[at + i]);
		at += k;
	}
	if (q->name_n > EGRESS_NAME_MAX)
		return 0;
	q->name[q->name_n] = 0;
	return at;
}

int egress_dns_parse(struct egress_question *ret, const uint8_t *p, size_t n)
{
	struct egress_question *q = ret;
	uint16_t flags;
	size_t end;

	memset(q, 0, sizeof(*q));
	if (n < HEADER)
		return -EBADMSG;
	flags = get16(p + 2);
	if (flags & FLAG_QR)
		return -EBADMSG;
	q->id = get16(p);
	q->recursion = flags & FLAG_RD;
	if (flags & FLAG_OPCODE)
		return DNS_NOTIMP;
	if (get16(p + 4) != 1 || get16(p + 6) != 0)
		return DNS_FORMERR;
	end = parse_name(q, p, n, HEADER);
	if (end == 0 || n - end < 4 || end + 4 - HEADER > sizeof(q->raw)) {
		q->name_n = 0;
		q->name[0] = 0;
		return DNS_FORMERR;
	}
	q->type = get16(p + end);
	q->class = get16(p + end + 2);
	q->raw_n = end + 4 - HEADER;
	memcpy(q->raw, p + HEADER, q->raw_n);
	return q->class == CLASS_IN ? 0 : DNS_NOTIMP;
}

size_t egress_dns_answer(uint8_t out[EGRESS_DNS_MAX], const struct egress_question *q, int rcode,
			 const struct egress_addr *addrs, size_t n)
{
	size_t at = HEADER + q->raw_n, count = 0;

	memset(out, 0, HEADER);
	put16(out, q->id);
	put16(out + 2, FLAG_QR | FLAG_RA | (q->recursion ? FLAG_RD : 0) | (unsigned)rcode);
	put16(out + 4, q->raw_n ? 1 : 0);
	memcpy(out + HEADER, q->raw, q->raw_n);
	for (size_t i = 0; i < n && count < EGRESS_DNS_ADDRS; i++) {
		size_t len = addrs[i].family == 4 ? 4 : 16;

		if (q->type != (len == 4 ? DNS_TYPE_A : DNS_TYPE_AAAA) ||
		    at + 12 + len > EGRESS_DNS_MAX)
			continue;
		put16(out + at, LABEL_PTR << 8 | HEADER);
		put16(out + at + 2, q->type);
		put16(out + at + 4, CLASS_IN);
		put16(out + at + 6, 0);
		put16(out + at + 8, EGRESS_DNS_TTL);
		put16(out + at + 10, (unsigned)len);
		memcpy(out + at + 12, addrs[i].b, len);
		at += 12 + len;
		count++;
	}
	put16(out + 6, (unsigned)count);
	return at;
}
