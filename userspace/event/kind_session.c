// SPDX-License-Identifier: Apache-2.0
/* session.*: records of the launcher. */
#include <string.h>

#include "userspace/event/decode_ctx.h"
#include "userspace/event/names.h"

static void decode_session_stop(struct decode_ctx *c, const struct wire_session *w)
{
	const char *sig = w->signal > 0 ? name_signal((uint32_t)w->signal) : NULL;
	struct event *ev = c->ev;

	decode_set_string(c, F_RUN_REASON, w->reason);
	if (w->exit_code >= 0)
		event_set_u64(ev, F_EXIT_CODE, (uint64_t)w->exit_code);
	if (sig)
		event_set_strz(ev, F_EXIT_SIGNAL, sig);
	event_set_u64(ev, F_RUN_CPU, w->cpu_usec);
	event_set_u64(ev, F_RUN_MEM_PEAK, w->mem_peak);
	event_set_u64(ev, F_RUN_PIDS_PEAK, w->pids_peak);
	if (w->stdout_bytes != WIRE_UNKNOWN)
		event_set_u64(ev, F_RUN_STDOUT, w->stdout_bytes);
	if (w->stderr_bytes != WIRE_UNKNOWN)
		event_set_u64(ev, F_RUN_STDERR, w->stderr_bytes);
}

void decode_session(struct decode_ctx *c)
{
	const struct wire_session w = DECODE_FIXED(c, wire_session);

	decode_set_string(c, F_SANDBOX, w.name);
	decode_set_string(c, F_TENANT, w.tenant);
	decode_set_string(c, F_HOST, w.host);
	decode_set_string(c, F_RUN_BACKEND, w.backend);
	decode_set_string(c, F_RUN_POLICY, w.policy);
	decode_set_string(c, F_RUN_IMAGE, w.image);
	decode_set_words(c, F_RUN_SECRETS, decode_bytes(c, w.secrets));
	decode_set_words(c, F_RUN_COMMAND, decode_bytes(c, w.command));
	decode_set_words(c, F_DEGRADED, decode_bytes(c, w.degraded));
	if (c->ev->kind == WIRE_SESSION_STOP)
		decode_session_stop(c, &w);
}
