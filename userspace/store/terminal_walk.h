/* SPDX-License-Identifier: Apache-2.0 */
/* Frame by frame through tty.NNNN.seg with all hashes checked: for verify and recovery. */
#ifndef WARDER_STORE_TERMINAL_WALK_H
#define WARDER_STORE_TERMINAL_WALK_H

#include "userspace/store/chain.h"
#include "userspace/store/segment.h"
#include "userspace/store/terminal.h"

struct terminal_walk {
	int dirfd;
	const char *session;
	unsigned last; /* the highest number there is */
	struct chain *chain;
	struct segment_file file; /* of SEGMENT_TTY */
	struct unpacker unpacker;
	uint64_t off;	/* of the next frame */
	uint64_t bytes; /* of the segments before */
	uint64_t next_seq, frames;
	uint8_t head[STORE_HASH_LEN], link[STORE_HASH_LEN];
};

#define TERMINAL_WALK_NONE \
	((struct terminal_walk){ .file = SEGMENT_FILE_OF(SEGMENT_TTY), .next_seq = 1 })

/* `dirfd`, `session` and `chain` are borrowed. */
int terminal_walk_start(struct terminal_walk *w, int dirfd, const char *session, unsigned last,
			struct chain *chain);
void terminal_walk_done(struct terminal_walk *w);
/* One frame, or one segment's header. READ_OK; READ_END: nothing more; READ_TORN: the rest is
 * incomplete (w->off: from where on); -EBADMSG with *ret_why; another -errno. */
int terminal_walk_next(struct terminal_walk *w, const char **ret_why);

#endif
