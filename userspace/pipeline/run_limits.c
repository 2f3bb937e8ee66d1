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
	int limits = limits_timeout(&run->limits), reload = reloader_timeout(&run->reloader);
	int sample = sampler_timeout(&run->sampler), work = workspace_job_timeout(&run->workspace);
	uint64_t ms = 60000;

	if (end)
		ms = MIN(ms, (end - now) / NSEC_PER_MSEC + 1);
	if (!run_has_begun(run))
		ms = MIN(ms, SANDBOX_START_MS);
	if (limits >= 0)
		ms = MIN(ms, (uint64_t)limits);
	if (look > now) /* counts changed, but they were looked at just now */
		ms = MIN(ms, (look - now) / NSEC_PER_MSEC + 1);
	if (reload >= 0)
		ms = MIN(ms, (uint64_t)reload);
	if (sample >= 0)
		ms = MIN(ms, (uint64_t)sample);
	if (work >= 0)
		ms = MIN(ms, (uint64_t)work);
	if (run->next_secret) /* it is later than `now` */
		ms = MIN(ms, (run->next_secret - now) / NSEC_PER_MSEC + 1);
	if (run->guest_end)
		ms = MIN(ms, run->guest_end > now ? (run->guest_end - now) / NSEC_PER_MSEC + 1 : 0);
	if (run->next_end) /* so is this */
		ms = MIN(ms, (run->next_end - now) / NSEC_PER_MSEC + 1);
	if (run->next_usage)
		ms = MIN(ms,
			 run->next_usage > now ? (run->next_usage - now) / NSEC_PER_MSEC + 1 : 0);
	return end || !run_has_begun(run) || limits >= 0 || look > now || reload >= 0 ||
			       sample >= 0 || work >= 0 || run->next_usage || run->next_secret ||
			       run->next_end || run->guest_end
		       ? (int)ms
		       : -1;
}
