/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API of the agent: its socket, and the process that serves it (userspace/api/front.h), which is started anew
 * when it ends. */
#ifndef WARDER_CLI_AGENT_DOOR_H
#define WARDER_CLI_AGENT_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"

struct agent_door {
	int listen, channel; /* -1: there is none */
	pid_t pid;
	uint64_t started; /* CLOCK_MONOTONIC */
};

/* <run>/api.sock. */
int door_listen(struct agent_door *d, struct err *err);
/* Start the front, unless it runs or did so just now. `in_child`: what a child lets go of. */
void door_start(struct agent_door *d, void (*in_child)(void *arg), void *arg);
/* Was it this child that ended? */
bool door_forget(struct agent_door *d, pid_t pid);
void door_close(struct agent_door *d);

#endif
