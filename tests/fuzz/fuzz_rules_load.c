// SPDX-License-Identifier: Apache-2.0
/* A rule file made of anything: loads or says why, never more. */
#include <stdlib.h>

#include "rules/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *arg, const struct rule_diag *d)
{
	(void)arg;
	if (d->line < 0 || d->col < 0 || !d->text[0])
		abort();
}

static void judge(const struct ruleset *rs, struct rule_memory *st, enum wire_kind kind)
{
	static const struct str args[] = { { "sh", 2 }, { "-c", 2 }, { "id", 2 } };
	struct rule_matches m;
	struct arena arena;
	struct event ev;
	struct buf out;

	arena_init(&arena, 1 << 20);
	buf_init(&out, 1 << 20);
	event_init(&ev, kind, &arena);
	event_set_strz(&ev, F_PROC_COMM, "sh");
	event_set_list(&ev, F_PROC_ARGS, args, 3);
	event_set_strz(&ev, F_FILE_PATH, "/etc/passwd");
	event_set_strz(&ev, F_ESCAPE_TYPE, "unshare");
	event_set_u64(&ev, F_MONO, 1000000000);
	ruleset_judge(rs, st, &ev, &m);
	for (size_t i = 0; i < m.n; i++) {
		buf_reset(&out);
		rule_format_output(m.v[i], &ev, &out);
		buf_reset(&out);
		rule_format_fields(m.v[i], &ev, &out);
	}
	buf_done(&out);
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rule_memory *st = NULL;
	struct ruleset *rs = NULL;
	struct err err = { 0 };

	if (ruleset_new(&rs, hear, NULL) < 0)
		return 0;
	ruleset_allow_state(rs);
	if (ruleset_add_text(rs, "fuzz", (struct str){ (const char *)data, size }, &err) == 0 &&
	    ruleset_compile(rs, &err) == 0) {
		if (rule_memory_new(&st, rs) < 0)
			abort();
		for (int i = 0; i < 3; i++) {
			judge(rs, st, WIRE_EXEC);
			judge(rs, st, WIRE_FILE_OPEN);
			judge(rs, st, WIRE_ESCAPE);
		}
	} else if (!err.text[0]) {
		abort();
	}
	rule_memory_free(st);
	ruleset_free(rs);
	return 0;
}
