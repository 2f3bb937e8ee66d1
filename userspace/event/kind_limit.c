// SPDX-License-Identifier: Apache-2.0
/* oom and limit. */
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"

static const char *const limit_names[] = {
	[WIRE_LIMIT_MEMORY] = "memory", [WIRE_LIMIT_PIDS] = "pids",
	[WIRE_LIMIT_CPU] = "cpu",	[WIRE_LIMIT_DISK] = "disk",
	[WIRE_LIMIT_OUTPUT] = "output", [WIRE_LIMIT_TIMEOUT] = "timeout",
	[WIRE_LIMIT_IDLE] = "idle",	[WIRE_LIMIT_TTL] = "ttl",
	[WIRE_LIMIT_NOFILE] = "nofile", [WIRE_LIMIT_FSIZE] = "fsize",
};

void decode_oom(struct decode_ctx *c)
{
	const struct wire_oom w = DECODE_FIXED(c, wire_oom);
	struct event *ev = c->ev;

	if (w.total_vm) /* 0 = this kernel's hook does not tell sizes */
		event_set_u64(ev, F_OOM_TOTAL_VM, w.total_vm);
	if (w.total_vm || w.anon_rss || w.file_rss || w.shmem_rss) {
		event_set_u64(ev, F_OOM_ANON, w.anon_rss);
		event_set_u64(ev, F_OOM_FILE, w.file_rss);
		event_set_u64(ev, F_OOM_SHMEM, w.shmem_rss);
	}
	event_set_i64(ev, F_OOM_ADJ, w.oom_score_adj);
}

void decode_limit(struct decode_ctx *c)
{
	const struct wire_limit_hit w = DECODE_FIXED(c, wire_limit_hit);

	if (w.type < ARRAY_SIZE(limit_names) && limit_names[w.type])
		event_set_strz(c->ev, F_LIMIT_TYPE, limit_names[w.type]);
	event_set_u64(c->ev, F_LIMIT_VALUE, w.value);
	event_set_u64(c->ev, F_LIMIT_USED, w.used);
}
