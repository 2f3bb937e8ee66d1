/* SPDX-License-Identifier: Apache-2.0 */
/* The process that speaks HTTP: without privilege, and without a right of its own. Each request becomes a question to
 * the agent, which asks the kernel who is at the other end of the client's socket. */
#ifndef WARDER_API_FRONT_H
#define WARDER_API_FRONT_H

#include <sys/types.h>
#include "userspace/base/err.h"

#define API_SOCKET "api.sock"

#define API_CONNECTIONS_MAX 256
#define API_OF_ONE_UID_MAX  64	  /* connections; root: all */
#define API_FOR_ROOT	    32	  /* that nobody else may take */
#define API_HEAD_MS	    30000 /* from a connection, or an answer, to the next whole head */
#define API_BODY_MS	    30000 /* without a byte of the body */

/* Never returns. `listen`: a stream socket; `channel`: to the agent (upstream.h). When that one has gone, what is under
 * way is finished and nothing else is begun. Threads: call it in a process of its own. */
_Noreturn void front_run(int listen, int channel, uid_t uid, gid_t gid);

#endif
