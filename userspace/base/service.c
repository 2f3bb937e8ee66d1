// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/service.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

#define TELL_S 2 /* at most, for a supervisor that is busy */

static int dial(const char *path)
{
	const struct timeval wait = { .tv_sec = TELL_S };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	auto_close int fd = -1;

	/* "@name": an abstract one. */
	if ((path[0] != '/' && path[0] != '@') || n >= sizeof(at.sun_path))
		return -1;
	memcpy(at.sun_path, path, n);
	if (path[0] == '@')
		at.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    connect(fd, (struct sockaddr *)&at,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		return -1;
	return take_fd(fd);
}

static uint64_t number(const char *text)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = text ? strtoull(text, &end, 10) : 0;
	return text && !errno && *text >= '0' && *text <= '9' && !*end ? v : 0;
}

void service_init(struct service *s)
{
	const char *path = getenv("NOTIFY_SOCKET"), *pid = getenv("WATCHDOG_PID");
	uint64_t usec = number(getenv("WATCHDOG_USEC"));

	*s = (struct service){ .fd = path ? dial(path) : -1 };
	/* Twice in that time: once may be late. */
	if (s->fd >= 0 && usec < UINT64_MAX / NSEC_PER_USEC &&
	    (!pid || number(pid) == (uint64_t)getpid()))
		s->every_ns = usec * NSEC_PER_USEC / 2;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

void service_tell(const struct service *s, const char *state)
{
	if (s->fd >= 0)
		(void)!send(s->fd, state, strlen(state), MSG_NOSIGNAL);
}

uint64_t service_alive(struct service *s, uint64_t now)
{
	if (!s->every_ns)
		return UINT64_MAX;
	if (now >= s->next) {
		(void)!send(s->fd, "WATCHDOG=1", 10, MSG_NOSIGNAL | MSG_DONTWAIT);
		s->next = now + s->every_ns;
	}
	return s->next;
}

void service_done(struct service *s)
{
	if (s->fd >= 0)
		close(take_fd(s->fd));
}
