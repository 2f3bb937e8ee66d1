/* SPDX-License-Identifier: Apache-2.0 */
/* `warder replay` at a terminal: the recorded screen, the events, and keys to move in time. */
#ifndef WARDER_CLI_REPLAY_UI_H
#define WARDER_CLI_REPLAY_UI_H

#include "userspace/pipeline/playback.h"

#define REPLAY_IDLE_NS 10000000000ull /* a longer silence is not sat through */

struct replay_ui {
	struct playback_options playback;
	uint64_t speed;	  /* thousandths */
	uint64_t idle_ns; /* 0 = silences are played as they were */
	uint64_t from;	  /* ns since the session's start */
};

/* Stdin and stdout must be terminals. Returns when its person has had enough; a signal that ends programs ends
 * this one, after the terminal is as it was. 0 or -errno. */
int replay_ui(const struct replay_ui *opt, int bundle, struct err *err);

#endif
