// SPDX-License-Identifier: Apache-2.0
/* Hostile output on a screen: fed in pieces, on three streams, with resizes between; then each row is taken. What
 * comes out is valid UTF-8 without controls but colours. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/replay/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str s)
{
	while (s.n) {
		size_t n = utf8_length(s);
		unsigned char c = (unsigned char)s.p[0];

		if (c == 0x1b) {
			const char *m = memchr(s.p, 'm', s.n);

			if (!m || s.n < 3 || s.p[1] != '[')
				abort();
			for (const char *p = s.p + 2; p < m; p++)
				if (!strchr("0123456789;", *p))
					abort();
			n = (size_t)(m - s.p) + 1;
		} else if (!n || c < 0x20 || c == 0x7f ||
			   (n == 2 && c == 0xc2 && (unsigned char)s.p[1] < 0xa0)) {
			abort();
		}
		s.p += n;
		s.n -= n;
	}
}

static void take_rows(const struct screen *s)
{
	unsigned rows, cols, row, col;

	screen_size(s, &rows, &cols);
	if (!rows || rows > SCREEN_SIDE_MAX || !cols || cols > SCREEN_SIDE_MAX)
		abort();
	screen_cursor(s, &row, &col);
	if (row >= rows || col > cols)
		abort();
	for (unsigned i = 0; i <= rows; i++) {
		struct buf out = { 0 };

		screen_row(s, i, i % 3 ? cols : cols / 2, i % 2, &out);
		check((struct str){ out.p, out.n });
		buf_done(&out);
	}
}

/* Behind a byte that says what: output (its stream, and how much), a resize, a reset. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct screen *s = screen_new(size ? data[0] % 60 : 0, size ? data[0] : 0);
	unsigned resizes = 0;

	if (!s)
		return 0;
	while (size > 2) {
		unsigned what = data[0] & 7, n = data[0] >> 3;

		if (what < 6) {
			n = what < 3 ? n : 256;
			n = n < size - 1 ? n : (unsigned)size - 1;
			screen_feed(s, what % 3, (struct str){ (const char *)data + 1, n });
			data += n;
			size -= n;
		} else if (resizes++ < 50 && what == 6) {
			screen_resize(s, data[1], data[2]);
		} else if (resizes < 50) {
			screen_reset(s, data[1], data[2]);
		}
		data++;
		size--;
	}
	take_rows(s);
	screen_free(s);
	return 0;
}
