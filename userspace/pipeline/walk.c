// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "userspace/base/auto.h"

#define EVENT_MEM_MAX (16u << 20)

DEFINE_AUTO(journal_reader, journal_reader_free)

static int walk(struct journal_reader *reader, struct arena *arena, walk_fn fn, void *arg,
		uint64_t *last, struct err *err)
{
	auto_free struct event *ev = malloc(sizeof(*ev));
	struct str rec;
	uint64_t seq;
	int r;

	if (!ev)
		return err_set(err, ENOMEM, "%m");
	while ((r = journal_reader_next(reader, &rec, &seq, err)) > 0) {
		*last = seq;
		arena_reset(arena);
		r = event_from_json(ev, arena, rec, err);
		if (r == -ENOMEM && arena->full) /* a fault of the record, none of this machine */
			r = err_set(err, EINVAL, "event: larger than an event can be");
		if (r < 0)
			return err_wrap(err, r, "record %llu", (unsigned long long)seq);
		r = fn(arg, ev, err);
		if (r != 0)
			return MIN(r, 0);
	}
	return r;
}

int session_walk(int dirfd, walk_fn fn, void *arg, uint64_t *ret_last, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	struct arena arena;
	uint64_t last = 0;
	int r;

	r = journal_reader_open(&reader, dirfd, err);
	if (r < 0)
		return r;
	arena_init(&arena, EVENT_MEM_MAX);
	r = walk(reader, &arena, fn, arg, &last, err);
	arena_done(&arena);
	if (ret_last)
		*ret_last = last;
	return r;
}
