// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "runtime/egress/helper.h"

static bool send_one(struct helper *h, const struct egress_event *ev)
{
	if (h->events < 0)
		return true;
	if (send(h->events, ev, sizeof(*ev), MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*ev))
		return true;
	return errno != EAGAIN && errno != ENOBUFS; /* nobody is there any more */
}

void tell(struct helper *h, const struct egress_event *ev)
{
	if (h->told_n == 0 && send_one(h, ev))
		return;
	if (h->told_n ==
	    TOLD_MAX) /* the connections that are open end now; there are fewer than that */
		return;
	h->told[(h->told_at + h->told_n++) % TOLD_MAX] = *ev;
	if (h->told_n == 1)
		helper_watch(h, h->events, EPOLLOUT, watch_of(WATCH_EVENTS, 0));
	if (tell_is_full(h))
		helper_pause(h, true);
}

void tell_flush(struct helper *h)
{
	while (h->told_n && send_one(h, &h->told[h->told_at])) {
		h->told_at = (h->told_at + 1) % TOLD_MAX;
		h->told_n--;
	}
	if (h->told_n == 0)
		helper_watch(h, h->events, 0, watch_of(WATCH_EVENTS, 0));
	if (!tell_is_full(h) && !h->rest_until)
		helper_pause(h, false);
}

bool tell_is_full(const struct helper *h)
{
	return h->told_n >= TOLD_PAUSE;
}

bool tell_is_due(struct helper *h, const char *reason, uint64_t now, uint32_t *ret_count)
{
	struct muted *m = NULL;

	for (size_t i = 0; i < MUTED_MAX && !m; i++)
		if (!h->muted[i].reason || !strcmp(h->muted[i].reason, reason))
			m = &h->muted[i];
	*ret_count = 1;
	if (!m)
		return true;
	m->reason = reason;
	m->count++;
	if (now < m->until)
		return false;
	*ret_count = m->count;
	m->count = 0;
	m->until = now + NSEC_PER_SEC;
	return true;
}
