// SPDX-License-Identifier: Apache-2.0
/* Text as an event: refused with a reason, or an event whose own JSON reads back to itself. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/event/event.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Read once more, after a record with other keys and after itself: the same event. */
static void repeat(struct str json, const struct buf *want)
{
	static const char other[] =
		"{\"kind\":\"net.connect\",\"net\":{\"dst\":{\"port\":1}},\"v\":1}";
	static struct event ev;
	struct arena arena;
	struct buf got;

	arena_init(&arena, 64 << 20);
	buf_init(&got, 0);
	for (int i = 0; i < 2; i++) {
		if (i == 0 && event_from_json(&ev, &arena, STR(other), NULL) < 0)
			abort();
		buf_reset(&got);
		if (event_from_json(&ev, &arena, json, NULL) < 0 || event_to_json(&ev, &got) < 0 ||
		    got.n != want->n || memcmp(got.p, want->p, got.n))
			abort();
	}
	arena_done(&arena);
	buf_done(&got);
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
	if (r < 0) {
		if (r != -EINVAL || !*err_text(&err))
			abort();
	} else {
		if (event_to_json(&ev, &one) < 0 || !utf8_is_valid((struct str){ one.p, one.n }))
			abort();
		if (event_from_json(&again, &arena, (struct str){ one.p, one.n }, &err) < 0)
			abort();
		repeat((struct str){ copy, size }, &one);
		if (event_to_json(&again, &two) < 0 || one.n != two.n ||
		    memcmp(one.p, two.p, one.n))
			abort();
	}
	free(copy);
	arena_done(&arena);
	buf_done(&one);
	buf_done(&two);
	return 0;
}
