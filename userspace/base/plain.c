// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/plain.h"

#include <errno.h>
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

/* How many bytes from the start are as they should be. */
static size_t plain_prefix(struct str s)
{
	size_t i = 0;

	while (i < s.n) {
		unsigned char c = (unsigned char)s.p[i];
		struct str rest = { s.p + i, s.n - i };
		size_t n = c < 0x80 ? 1 : utf8_length(rest);

		if (!n || is_deceptive(n == 1 ? c : utf8_code_point((struct str){ rest.p, n })))
			break;
		i += n;
	}
	return i;
}

int plain_json(struct str json, struct buf *room, struct str *ret)
{
	bool in_string = false, escaped = false, valid = true;
	size_t done = plain_prefix(json);

	if (done == json.n) {
		*ret = json;
		return 0;
	}
	buf_reset(room);
	for (size_t at = 0;; done = plain_prefix((struct str){ json.p + at, json.n - at })) {
		struct str odd;

		for (size_t i = at; i < at + done; i++) {
			in_string ^= !escaped && json.p[i] == '"';
			escaped = in_string && !escaped && json.p[i] == '\\';
		}
		buf_add(room, json.p + at, done);
		at += done;
		if (at == json.n)
			break;
		odd = (struct str){ json.p + at, json.n - at };
		odd.n = MAX(utf8_length(odd), (size_t)1);
		if (buf_reserve(room, odd.n * JSON_ESCAPE_MAX) < 0)
			return -EMSGSIZE;
		if (in_string)
			room->n = (size_t)(json_escape(room->p + room->n, odd, &valid) - room->p);
		else
			buf_addc(room, ' ');
		escaped = false;
		at += odd.n;
	}
	*ret = (struct str){ room->p, room->n };
	return room->failed ? -ENOMEM : 0;
}

void plain_text(char *text, char instead, const char *keep)
{
	struct str left = { text, strlen(text) };
	char *out = text;

	while (left.n) {
		size_t n = utf8_length(left);
		bool bad = !n || is_deceptive(utf8_code_point((struct str){ left.p, n }));

		if (bad && !(n == 1 && strchr(keep, *left.p)))
			*out++ = instead;
		else
			out = (char *)memmove(out, left.p, n) + n;
		left.p += n ? n : 1;
		left.n -= n ? n : 1;
	}
	*out = 0;
}
