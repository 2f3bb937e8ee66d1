// SPDX-License-Identifier: Apache-2.0
/* The lines of a payload. They come from a sandbox: any bytes, any number. */
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/scenarios/judge.h"

static bool next_line(struct str *rest, struct str *ret)
{
	const char *nl = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;

	if (!rest->n)
		return false;
	*ret = (struct str){ rest->p, nl ? (size_t)(nl - rest->p) : rest->n };
	rest->p += ret->n + (nl ? 1 : 0);
	rest->n -= ret->n + (nl ? 1 : 0);
	return true;
}

/* What can be shown anywhere. */
static void keep(char *ret, size_t max, struct str s)
{
	size_t n = MIN(s.n, max - 1);

	if (ret[0])
		return;
	for (size_t i = 0; i < n; i++)
		ret[i] = s.p[i] >= ' ' && s.p[i] <= '~' ? s.p[i] : '?';
	ret[n] = 0;
}

/* "- open /dev/fuse": worked, or with an error that is no wall's elsewhere. */
static bool is_inner(struct str what, const char *const inner[SCENARIO_INNER_MAX])
{
	for (size_t i = 0; inner && i < SCENARIO_INNER_MAX && inner[i]; i++)
		if (str_starts(what, str_from(inner[i])))
			return true;
	return false;
}

void steps_read(struct steps *ret, struct str output, const char *const inner[SCENARIO_INNER_MAX])
{
	const struct {
		struct str word;
		unsigned *n;
		char *first;
	} rows[] = {
		{ STR("step blocked "), &ret->blocked, NULL },
		{ STR("step absent "), &ret->absent, NULL },
		{ STR("step open "), &ret->open, ret->first_open },
		{ STR("step did "), &ret->did, NULL },
		{ STR("step cannot "), &ret->cannot, ret->first_cannot },
	};
	struct str line;

	memset(ret, 0, sizeof(*ret));
	while (next_line(&output, &line)) {
		ret->end |= str_eqz(line, "end");
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			struct str what = { line.p + rows[i].word.n, line.n - rows[i].word.n };

			if (!str_starts(line, rows[i].word))
				continue;
			if (rows[i].n == &ret->open && is_inner(what, inner)) {
				++*(what.p[0] == '-' ? &ret->inner : &ret->blocked);
				continue;
			}
			++*rows[i].n;
			if (rows[i].first)
				keep(rows[i].first, sizeof(ret->first_open), what);
		}
	}
}

bool attack_covers(const char *techniques, const char *technique)
{
	size_t want = strcspn(technique, " ");
	size_t base = MIN(strcspn(technique, "."), want);

	for (const char *p = techniques; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " "), dot = MIN(strcspn(p, "."), n);

		/* T1496 and T1496.001 speak of the same; T1496.001 and T1496.002 do not. */
		if (dot == base && !strncmp(p, technique, base) &&
		    (n == dot || want == base || (n == want && !strncmp(p, technique, n))))
			return true;
		p += n;
	}
	return false;
}
