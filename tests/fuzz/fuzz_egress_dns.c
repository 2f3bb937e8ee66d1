// SPDX-License-Identifier: Apache-2.0
/* A DNS packet from a sandbox, and the answer to it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct egress_addr v[2] = { { 4, { 198, 18, 1, 0 } }, { 6, { 0x20, 1 } } };
	struct egress_addr addrs[EGRESS_DNS_ADDRS];
	uint8_t out[EGRESS_DNS_MAX], *copy = malloc(size ? size : 1);
	struct egress_question q;
	size_t n;
	int r;

	memcpy(copy, data, size);
	r = egress_dns_parse(&q, copy, size);
	free(copy);
	if (r < 0)
		return 0;
	if (q.name_n > EGRESS_NAME_MAX || strlen(q.name) != q.name_n || q.raw_n > sizeof(q.raw))
		abort();
	for (size_t i = 0; i < q.name_n; i++)
		if (q.name[i] < 0x20 || q.name[i] > 0x7e || (q.name[i] >= 'A' && q.name[i] <= 'Z'))
			abort();
	for (size_t i = 0; i < EGRESS_DNS_ADDRS; i++)
		addrs[i] = v[i % 2];
	n = egress_dns_answer(out, &q, r, addrs, EGRESS_DNS_ADDRS);
	if (n < 12 || n > sizeof(out) || !(out[2] & 0x80))
		abort();
	return 0;
}
