// SPDX-License-Identifier: Apache-2.0
/* The sinks' `filter` property: a rule condition over the record as it stands in the journal. */
#include <stdlib.h>

#include "rules/rule.h"
#include "userspace/base/arena.h"
#include "userspace/pipeline/source.h"

#define RECORD_MEM_MAX (16u << 20)

struct sink_filter {
	struct rule_filter *rule;
	struct arena arena;
	struct event event;
};

static void filter_free(void *arg)
{
	struct sink_filter *f = arg;

	rule_filter_free(f->rule);
	arena_done(&f->arena);
	free(f);
}

static int filter_open(void **ret, const char *text, struct err *err)
{
	struct sink_filter *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return err_set(err, ENOMEM, "out of memory");
	arena_init(&f->arena, RECORD_MEM_MAX);
	r = rule_filter_new(&f->rule, str_from(text), err);
	if (r < 0) {
		filter_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static bool filter_match(void *arg, struct str json)
{
	struct sink_filter *f = arg;
	struct err err;

	arena_reset(&f->arena);
	if (event_from_json(&f->event, &f->arena, json, &err) < 0)
		return true; /* let a person see it */
	return rule_filter_match(f->rule, &f->event);
}

const struct export_filter_ops sink_filters = { filter_open, filter_match, filter_free };
