/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario puts in the launcher's way on the host: links, trees, sockets. Below a scratch directory. */
#ifndef WARDER_SCENARIOS_TRAP_H
#define WARDER_SCENARIOS_TRAP_H

#include "userspace/base/err.h"
#include "userspace/scenarios/scenario.h"

#define TRAP_FD	  8		     /* the descriptor that is given along */
#define TRAP_NAME "service.internal" /* of the service, as a sandbox knows it */

struct trap {
	enum scenario_trap kind;
	char place[600];  /* what an option names */
	char planted[64]; /* of a bind's target that goes through a link: its name, ours alone */
	int give_fd;	  /* for the launcher; -1: none */
	int listen_fd;
};

int trap_set(struct trap *ret, enum scenario_trap kind, const char *dir, struct err *err);
/* Was it sprung: is something where the launcher must not have put it? */
bool trap_end(struct trap *t);

#endif
