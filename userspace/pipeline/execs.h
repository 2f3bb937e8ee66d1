/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's side of the hub: further commands of a sandbox, from the request to their end, each with its output
 * recorded on its way. The hub has no privilege and hears clients: nothing it says is believed. */
#ifndef WARDER_PIPELINE_EXECS_H
#define WARDER_PIPELINE_EXECS_H

#include "runtime/sandbox.h"
#include "userspace/pipeline/hub.h"
#include "userspace/pipeline/relay.h"

struct exec_job {
	uint32_t id; /* 0 = free */
	bool runs, tty;
	char *words; /* its command, NUL-terminated words, where the launcher has to tell of it; NULL */
	size_t words_n;
	struct relay *relay;
};

struct execs {
	int hub;      /* -1: there is none */
	int record;   /* the recorder's socket, ours; -1 */
	uint64_t cap; /* of each stream */
	struct sandbox *sandbox;
	const struct sandbox_plan *plan;
	struct exec_job job[SANDBOX_EXECS_MAX];
	int clients, running;
	/* A snapshot is wanted; answered by execs_answer with this id. NULL: none can be taken. */
	void (*snapshot)(void *arg, uint32_t id, const char *name, uint64_t max, const char *who,
			 bool processes);
	/* One began whose words are kept. NULL: nobody is told. */
	void (*began)(void *arg, uint32_t pid, const char *words, size_t n);
	void *arg;
	bool gone; /* whom the first command ran for has gone */
	bool any;  /* there was one */
	uint64_t
		idle_ns; /* CLOCK_MONOTONIC: since then nothing ran and nobody was there; 0 = not now */
};

void execs_init(struct execs *x, int hub, uint64_t cap);
/* Before the sandbox begins. `record` is duplicated. */
void execs_begin(struct execs *x, struct sandbox *s, const struct sandbox_plan *p, int record);
/* The hub's descriptor is readable. `first`: a signal for the first command. */
void execs_hear(struct execs *x, void (*first)(void *arg, int sig), void *arg);
/* The end of what was asked for, besides commands: `text` is JSON; r < 0, an errno: why not. */
void execs_answer(struct execs *x, uint32_t id, int r, const char *text);
/* The sandbox runs. */
void execs_started(struct execs *x);
/* `first_runs`: the sandbox began with a command. */
void execs_look_idle(struct execs *x, bool first_runs, uint64_t now);
/* Nobody runs any more: all is passed on, the recorder gets its end. */
void execs_stop(struct execs *x);

#endif
