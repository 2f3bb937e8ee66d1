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
	[WIRE_LIMIT_EVENTS] = "events",
};

/* What hitting it means for who hits it. */
static const char *const limit_effects[] = {
	[WIRE_LIMIT_MEMORY] = "killed",	 [WIRE_LIMIT_PIDS] = "refused",
	[WIRE_LIMIT_CPU] = "throttled",	 [WIRE_LIMIT_DISK] = "refused",
	[WIRE_LIMIT_OUTPUT] = "cut",	 [WIRE_LIMIT_TIMEOUT] = "killed",
	[WIRE_LIMIT_IDLE] = "killed",	 [WIRE_LIMIT_TTL] = "removed",
	[WIRE_LIMIT_NOFILE] = "refused", [WIRE_LIMIT_FSIZE] = "refused",
	[WIRE_LIMIT_EVENTS] = "stopped",
};

const char *event_limit_name(uint32_t type)
{
	return type < ARRAY_SIZE(limit_names) ? limit_names[type] : NULL;
}

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

void decode_usage(struct decode_ctx *c)
{
	const struct wire_usage w = DECODE_FIXED(c, wire_usage);
	struct event *ev = c->ev;

	if (!w.period_ns)
		return;
	event_set_u64(ev, F_USAGE_PERIOD, w.period_ns / 1000000);
	/* Nothing uses more than some thousand CPUs: no overflow with what is true. */
	if (w.cpu_ns != WIRE_UNKNOWN && w.cpu_ns < UINT64_MAX / 100)
		event_set_u64(ev, F_USAGE_CPU, w.cpu_ns * 100 / w.period_ns);
	if (w.mem != WIRE_UNKNOWN) {
		event_set_u64(ev, F_USAGE_MEM, w.mem);
		event_set_i64(ev, F_USAGE_MEM_GROWTH, w.mem_growth);
	}
	if (w.net != WIRE_UNKNOWN)
		event_set_u64(ev, F_USAGE_NET,
			      (uint64_t)((double)w.net * 8e9 / (double)w.period_ns));
	if (w.pids != WIRE_UNKNOWN)
		event_set_u64(ev, F_USAGE_PIDS, w.pids);
}

void decode_limit(struct decode_ctx *c)
{
	const struct wire_limit_hit w = DECODE_FIXED(c, wire_limit_hit);

	struct event *ev = c->ev;

	if (event_limit_name(w.type)) {
		event_set_strz(ev, F_LIMIT_TYPE, event_limit_name(w.type));
		event_set_strz(ev, F_LIMIT_EFFECT, limit_effects[w.type]);
	}
	if (ev->hdr.flags & WIRE_F_KILLED)
		event_set_strz(ev, F_LIMIT_EFFECT, "killed");
	if (w.value)
		event_set_u64(ev, F_LIMIT_VALUE, w.value);
	if (w.used)
		event_set_u64(ev, F_LIMIT_USED, w.used);
	if (w.count)
		event_set_u64(ev, F_LIMIT_COUNT, w.count);
	decode_set_string(c, F_LIMIT_TARGET, w.target);
	if (ev->hdr.ret == 0) /* seen by its counter, not by a call that failed */
		event_unset(ev, F_OUTCOME);
}
