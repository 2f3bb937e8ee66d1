// SPDX-License-Identifier: Apache-2.0
/* Calls of the guest that its own limits refused: they are rlimits of gVisor's and file systems of the host, so neither a
 * control group nor bpf/limit.bpf.c sees the guest meet them. As there: once a second for each limit, with the number. */
#include <errno.h>

#include "userspace/pipeline/guest_priv.h"

#define TELL_EVERY_NS 1000000000ull

static bool is_fork(uint64_t sysno)
{
	return (sysno >= 56 && sysno <= 58) || sysno == 435; /* clone, fork, vfork, clone3 */
}

static uint32_t limit_of(const struct seccheck_msg *m)
{
	switch (m->error) {
	case EAGAIN:
		return is_fork(m->sysno) ? WIRE_LIMIT_PIDS : 0;
	case EMFILE:
		return WIRE_LIMIT_NOFILE;
	case ENOSPC:
	case EDQUOT:
		return WIRE_LIMIT_DISK;
	case EFBIG:
		return WIRE_LIMIT_FSIZE;
	default:
		return 0;
	}
}

void guest_limit(struct guest *g, const struct seccheck_msg *m)
{
	uint32_t type = m->has_exit ? limit_of(m) : 0;
	struct guest_limit_seen *seen = &g->limits[type];
	struct wire_limit_hit w;

	if (!type)
		return;
	seen->n++;
	if (seen->told && g->now - seen->told < TELL_EVERY_NS)
		return;
	w = (struct wire_limit_hit){ .h = guest_header(g, m, WIRE_LIMIT),
				     .type = type,
				     .count = seen->n };
	seen->told = g->now;
	seen->n = 0;
	guest_call_header(&w.h, m);
	guest_begin(g, sizeof(w));
	w.target = guest_tail(g, m->fd_path, WIRE_PATH_MAX);
	guest_send(g, &w, sizeof(w));
}
