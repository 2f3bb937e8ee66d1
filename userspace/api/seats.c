// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/seats.h"

#include <errno.h>
#include <sys/socket.h>

#include "userspace/base/clock.h"

void seats_init(struct seats *s)
{
	*s = (struct seats){ .lock = PTHREAD_MUTEX_INITIALIZER };
}

static struct seat *find(struct seats *s, int fd)
{
	for (int i = 0; i < API_CONNECTIONS_MAX; i++)
		if (s->v[i].state != SEAT_FREE && s->v[i].fd == fd)
			return &s->v[i];
	return NULL;
}

int seats_take(struct seats *s, int fd, uid_t uid, pid_t pid, uint64_t now)
{
	int room = 0, own = 0, r = 0;
	struct seat *free = NULL;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < API_CONNECTIONS_MAX; i++) {
		if (s->v[i].state == SEAT_FREE) {
			free = &s->v[i];
			room++;
		} else if (s->v[i].uid == uid) {
			own++;
		}
	}
	if (uid && own >= API_OF_ONE_UID_MAX)
		r = -EUSERS;
	else if (!room || (uid && room <= API_FOR_ROOT))
		r = -EBUSY;
	else
		*free = (struct seat){ SEAT_HEAD, fd, uid, pid, now };
	pthread_mutex_unlock(&s->lock);
	return r;
}

void seats_leave(struct seats *s, int fd)
{
	struct seat *seat;

	pthread_mutex_lock(&s->lock);
	seat = find(s, fd);
	if (seat)
		seat->state = SEAT_FREE;
	pthread_mutex_unlock(&s->lock);
}

void seats_set(struct seats *s, int fd, enum seat_state state, uint64_t now)
{
	struct seat *seat;

	pthread_mutex_lock(&s->lock);
	seat = find(s, fd);
	if (seat) {
		seat->state = state;
		seat->since = now;
	}
	pthread_mutex_unlock(&s->lock);
}

bool seats_who(struct seats *s, int fd, uid_t *ret_uid, pid_t *ret_pid)
{
	struct seat *seat;

	pthread_mutex_lock(&s->lock);
	seat = find(s, fd);
	if (seat) {
		*ret_uid = seat->uid;
		*ret_pid = seat->pid;
	}
	pthread_mutex_unlock(&s->lock);
	return seat != NULL;
}

size_t seats_look(struct seats *s, uint64_t now, bool all_idle)
{
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < API_CONNECTIONS_MAX; i++) {
		struct seat *seat = &s->v[i];
		uint64_t ms = (now - seat->since) / NSEC_PER_MSEC;

		if (seat->state == SEAT_FREE)
			continue;
		n++;
		if ((seat->state == SEAT_HEAD && (all_idle || ms > API_HEAD_MS)) ||
		    (seat->state == SEAT_BODY && ms > API_BODY_MS))
			shutdown(seat->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&s->lock);
	return n;
}
