// SPDX-License-Identifier: Apache-2.0
/* Command lines and paths of a sandbox, as package managers would have them. What is told of a package has
 * to be made of the event's own bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/packages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WORDS_MAX 256

static void must_lie_in(struct str part, struct str all)
{
	if (part.n && (part.p < all.p || part.p + part.n > all.p + all.n))
		abort();
}

static void check(const struct event *ev, struct packages_seen *seen, struct str all)
{
	struct packages found;
	size_t n;

	packages_find(&found, seen, ev);
	n = found.n;
	if (n > PACKAGES_MAX || (found.more && n < PACKAGES_MAX))
		abort();
	for (size_t i = 0; i < n; i++) {
		const struct package *p = &found.v[i];

		if (!p->manager || (!p->name.n && !p->url.n))
			abort();
		must_lie_in(p->name, all);
		must_lie_in(p->version, all);
		must_lie_in(p->registry, all);
		must_lie_in(p->url, all);
		must_lie_in(p->hash, all);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum wire_kind kinds[] = { WIRE_FILE_OPEN, WIRE_FILE_RENAME, WIRE_FILE_MKDIR };
	struct str word[WORDS_MAX], all = { (const char *)data, size }, left = all;
	struct packages_seen seen = { 0 };
	struct arena arena;
	struct event ev;
	size_t n = 0;

	arena_init(&arena, 1 << 20);
	while (left.n && n < WORDS_MAX) {
		const char *end = memchr(left.p, '\n', left.n);

		word[n] = (struct str){ left.p, end ? (size_t)(end - left.p) : left.n };
		left = (struct str){ left.p + word[n].n + !!end, left.n - word[n].n - !!end };
		n++;
	}
	event_init(&ev, WIRE_EXEC, &arena);
	event_set_strz(&ev, F_OUTCOME, "success");
	event_set_list(&ev, F_PROC_ARGS, word, n);
	check(&ev, &seen, all);
	for (size_t i = 0; i < n; i++) {
		event_init(&ev, kinds[i % 3], &arena);
		event_set_strz(&ev, F_OUTCOME, "success");
		event_set_bool(&ev, F_FILE_WRITE, true);
		event_set_str(&ev, F_FILE_PATH, word[i]);
		check(&ev, &seen, all);
	}
	arena_done(&arena);
	return 0;
}
