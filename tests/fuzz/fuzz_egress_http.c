// SPDX-License-Identifier: Apache-2.0
/* Requests of a connection, at once and in pieces (first byte: how long): the same may pass. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/egress/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes that may pass, or -1. A head is given again with more behind, as the helper does. */
static ssize_t feed(const uint8_t *p, size_t n, size_t step)
{
	struct egress_http h = { 0 };
	size_t ok = 0, have = 0;
	const char *why;

	while (have < n) {
		ssize_t k;
		uint8_t *copy;

		have = n - have < step ? n : have + step;
		copy = malloc(have - ok ? have - ok : 1);
		memcpy(copy, p + ok, have - ok);
		k = egress_http_feed(&h, copy, have - ok, "good.example", 80, &why);
		free(copy);
		if (k < 0)
			return -1;
		if ((size_t)k > have - ok)
			abort();
		ok += (size_t)k;
	}
	return (ssize_t)ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	if (feed(data + 1, size - 1, size) != feed(data + 1, size - 1, data[0] % 64u + 1))
		abort();
	return 0;
}
