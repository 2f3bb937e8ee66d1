/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor of services is told: ready, alive, stopping. sd_notify(3) by its documented datagrams; libsystemd
 * would bring compression and cryptography of its own into a process that is root. */
#ifndef WARDER_BASE_SERVICE_H
#define WARDER_BASE_SERVICE_H

#include <stdint.h>

struct service {
	int fd;		   /* -1: nobody wants to know */
	uint64_t every_ns; /* 0: nobody asks whether we are alive */
	uint64_t next;
};

/* By NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which are taken out of the environment: what we start has no say. */
void service_init(struct service *s);
/* "READY=1"; lines with several. */
void service_tell(const struct service *s, const char *state);
/* We are alive, if it is time to say so. Returns when it is again (CLOCK_MONOTONIC), UINT64_MAX = never. */
uint64_t service_alive(struct service *s, uint64_t now);
void service_done(struct service *s);

#endif
