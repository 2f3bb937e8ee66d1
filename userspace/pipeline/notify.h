/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that the sandbox's filter never allows and that no probe looks at: the filter asks us (seccomp_unotify(2)), we tell
 * of the attempt and then refuse it. The caller waits for that, so one that floods us waits for itself. */
#ifndef WARDER_PIPELINE_NOTIFY_H
#define WARDER_PIPELINE_NOTIFY_H

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/wire.h"

#define NOTIFY_TURN	  32		/* answered before the probes have their turn */
#define NOTIFY_EVERY_NS	  (500 * 1000u) /* one call, when many come: 2,000 a second of a sandbox */
#define NOTIFY_BURST	  256		/* that are answered at once before that */
#define NOTIFY_BIRTHS	  1024		/* processes whose start is known: a power of two */
#define NOTIFY_BIRTH_WAYS 4

struct notify_birth {
	uint64_t start; /* CLOCK_BOOTTIME ns; 0 = free */
	uint32_t tgid;
};

struct notify {
	uint64_t due; /* CLOCK_MONOTONIC; when the last call that was taken would have been due */
	struct notify_birth births[NOTIFY_BIRTHS];
};

/* How long the next call waits, at `now` (CLOCK_MONOTONIC ns); 0: it is taken. */
uint64_t notify_wait(const struct notify *n, uint64_t now);
/* One was taken. */
void notify_took(struct notify *n, uint64_t now);

/* Of each record of a probe, before it is used: who was born when. */
void notify_see(struct notify *n, const void *rec, size_t len);

/* The attempt as a record of vantage runtime: the numbers of the call, and who made it as /proc, open in `proc_fd`,
 * says; of its start that is to the tick, and notify_find_start's to be replaced. What it does not say stays 0; that `req`
 * is still waited for is the caller's to check afterwards. */
void notify_record(struct wire_escape *ret, uint32_t sandbox_id, int proc_fd,
		   const struct seccomp_notif *req, int error);
/* The start as a probe has told it, 0 where none has: once all records from before the call were seen. */
void notify_find_start(const struct notify *n, struct wire_escape *rec);
/* That of a call that cannot be asked about any more: its thread alone. */
void notify_forget_who(struct wire_escape *rec, const struct seccomp_notif *req);
/* enum wire_escape_type of a call that is never legitimate. */
uint32_t notify_type(int nr);

#endif
