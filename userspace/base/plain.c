// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/plain.h"

#include <string.h>

#include "userspace/base/json.h"

bool is_deceptive(uint32_t c)
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

void plain_text(char *text, char instead, const char *keep)
{
	struct str left = { text, strlen(text) };
	char *out = text;

	while (left.n) {
		size_t n = utf8_length(left);
		bool bad = !n || is_deceptive(code_point((struct str){ left.p, n }));

		if (bad && !(n == 1 && strchr(keep, *left.p)))
			*out++ = instead;
		else
			out = (char *)memmove(out, left.p, n) + n;
		left.p += n ? n : 1;
		left.n -= n ? n : 1;
	}
	*out = 0;
}
