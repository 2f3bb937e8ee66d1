// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_print.h"

#include <string.h>

#include "userspace/base/log.h"

void run_print_closing(const struct run_result *res)
{
	const struct engine_result *e = &res->engine;

	if (e->rule[0] && !strcmp(res->reason, "rule") && e->expired)
		log_warn("sandbox killed: rule '%s' stopped it, and nobody came in time", e->rule);
	else if (e->rule[0] && !strcmp(res->reason, "rule"))
		log_warn("sandbox killed by rule '%s'", e->rule);
	else if (e->rule[0])
		log_warn("rule '%s': %s", e->rule, e->action);
	if (!strcmp(res->reason, "operator"))
		log_warn("sandbox killed by an operator");
	if (!strcmp(res->reason, "freeze_timeout"))
		log_warn("sandbox killed: frozen, and nobody came in time");
	if (!strcmp(res->reason, "oom"))
		log_warn("sandbox killed: memory limit");
	if (!strcmp(res->reason, "timeout"))
		log_warn("sandbox killed: time limit");
	if (!strcmp(res->reason, "output_limit"))
		log_warn("sandbox killed: output limit");
	else if (res->facts.truncated)
		log_warn("output cut: %llu bytes to stdout, %llu to stderr were written",
			 (unsigned long long)res->facts.stdout_bytes,
			 (unsigned long long)res->facts.stderr_bytes);
	log_info("session %s: %s, exit code %d; %llu event%s, %llu alert%s, %llu lost; record in "
		 "%s",
		 res->session, res->reason, res->exit_code, (unsigned long long)e->events,
		 e->events == 1 ? "" : "s", (unsigned long long)e->alerts,
		 e->alerts == 1 ? "" : "s", (unsigned long long)e->gaps, res->bundle);
}

void run_print_troubles(const struct run_result *res)
{
	const struct engine_result *e = &res->engine;

	for (size_t i = 0; i < res->degraded_n; i++)
		if (!strncmp(res->degraded[i], "probe.", 6))
			log_warn("the record lacks what '%s' sees: warder doctor tells why",
				 res->degraded[i]);
	if (e->sinks_behind)
		log_warn("%u of %u sinks have not taken everything; the record keeps it, "
			 "`warder export %s SINK` sends the rest: %s",
			 e->sinks_behind, e->sinks, res->session, e->sink_text);
	if (e->dead_letters)
		log_warn(
			"%llu events were refused by a sink for good; %s/cursors/%s.*.dlq.jsonl has "
			"them and why",
			(unsigned long long)e->dead_letters, state_dir(), res->session);
	if (e->gaps)
		log_warn("%llu events were lost; the record %s", (unsigned long long)e->gaps,
			 e->journal_error ? "is not complete" : "says where");
}
