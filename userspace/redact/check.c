// SPDX-License-Identifier: Apache-2.0
/* What tells a secret from what only looks like one. */
#include <math.h>
#include <string.h>

#include "userspace/redact/internal.h"

double entropy_of(struct str s)
{
	unsigned count[256] = { 0 };
	double sum = 0;

	for (size_t i = 0; i < s.n; i++)
		count[(unsigned char)s.p[i]]++;
	for (int i = 0; i < 256; i++) {
		double p = s.n ? (double)count[i] / (double)s.n : 0;

		if (count[i])
			sum -= p * log2(p);
	}
	return sum;
}

/* ISO/IEC 7812-1, annex B; blanks and dashes are passed over. */
bool luhn_is_good(struct str s)
{
	unsigned sum = 0, n = 0;

	for (size_t i = s.n; i-- > 0;) {
		unsigned d;

		if (s.p[i] == ' ' || s.p[i] == '-')
			continue;
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		d = (unsigned)(s.p[i] - '0');
		if (n++ % 2)
			d = d > 4 ? 2 * d - 9 : 2 * d;
		sum += d;
	}
	return n >= 13 && sum % 10 == 0 && sum;
}

static bool same_word(struct str s, const char *word)
{
	size_t n = strlen(word);

	return s.n == n && !strncasecmp(s.p, word, n);
}

bool is_placeholder(struct str s)
{
	static const char *const words[] = {
		"null",	  "none",  "nil",      "true",	   "false",  "undefined",
		"string", "str",   "required", "optional", "hidden", "password",
		"passwd", "token", "secret",   "redacted", "value",  "bytes",
		"prompt", "stdin", "disabled", "enabled",
	};
	size_t i = 0;

	if (!s.n)
		return true;
	if (strchr("$<%{", s.p[0]) || (s.n > 1 && !memcmp(s.p, "@{", 2)))
		return true;
	while (i < s.n && (s.p[i] == s.p[0] || strchr("*.xX#-_", s.p[i])))
		i++;
	if (i == s.n)
		return true;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (same_word(s, words[i]))
			return true;
	return false;
}

bool is_of_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-_.~+/=%", c));
}

/* Length of the mark that `s` begins with; 0: none does. */
static size_t mark_length(struct str s)
{
	size_t i = sizeof(REDACT_MARK) - 1, digits = 0;

	if (!str_starts(s, STR(REDACT_MARK)))
		return 0;
	while (i < s.n && i < REDACT_MARK_MAX && s.p[i] != ':' && s.p[i] != ']')
		i++;
	if (i == s.n || s.p[i++] != ':')
		return 0;
	for (; i < s.n && s.p[i] && strchr("0123456789abcdef", s.p[i]); i++)
		digits++;
	return digits == 2 * REDACT_TAG_LEN && i < s.n && s.p[i] == ']' ? i + 1 : 0;
}

bool is_in_mark(struct str s, size_t from, size_t to)
{
	size_t at = from + 1, low = from > REDACT_MARK_MAX ? from - REDACT_MARK_MAX : 0;

	while (at-- > low) {
		size_t n;

		if (s.p[at] != '[')
			continue;
		n = mark_length((struct str){ s.p + at, s.n - at });
		if (!n)
			continue;
		/* No secret hides behind a mark of its own making: only punctuation may. */
		for (size_t i = at + n; i < to; i++)
			if (i > at + n + 1 || !strchr("\"',;:.)]}", s.p[i]))
				return false;
		return from < at + n;
	}
	return false;
}
