/* SPDX-License-Identifier: Apache-2.0 */
/* `warder replay --tty`: the terminal or output alone, made harmless for the terminal it is shown on. */
#ifndef WARDER_CLI_REPLAY_TTY_H
#define WARDER_CLI_REPLAY_TTY_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct replay_tty {
	uint64_t speed;	   /* thousandths */
	uint64_t from, to; /* ns since the session's start; to 0 = the end */
	bool paced;	   /* in its own time, silences cut to `idle_ns` */
	uint64_t idle_ns;
};

/* Ctrl-C and SIGTERM end it; colours, screen and cursor are as before in any case. 0 or -errno. */
int replay_tty(const struct replay_tty *opt, int bundle, struct err *err);

#endif
