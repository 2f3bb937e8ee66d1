// SPDX-License-Identifier: Apache-2.0
/* Addresses that stand for names inside: the connection then says which name it is for. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/helper.h"
#include "runtime/egress/kernel.h"

#define FIRST 0x100 /* leaves 198.18.0.x alone */

static struct egress_addr address(size_t i)
{
	uint32_t v = htonl(EGRESS_FAKE_BASE + FIRST + (uint32_t)i);
	struct egress_addr a = { .family = 4 };

	memcpy(a.b, &v, sizeof(v));
	return a;
}

bool name_address(struct helper *h, const char *name, struct egress_addr *ret)
{
	size_t i;

	for (i = 0; i < h->names_n; i++)
		if (!strcmp(h->names[i], name))
			break;
	if (i == NAMES_MAX)
		return false;
	if (i == h->names_n) {
		h->names[i] = strdup(name);
		if (!h->names[i])
			return false;
		h->names_n++;
	}
	*ret = address(i);
	return true;
}

static uint32_t offset(const struct egress_addr *a)
{
	uint32_t v;

	if (a->family != 4)
		return UINT32_MAX;
	memcpy(&v, a->b, sizeof(v));
	return ntohl(v) - EGRESS_FAKE_BASE;
}

bool name_is_fake(const struct egress_addr *a)
{
	return offset(a) < 1u << (32 - EGRESS_FAKE_BITS);
}

const char *name_of(const struct helper *h, const struct egress_addr *a)
{
	uint32_t at = offset(a);

	return at >= FIRST && at - FIRST < h->names_n ? h->names[at - FIRST] : NULL;
}
