/* SPDX-License-Identifier: Apache-2.0 */
/* The answering side of DNS: one question in, one answer out (RFC 1035, 6891). Packets come from inside the
 * sandbox and are hostile. */
#ifndef WARDER_RUNTIME_EGRESS_DNS_H
#define WARDER_RUNTIME_EGRESS_DNS_H

#include "runtime/egress/policy.h"

#define EGRESS_DNS_MAX	    512 /* RFC 1035 4.2.1: what each client takes by UDP */
#define EGRESS_DNS_ADDRS    8	/* of one answer: so many AAAA fit behind the longest name */
#define EGRESS_DNS_TTL	    60
#define EGRESS_QUESTION_MAX 260

enum {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};
enum { DNS_TYPE_A = 1, DNS_TYPE_AAAA = 28 };

struct egress_question {
	uint16_t id, type, class;
	bool recursion;
	bool odd;			/* bytes that no host name has; `name` shows them as '?' */
	char name[EGRESS_NAME_MAX + 2]; /* lower case, without a final dot; "" = the root */
	size_t name_n;
	uint8_t raw[EGRESS_QUESTION_MAX]; /* the question section as it came */
	size_t raw_n;
};

/* 0: *ret is the question. A response code > 0: answer with that (of *ret, id and recursion are set, raw_n may be
 * 0). -EBADMSG: no query, say nothing. */
int egress_dns_parse(struct egress_question *ret, const uint8_t *p, size_t n);
/* Those of `addrs` that are of the question's type, at most EGRESS_DNS_ADDRS. Returns the length. */
size_t egress_dns_answer(uint8_t out[EGRESS_DNS_MAX], const struct egress_question *q, int rcode,
			 const struct egress_addr *addrs, size_t n);

#endif
