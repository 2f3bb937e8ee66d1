/* SPDX-License-Identifier: Apache-2.0 */
/* One run of one scenario: `warder run` as a process of its own, as an operator would start it. */
#ifndef WARDER_SCENARIOS_TRIAL_H
#define WARDER_SCENARIOS_TRIAL_H

#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/scenarios/scenario.h"

#define TRIAL_PATH_MAX	 512
#define TRIAL_OUTPUT_MAX (64 << 10)

/* Where, with what: the same for all. */
struct trials {
	const char *self;	      /* this binary */
	const char *policy, *backend; /* NULL: none given */
	char dir[TRIAL_PATH_MAX];     /* scratch, of ours alone */
	char payload[TRIAL_PATH_MAX];
	char net[16], on[16]; /* the plan's network; the backend that it comes to */
	bool host_workspace;  /* the policy's is a directory of the host: another one is used */
	char *plan;	      /* JSON */
};

struct trial {
	char dir[TRIAL_PATH_MAX]; /* session/ is its record */
	int code;		  /* exit code of `warder run` */
	bool hung;		  /* it did not end by itself */
	bool planted;		  /* a trap of the host was sprung */
	char reason[32], rule[128];
	char output[TRIAL_OUTPUT_MAX + 1];
	size_t output_n;
	char error[512]; /* what warder itself said, one line */
};

/* A limit of the policy's plan by its name there; 0: none. */
uint64_t trials_limit(const struct trials *t, const char *name);

/* Scratch directory and payload, and what the policy's plan says. trials_done removes it all. */
int trials_init(struct trials *t, const char *policy, const char *backend, struct err *err);
void trials_done(struct trials *t);

/* `name` is the trial's own; enforce: actions are taken, else only told. `s` NULL: all harmless twins. Any thread. */
int trial_run(struct trial *ret, const struct trials *t, const struct scenario *s, const char *name,
	      bool enforce, struct err *err);

#endif
