/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints that somebody kept: what `warder run --witness` writes, or Kafka's warder.checkpoints. */
#ifndef WARDER_CLI_WITNESS_H
#define WARDER_CLI_WITNESS_H

#include "userspace/base/err.h"
#include "userspace/store/store.h"

#define WITNESS_LINE_MAX (64 * 1024)
#define WITNESS_MAX	 4000000

struct witness {
	struct verify_witness *v; /* by session, then seq; never NULL after a read */
	size_t n, cap;
};

/* One JSON object a line; lines of another kind are passed over. -EBADMSG names the line. */
int witness_read(struct witness *ret, const char *path, struct err *err);
void witness_done(struct witness *w);

#endif
