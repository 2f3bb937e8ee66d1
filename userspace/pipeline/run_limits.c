// SPDX-License-Identifier: Apache-2.0
/* What ends a session from outside: time, output, idleness. */
#include "userspace/pipeline/run_priv.h"

#include <stdio.h>
#include <sys/eventfd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/pipeline/run.h"

void run_tell_limit(void *arg, const struct limit_hit *hit)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };

	if (record_limit(&rec, run->id, hit) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
	run->result->limits_hit |= 1u << hit->type;
}

void run_tell_secret_gone(void *arg, const struct sandbox_secret *gone)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };
	char place[sizeof(SECRET_DIR) + 1 + SANDBOX_SECRET_NAME_MAX];
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TTL,
		.target = place,
		.value = gone->ttl_ns,
		.used = gone->ttl_ns,
		.count = 1,
	};

	snprintf(place, sizeof(place), "%s/%s", SECRET_DIR, gone->name);
	if (record_limit(&rec, run->id, &hit) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

void run_hit_timeout(struct run *run)
{
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TIMEOUT,
		.value = run->spec.limits.timeout_ns,
		.used = run->spec.limits.timeout_ns,
		.count = 1,
		.killed = true,
	};

	run->result->facts.timed_out = true;
	run_tell_limit(run, &hit);
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
}

bool run_hit_output(struct run *run)
{
	struct limit_hit hit = {
		.type = WIRE_LIMIT_OUTPUT,
		.value = run->opt->output_max,
		.count = 1,
		.killed = run->opt->output_kill,
	};
	eventfd_t n;

	eventfd_read(relay_fd(run->relay), &n);
	hit.target = relay_hit(run->relay, &hit.used);
	if (!hit.target)
		return false;
	run_tell_limit(run, &hit);
	if (!hit.killed)
		return false;
	run->result->facts.output_killed = true;
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
	return true;
}

bool run_has_begun(const struct run *run)
{
	return !run->starting || run->stopped;
}

static void end_life(struct run *run, bool *fact, const char *what, uint64_t limit)
{
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TIMEOUT,
		.target = what,
		.value = limit,
		.used = limit,
		.count = 1,
		.killed = true,
	};

	*fact = true;
	run_tell_limit(run, &hit);
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
}

bool run_look_at_life(struct run *run, uint64_t now)
{
	struct run_facts *facts = &run->result->facts;
	uint64_t ttl = run->opt->ttl_ns, idle = run->opt->idle_ns;

	run->next_end = 0;
	if (run->execs.gone) {
		facts->hung_up = true;
		sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
		return true;
	}
	execs_look_idle(&run->execs, run_has_first(run), now);
	if (ttl && now - run->begun >= ttl) {
		end_life(run, &facts->ttl_over, "ttl", ttl);
		return true;
	}
	if (idle && run->execs.idle_ns && now - run->execs.idle_ns >= idle) {
		end_life(run, &facts->idle, "idle", idle);
		return true;
	}
	if (ttl)
		run->next_end = run->begun + ttl;
	if (idle && run->execs.idle_ns &&
	    (!run->next_end || run->execs.idle_ns + idle < run->next_end))
		run->next_end = run->execs.idle_ns + idle;
	return false;
}

int run_wait_timeout(const struct run *run, uint64_t end, uint64_t now, uint64_t look)
{
	const uint64_t times[] = {
		end,
		look > now ? look : 0, /* counts changed, but they were looked at just now */
		run->next_secret,
		run->guest_end,
		run->next_end,
		run->next_usage,
	};
	int ms = run_has_begun(run) ? -1 : SANDBOX_START_MS;

	ms = clock_sooner_ms(ms, limits_timeout(&run->limits));
	ms = clock_sooner_ms(ms, reloader_timeout(&run->reloader));
	ms = clock_sooner_ms(ms, sampler_timeout(&run->sampler));
	ms = clock_sooner_ms(ms, workspace_job_timeout(&run->workspace));
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i])
			ms = clock_sooner(ms, now, times[i]);
	return ms;
}
