// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "userspace/base/json.h"
#include "userspace/replay/timeline.h"

/* Characters that a terminal obeys or a reader does not see, though they are valid UTF-8: C1 controls,
 * soft hyphen, zero-width and bidi controls (UAX #9), line separators, variation selectors, tags. */
static bool is_deceptive(uint32_t c)
{
	static const struct {
		uint32_t from, to;
	} ranges[] = {
		{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0xad, 0xad },	    { 0x61c, 0x61c },
		{ 0x180b, 0x180f }, { 0x200b, 0x200f }, { 0x2028, 0x202e }, { 0x2060, 0x206f },
		{ 0xfe00, 0xfe0f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].from && c <= ranges[i].to)
			return true;
	return false;
}

static uint32_t code_point(struct str s)
{
	uint32_t c = (unsigned char)s.p[0];

	if (s.n > 1)
		c &= 0x7fu >> s.n;
	for (size_t i = 1; i < s.n; i++)
		c = c << 6 | ((unsigned char)s.p[i] & 0x3f);
	return c;
}

int text_for_terminal(struct str s, size_t max, struct buf *out)
{
	size_t start = out->n;

	while (s.n) {
		size_t n = utf8_length(s);
		uint32_t c;

		if (out->n - start + 10 > max) {
			buf_addz(out, "...");
			break;
		}
		if (!n) {
			buf_printf(out, "\\x%02x", (unsigned char)s.p[0]);
			n = 1;
		} else {
			c = code_point((struct str){ s.p, n });
			if (c == '\\')
				buf_addz(out, "\\\\");
			else if (is_deceptive(c))
				buf_printf(out, c < 0x80 ? "\\x%02x" : "\\u{%04x}", c);
			else
				buf_add(out, s.p, n);
		}
		s.p += n;
		s.n -= n;
	}
	return out->failed ? -ENOMEM : 0;
}
