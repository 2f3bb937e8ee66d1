// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/sampler.h"

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

void sampler_between(struct wire_usage *ret, uint64_t period_ns, const struct sandbox_result *now,
		     uint64_t cpu_usec_before, uint64_t mem_before, uint64_t net_bytes)
{
	ret->period_ns = period_ns;
	ret->cpu_ns =
		now->cpu_usec > cpu_usec_before ? (now->cpu_usec - cpu_usec_before) * 1000 : 0;
	ret->mem = now->mem_now ? now->mem_now : WIRE_UNKNOWN;
	ret->mem_growth = now->mem_now && mem_before ? (int64_t)(now->mem_now - mem_before) : 0;
	ret->net = net_bytes;
	ret->pids = now->pids_now ? now->pids_now : WIRE_UNKNOWN;
}

static void remember(struct sampler *u, const struct sandbox_result *now, uint64_t net)
{
	u->cpu_usec = now->cpu_usec;
	u->mem = now->mem_now;
	u->net = net;
}

void sampler_switch(struct sampler *u, bool on)
{
	struct sandbox_result now;

	if (on == (u->next_ns != 0))
		return;
	capture_net_usage_on(u->capture, on);
	if (!on) {
		u->next_ns = 0;
		return;
	}
	sandbox_result(u->sandbox, &now);
	remember(u, &now, capture_net_usage(u->capture, u->sandbox_id));
	u->at_ns = clock_ns(CLOCK_MONOTONIC);
	u->next_ns = u->at_ns + u->period_ns;
}

int sampler_timeout(const struct sampler *u)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!u->next_ns)
		return -1;
	return u->next_ns > now ? (int)MIN((u->next_ns - now) / NSEC_PER_MSEC + 1, (uint64_t)60000)
				: 0;
}

bool sampler_take(struct sampler *u, struct wire_usage *ret)
{
	uint64_t t = clock_ns(CLOCK_MONOTONIC), net;
	struct sandbox_result now;

	if (!u->next_ns || t < u->next_ns)
		return false;
	sandbox_result(u->sandbox, &now);
	net = capture_net_usage(u->capture, u->sandbox_id);
	/* Over the time that really passed: a late sample is no spike. */
	sampler_between(ret, t - u->at_ns, &now, u->cpu_usec, u->mem, net - u->net);
	remember(u, &now, net);
	u->at_ns = t;
	u->next_ns = t + u->period_ns;
	return true;
}
