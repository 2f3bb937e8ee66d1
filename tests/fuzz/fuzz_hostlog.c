// SPDX-License-Identifier: Apache-2.0
/* A hostile line of the host log. What is taken for an entry must be made of its own bytes, in order. */
#include <stdint.h>
#include <stdlib.h>

#include "userspace/store/hostlog_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct hostlog_parts p;
	uint8_t hash[STORE_HASH_LEN] = { 0 };

	if (hostlog_parse(text, &p) < 0)
		return 0;
	const struct str parts[] = { p.line.time, p.line.kind, p.line.session, p.line.who,
				     p.line.data };
	const char *at = text.p;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].p < at || parts[i].p + parts[i].n > text.p + text.n)
			abort();
		at = parts[i].p + parts[i].n;
	}
	if (p.body.p != text.p || p.body.n > text.n || hostlog_hash(hash, p.body) < 0)
		abort();
	return 0;
}
