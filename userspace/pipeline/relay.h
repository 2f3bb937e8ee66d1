/* SPDX-License-Identifier: Apache-2.0 */
/* The payload's stdout and stderr through pipes of ours: counted to the last byte, copied to the recorder,
 * passed on up to the cap (if there is one), dropped after it. A reader that takes nothing stops only the
 * payload. */
#ifndef WARDER_PIPELINE_RELAY_H
#define WARDER_PIPELINE_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct relay;

#define RELAY_ALL UINT64_MAX

struct relay_counts {
	uint64_t out, err; /* bytes the payload wrote */
	bool cut;	   /* more than the cap on one of them, or the reader did not take it */
};

/* `cap`: bytes passed on of each stream; RELAY_ALL = all. ret_fds: write ends for the payload's 1 and 2, owned by the
 * relay and closed by relay_start. */
int relay_new(struct relay **ret, uint64_t cap, int ret_fds[2], struct err *err);
/* The same to two others instead of our 1 and 2, borrowed. */
int relay_new_on(struct relay **ret, uint64_t cap, const int on[2], int ret_fds[2],
		 struct err *err);
/* The same to pipes instead of our 1 and 2. They are the relay's from here on, also when it fails; each is closed at
 * the end of its stream. */
int relay_new_to(struct relay **ret, uint64_t cap, const int to[2], int ret_fds[2],
		 struct err *err);
int relay_new_tty_to(struct relay **ret, uint64_t cap, int to, struct err *err);
/* The same for a terminal: there is one stream, stdout, and relay_tty says where it comes from. */
int relay_new_tty(struct relay **ret, uint64_t cap, struct err *err);
/* Before the start: the master of its pty, non-blocking; borrowed, a copy is kept. */
int relay_tty(struct relay *r, int master, struct err *err);
/* Before the start: each piece of output goes there too, as one packet that holds a terminal record
 * (userspace/store/terminal.h). Owned by the relay from here on. */
void relay_copy_to(struct relay *r, int socket);
/* After the payload has got its descriptors. */
int relay_start(struct relay *r, struct err *err);
/* Readable once when the first stream reaches the cap. */
int relay_fd(const struct relay *r);
/* Which stream it was: "stdout" or "stderr"; NULL: none. *ret_bytes: what it had written by then. */
const char *relay_hit(const struct relay *r, uint64_t *ret_bytes);
/* Of one with outputs of its own: who wrote has ended, others may hold its pipes. What lies in them is passed on, then
 * the outputs end; does not wait. */
void relay_end(struct relay *r);
/* No writer is left: pass on what lies in the pipes (a reader that takes nothing for `wait_ms` loses
 * it), then the final counts. */
void relay_finish(struct relay *r, int wait_ms, struct relay_counts *ret);
void relay_free(struct relay *r);

#endif
