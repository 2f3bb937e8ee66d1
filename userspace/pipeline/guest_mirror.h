/* SPDX-License-Identifier: Apache-2.0 */
/* A gVisor guest's calls as the host's kernel saw them (struct wire_mirror, bpf/mirror.bpf.c), joined with what the
 * guest's own kernel told of them: the names that it does not tell come from the host, who it was comes from the guest.
 *
 * A call that the host saw and the guest's kernel did not tell is a contradiction. The sentry sends its message before
 * the call ends, so no time is waited out: once everything that had been sent by then was read (guest_quiet), it was
 * told or it never will be. */
#ifndef WARDER_PIPELINE_GUEST_MIRROR_H
#define WARDER_PIPELINE_GUEST_MIRROR_H

#include <stddef.h>
#include <stdint.h>

#include "userspace/base/str.h"
#include "userspace/event/seccheck.h"
#include "userspace/pipeline/guest.h"

#define MIRROR_ENTRIES_MAX 1024		 /* of each sort, waiting for the other side */
#define MIRROR_BYTES_MAX   (4u << 20)	 /* of their records */
#define MIRROR_KEYS_MAX	   8192		 /* calls without a name of their own */
#define MIRROR_WAIT_NS	   2000000000ull /* then an act is told without a name */
#define MIRROR_GOFER_NS	   10000000000ull
#define MIRROR_ASK_NS	   20000000ull /* what is joined at once need not be asked for */
#define MIRROR_TOLD_MAX	   8	       /* contradictions that are told one by one */

struct guest_mirror;

int guest_mirror_new(struct guest_mirror **ret, struct guest *g);
void guest_mirror_free(struct guest_mirror *m);

/* ---- what the guest's kernel told ---- */

/* A call on a name or a send that has ended, told by its number only. */
void guest_mirror_act(struct guest *g, const struct seccheck_msg *m);
/* A call that was told in full: that it was told is enough. */
void guest_mirror_told(struct guest *g, const struct seccheck_msg *m);

/* What has waited too long; returns when to come again. */
uint64_t guest_mirror_tick(struct guest *g);

#endif
