/* SPDX-License-Identifier: Apache-2.0 */
/* The front's connections: who has how many, and since when one waits for its client. */
#ifndef WARDER_API_SEATS_H
#define WARDER_API_SEATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/api/front.h"

enum seat_state { SEAT_FREE, SEAT_HEAD, SEAT_BODY, SEAT_WORKS };

struct seat {
	enum seat_state state;
	int fd;
	uid_t uid;
	pid_t pid;
	uint64_t since; /* CLOCK_MONOTONIC: of HEAD the beginning, of BODY the last byte */
};

struct seats {
	pthread_mutex_t lock;
	struct seat v[API_CONNECTIONS_MAX];
};

void seats_init(struct seats *s);
/* For a new connection. -EUSERS: this user has too many; -EBUSY: all are taken. */
int seats_take(struct seats *s, int fd, uid_t uid, pid_t pid, uint64_t now);
/* Not started after all, or closed: before its descriptor is. */
void seats_leave(struct seats *s, int fd);
void seats_set(struct seats *s, int fd, enum seat_state state, uint64_t now);
bool seats_who(struct seats *s, int fd, uid_t *ret_uid, pid_t *ret_pid);
/* Shut those down whose client lets wait too long; `all_idle`: also who has no request under way. Returns how many
 * there are. */
size_t seats_look(struct seats *s, uint64_t now, bool all_idle);

#endif
