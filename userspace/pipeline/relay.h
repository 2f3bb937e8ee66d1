/* SPDX-License-Identifier: Apache-2.0 */
/* The payload's stdout and stderr through pipes of ours, where a cap is set: counted to the last byte,
 * passed on up to the cap, dropped after it. Without a cap they go straight through and cost nothing. */
#ifndef WARDER_PIPELINE_RELAY_H
#define WARDER_PIPELINE_RELAY_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct relay;

struct relay_counts {
	uint64_t out, err; /* bytes the payload wrote */
	bool cut;	   /* more than the cap on one of them, or the reader did not take it */
};

/* `cap`: bytes passed on of each stream. ret_fds: write ends for the payload's 1 and 2, owned by the
 * relay and closed by relay_start. */
int relay_new(struct relay **ret, uint64_t cap, int ret_fds[2], struct err *err);
/* After the payload has got its descriptors. */
int relay_start(struct relay *r, struct err *err);
/* Readable once when the first stream reaches the cap. */
int relay_fd(const struct relay *r);
/* Which stream it was: "stdout" or "stderr"; NULL: none. *ret_bytes: what it had written by then. */
const char *relay_hit(const struct relay *r, uint64_t *ret_bytes);
/* No writer is left: pass on what lies in the pipes (a reader that takes nothing for `wait_ms` loses
 * it), then the final counts. */
void relay_finish(struct relay *r, int wait_ms, struct relay_counts *ret);
void relay_free(struct relay *r);

#endif
