// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/outcome.h"

#include <signal.h>
#include <string.h>

#include "userspace/base/auto.h"

/* As timeout(1), env(1) and the shell have them. */
#define CODE_TIMEOUT  124
#define CODE_INTERNAL 125
#define CODE_KILLED   137

/* A Go program that panics, as the sentry does when it may not make a thread, ends with 2; runsc turns a signal into
 * 128 and it, as a shell does. */
static const char *death_of(const struct run_facts *facts)
{
	if (facts->death_signal == SIGSYS || facts->death_code == 128 + SIGSYS)
		return "escape";
	if (facts->pids_denied)
		return "limit";
	if (facts->death_signal == SIGKILL || facts->death_code == 128 + SIGKILL)
		return "signal";
	return "sentry";
}

struct outcome outcome_of(const struct run_facts *facts, enum session_verdict verdict)
{
	bool sigkilled = facts->signal == SIGKILL || facts->exit_code == 128 + SIGKILL;

	if (verdict == SESSION_KILLED_BY_RULE)
		return (struct outcome){ "rule", CODE_KILLED };
	if (verdict == SESSION_KILLED_BY_OPERATOR)
		return (struct outcome){ "operator", CODE_KILLED };
	if (verdict == SESSION_KILLED_FROZEN)
		return (struct outcome){ "freeze_timeout", CODE_KILLED };
	if (verdict == SESSION_KILLED_FOR_EVENTS)
		return (struct outcome){ "event_limit", CODE_KILLED };
	if (verdict == SESSION_KILLED_FOR_RECORD)
		return (struct outcome){ "record", CODE_KILLED };
	if (facts->internal)
		return (struct outcome){ "internal", CODE_INTERNAL };
	if (facts->ttl_over)
		return (struct outcome){ "ttl", CODE_TIMEOUT };
	if (facts->idle)
		return (struct outcome){ "idle", CODE_TIMEOUT };
	if (facts->hung_up)
		return (struct outcome){ "hangup", CODE_KILLED };
	if (facts->timed_out)
		return (struct outcome){ "timeout", CODE_TIMEOUT };
	if (facts->output_killed)
		return (struct outcome){ "output_limit", CODE_KILLED };
	if (verdict == SESSION_OOM || (facts->oom_kills && sigkilled))
		return (struct outcome){ "oom", CODE_KILLED };
	if (facts->died)
		return (struct outcome){ death_of(facts), CODE_KILLED };
	if (facts->signal)
		return (struct outcome){ "signal", 128 + facts->signal };
	return (struct outcome){ "exit", facts->exit_code };
}

const char *outcome_reason(const char *text)
{
	static const char *const reasons[] = {
		"rule",	       "timeout",  "oom",    "signal",	       "exit", "output_limit",
		"event_limit", "operator", "record", "freeze_timeout", "ttl",  "idle",
		"hangup",      "escape",   "limit",  "sentry"
	};

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (!strcmp(text, reasons[i]))
			return reasons[i];
	return "internal";
}
