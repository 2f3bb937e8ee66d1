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

static void tell(struct engine *e, const struct seccomp_notif *req)
{
	struct wire_escape rec;
	size_t held;

	/* What it did before, and how it came to be, lies in the rings. */
	capture_drain(e->opt->capture, false, engine_feed, e, &held);
	notify_record(&rec, &e->notify.state, e->opt->session.sandbox_id, e->notify.proc_fd, req,
		      SANDBOX_NOTIFY_ERRNO);
	/* It waits for us, so its number is nobody else's; else it may be. */
	if (ioctl(e->notify.fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &req->id) < 0)
		notify_forget_who(&rec, req);
	pipeline_feed(e->pipeline, &rec, sizeof(rec));
}

static void answer(struct engine *e, const struct seccomp_notif *req)
{
	union response u = { 0 };

	u.resp.id = req->id;
	u.resp.error = -SANDBOX_NOTIFY_ERRNO;
	if (ioctl(e->notify.fd, SECCOMP_IOCTL_NOTIF_SEND, &u.resp) < 0 && errno == ENOENT)
		notify_taken_back(&e->notify.state, req);
}

void engine_notify_read(struct engine *e)
{
	for (int i = 0; i < NOTIFY_TURN && e->notify.fd >= 0; i++) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		union request u;

		if (notify_wait(&e->notify.state, now) || !receive(e, &u))
			return;
		notify_took(&e->notify.state, now);
		if (!notify_is_repeat(&e->notify.state, &u.req))
			tell(e, &u.req);
		answer(e, &u.req);
	}
}

void engine_notify_free(struct engine *e)
{
	if (e->notify.fd >= 0)
		close(take_fd(e->notify.fd));
	if (e->notify.proc_fd >= 0)
		close(take_fd(e->notify.proc_fd));
}
