// SPDX-License-Identifier: Apache-2.0
/* The supervisor of the payload's filter: each attempt is told and judged, and only then refused: who is killed for it
 * does not get to its next instruction. */
#include "userspace/pipeline/engine_part.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

/* The kernel's structures grow; it writes as many bytes as its own have. The room is first: of a union `= { 0 }` clears
 * no more than that. */
#define ROOM 512

union request {
	char room[ROOM];
	struct seccomp_notif req;
};

union response {
	char room[ROOM];
	struct seccomp_notif_resp resp;
};

int engine_notify_start(struct engine *e, struct err *err)
{
	e->notify.proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return e->notify.proc_fd < 0 ? err_set(err, errno, "'/proc': %m") : 0;
}

void engine_notify_take(struct engine *e, int fd)
{
	if (e->notify.fd >= 0) /* there is one filter */
		close(fd);
	else
		e->notify.fd = fd;
}

int engine_notify_fd(const struct engine *e, uint64_t *ret_wait)
{
	*ret_wait =
		e->notify.fd >= 0 ? notify_wait(&e->notify.state, clock_ns(CLOCK_MONOTONIC)) : 0;
	return *ret_wait ? -1 : e->notify.fd;
}

/* It may have been taken back since poll said that it is there: the kernel has a name for that. */
static bool receive(struct engine *e, union request *u)
{
	struct pollfd pfd = { .fd = e->notify.fd, .events = POLLIN };

	if (poll(&pfd, 1, 0) <= 0)
		return false;
	if (!(pfd.revents & POLLIN)) { /* nobody is left who has the filter */
		close(take_fd(e->notify.fd));
		return false;
	}
	*u = (union request){ 0 };
	return ioctl(e->notify.fd, SECCOMP_IOCTL_NOTIF_RECV, &u->req) == 0;
}

/* While it waits for us its number is nobody else's; else it may be. */
static void see_who(const struct engine *e, const struct seccomp_notif *req,
		    struct wire_escape *rec)
{
	notify_record(rec, e->opt->session.sandbox_id, e->notify.proc_fd, req,
		      SANDBOX_NOTIFY_ERRNO);
	if (ioctl(e->notify.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &req->id) < 0)
		notify_forget_who(rec, req);
}

/* It fails for who was killed meanwhile. No other signal takes a call back that we have (SECCOMP_LISTENER_FLAGS). */
void engine_notify_let_go(void *arg)
{
	struct engine *e = arg;
	union response u = { 0 };

	if (!e->notify.is_pending)
		return;
	e->notify.is_pending = false;
	u.resp.id = e->notify.pending;
	u.resp.error = -SANDBOX_NOTIFY_ERRNO;
	(void)ioctl(e->notify.fd, SECCOMP_IOCTL_NOTIF_SEND, &u.resp);
}

/* What it did before, and how it came to be, lies in the rings. */
static void tell(struct engine *e, struct wire_escape *rec)
{
	size_t held;

	capture_drain(e->opt->capture, false, engine_feed, e, &held);
	notify_find_start(&e->notify.state, rec);
	pipeline_feed(e->pipeline, rec, sizeof(*rec));
}

void engine_notify_read(struct engine *e)
{
	for (int i = 0; i < NOTIFY_TURN && e->notify.fd >= 0; i++) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		struct wire_escape rec;
		union request u;

		if (notify_wait(&e->notify.state, now) || !receive(e, &u))
			return;
		notify_took(&e->notify.state, now);
		e->notify.is_pending = true;
		e->notify.pending = u.req.id;
		see_who(e, &u.req, &rec);
		tell(e, &rec);
		engine_notify_let_go(e); /* what kills has done so */
	}
}

void engine_notify_free(struct engine *e)
{
	if (e->notify.fd >= 0)
		close(take_fd(e->notify.fd));
	if (e->notify.proc_fd >= 0)
		close(take_fd(e->notify.proc_fd));
}
