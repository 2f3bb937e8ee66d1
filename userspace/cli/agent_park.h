/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of keepers that have their probes and wait for a sandbox. */
#ifndef WARDER_CLI_AGENT_PARK_H
#define WARDER_CLI_AGENT_PARK_H

#include "userspace/cli/agent.h"

#define AGENT_PARKED_MAX 16

struct agent_park {
	int fd[AGENT_PARKED_MAX]; /* to each; -1 */
};

/* ---- the agent ---- */
void agent_park_init(struct agent_park *p);
/* As many as are wanted, at most AGENT_PARKED_MAX. */
void agent_park_fill(struct agent_park *p, uint64_t wanted);
/* p->fd[i] is readable. True: it was taken, another one may be made at once. */
bool agent_park_hear(struct agent_park *p, size_t i);
/* Those that nobody took end. */
void agent_park_drain(struct agent_park *p);

/* ---- a worker: have one keep this sandbox ---- */
/* q->sandbox: the session; q->cwd: flags, q->argv: words, as `agent keep` takes them. False: there is none. */
bool agent_park_give(const struct agent_request *q, int client, int lock, int hub);

/* ---- the parked one ---- */
/* `warder agent park`: its whole life. */
int agent_parked(void);
/* Its probes, once; NULL: this is no parked one. */
struct capture;
struct capture *agent_park_take(void);

#endif
