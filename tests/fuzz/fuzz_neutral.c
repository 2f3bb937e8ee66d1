// SPDX-License-Identifier: Apache-2.0
/* Hostile output through the neutraliser, in pieces. What comes out is valid UTF-8 without controls but those
 * allowed, every escape begins one of the sequences allowed, and a second pass changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/replay/neutral.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str s, bool plain)
{
	while (s.n) {
		size_t n = utf8_length(s);
		unsigned char c = (unsigned char)s.p[0];

		if (!n || c == 0x7f || (n == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0))
			abort();
		if (c < 0x20 && !strchr(plain ? "\n\t" : "\n\t\r\b\033", c))
			abort();
		if (c == 0x1b && (s.n < 2 || !strchr("[78DEM", s.p[1])))
			abort();
		s.p += n;
		s.n -= n;
	}
}

static void pass(struct str in, bool plain, size_t step, struct buf *out)
{
	struct neutral v = { .plain = plain };

	for (size_t i = 0; i < in.n; i += step)
		neutral_feed(&v, (struct str){ in.p + i, step < in.n - i ? step : in.n - i }, out);
	neutral_end(&v, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str in = { (const char *)data, size };

	for (int plain = 0; plain < 2; plain++) {
		struct buf whole = { 0 }, bytes = { 0 }, again = { 0 };

		pass(in, plain, size + 1, &whole);
		pass(in, plain, 1, &bytes);
		check((struct str){ whole.p, whole.n }, plain);
		if (whole.n != bytes.n || (whole.n && memcmp(whole.p, bytes.p, whole.n) != 0))
			abort();
		if (plain) {
			pass((struct str){ whole.p, whole.n }, plain, 7, &again);
			if (again.n != whole.n || (again.n && memcmp(again.p, whole.p, again.n)))
				abort();
		}
		buf_done(&whole);
		buf_done(&bytes);
		buf_done(&again);
	}
	return 0;
}
