/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of what a sandbox uses, for rules on usage.*: taken by the root part, which has its control
 * groups. Without such a rule nothing is sampled and nothing wakes. */
#ifndef WARDER_PIPELINE_SAMPLER_H
#define WARDER_PIPELINE_SAMPLER_H

#include "bpf/abi/wire.h"
#include "runtime/sandbox.h"
#include "userspace/capture/capture.h"

#define USAGE_PERIOD_DEFAULT_NS 1000000000ull
#define USAGE_PERIOD_MIN_NS	50000000ull

struct sampler {
	struct sandbox *sandbox;
	struct capture *capture;
	uint32_t sandbox_id;
	uint64_t period_ns;
	uint64_t next_ns; /* CLOCK_MONOTONIC; 0 = off */
	uint64_t at_ns;	  /* of the sample before */
	uint64_t cpu_usec, mem, net;
};

/* What a period's two ends make. `mem` 0: not known. */
void sampler_between(struct wire_usage *ret, uint64_t period_ns, const struct sandbox_result *now,
		     uint64_t cpu_usec_before, uint64_t mem_before, uint64_t net_bytes);
/* Begin or end. The first sample comes after one period. */
void sampler_switch(struct sampler *u, bool on);
/* ms until the next sample; -1 = off. */
int sampler_timeout(const struct sampler *u);
/* Is a sample due? Fills *ret but for the header. */
bool sampler_take(struct sampler *u, struct wire_usage *ret);

#endif
