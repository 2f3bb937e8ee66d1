/* SPDX-License-Identifier: Apache-2.0 */
/* Keepers out of one process that has loaded the probes: the nursery. */
#ifndef WARDER_CLI_AGENT_PARK_H
#define WARDER_CLI_AGENT_PARK_H

#include "userspace/cli/agent.h"

#define AGENT_PARKED_MAX 16
#define AGENT_NURSERY \
	"nursery" /* its socket, beside those of children that wait, in <run>/parked */

struct agent_park {
	pid_t pid; /* of the nursery; 0: there is none */
	int fd;	   /* to it; -1 */
};

/* ---- the agent (agent_park.c) ---- */
/* A nursery that keeps so many children ready (at most AGENT_PARKED_MAX), if there is none. */
void agent_park_start(struct agent_park *p, uint64_t wanted);
/* p->fd is readable. True: a keeper has ended; what it left is to be swept. */
bool agent_park_hear(struct agent_park *p);
/* A child has ended. True: it was the nursery. */
bool agent_park_forget(struct agent_park *p, pid_t pid);
/* It ends, and its children that nobody took. */
void agent_park_drain(struct agent_park *p);

struct sockaddr_un;
void agent_park_address(struct sockaddr_un *ret, int dir, const char *name);

/* ---- a worker: have one keep this sandbox (agent_park.c) ---- */
/* q->sandbox: the session; q->cwd: flags, q->argv: words, as `agent keep` takes them. False: there is none. */
bool agent_park_give(const struct agent_request *q, int client, int lock, int hub);

/* ---- the nursery and its children (agent_nursery.c) ---- */
/* `warder agent park NUMBER`: its whole life; of a child: up to its sandbox's end. */
int agent_nursery(int argc, char **argv);
/* Its probes, once; NULL: this is no child of a nursery. */
struct capture;
struct capture *agent_park_take(void);

#endif
