// SPDX-License-Identifier: Apache-2.0
/* Environments hold keys and tokens: of each variable the name stays, of those that the session's
 * owner named the value too. */
#include <string.h>

#include "userspace/enrich/sandbox.h"

/* Is `name` in "A,B,PREFIX*"? */
static bool is_chosen(const char *list, struct str name)
{
	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n && list[n - 1] == '*') {
			if (name.n >= n - 1 && memcmp(name.p, list, n - 1) == 0)
				return true;
		} else if (n == name.n && memcmp(name.p, list, n) == 0) {
			return true;
		}
		list += n + (list[n] == ',');
	}
	return false;
}

void environ_apply(const struct sandbox *s, struct event *ev)
{
	struct str *v;

	if (!event_has(ev, F_PROC_ENV))
		return;
	/* The list is the event's own, made by the decoder in its arena. */
	v = (struct str *)(uintptr_t)ev->v[F_PROC_ENV].list.v;
	for (size_t i = 0; i < ev->v[F_PROC_ENV].list.n; i++) {
		const char *eq = v[i].n ? memchr(v[i].p, '=', v[i].n) : NULL;
		struct str name = { v[i].p, eq ? (size_t)(eq - v[i].p) : v[i].n };

		if (!is_chosen(s->session.env_values, name))
			v[i] = name;
	}
}
