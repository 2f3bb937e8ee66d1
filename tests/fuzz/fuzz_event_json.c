// SPDX-License-Identifier: Apache-2.0
/* Text as an event: refused with a reason, or an event whose own JSON reads back to itself. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/event/event.h"
#include "userspace/event/json_own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What the quick reader takes the slow one takes, too, and both see the same event. */
static void compare(struct str json)
{
	static struct event quick, slow;
	struct arena arena;
	struct buf one, two;

	arena_init(&arena, 64 << 20);
	buf_init(&one, 0);
	buf_init(&two, 0);
	if (event_from_own_json(&quick, &arena, json)) {
		if (event_from_json_slowly(&slow, &arena, json, NULL) < 0)
			abort();
		if (event_to_json(&quick, &one) < 0 || event_to_json(&slow, &two) < 0 ||
		    one.n != two.n || memcmp(one.p, two.p, one.n) || quick.kind != slow.kind)
			abort();
	}
	arena_done(&arena);
	buf_done(&one);
	buf_done(&two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event ev, again;
	struct err err = { 0 };
	struct arena arena;
	struct buf one, two;
	char *copy = malloc(size ? size : 1);
	int r;

	memcpy(copy, data, size);
	arena_init(&arena, 64 << 20);
	buf_init(&one, 0);
	buf_init(&two, 0);
	r = event_from_json(&ev, &arena, (struct str){ copy, size }, &err);
	compare((struct str){ copy, size });
	free(copy);
	if (r < 0) {
		if (r != -EINVAL || !*err_text(&err))
			abort();
	} else {
		if (event_to_json(&ev, &one) < 0 || !utf8_is_valid((struct str){ one.p, one.n }))
			abort();
		if (event_from_json(&again, &arena, (struct str){ one.p, one.n }, &err) < 0)
			abort();
		compare((struct str){ one.p, one.n });
		if (event_to_json(&again, &two) < 0 || one.n != two.n ||
		    memcmp(one.p, two.p, one.n))
			abort();
	}
	arena_done(&arena);
	buf_done(&one);
	buf_done(&two);
	return 0;
}
