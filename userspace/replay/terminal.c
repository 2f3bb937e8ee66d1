// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "userspace/base/json.h"
#include "userspace/base/plain.h"
#include "userspace/replay/timeline.h"

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
			c = utf8_code_point((struct str){ s.p, n });
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
