/* SPDX-License-Identifier: Apache-2.0 */
/* Rotation of a file that several processes append to, each under flock(LOCK_EX). */
#ifndef WARDER_EXPORTERS_ROTATE_H
#define WARDER_EXPORTERS_ROTATE_H

#include <stddef.h>
#include <stdint.h>

struct rotate {
	uint64_t size;	 /* bytes a file may reach; 0 = no limit */
	uint64_t age_ns; /* since it was made; 0 = no limit */
	uint64_t keep;	 /* rotated files to keep; 0 = all */
};

/* How old a file was when it was first looked at; from then on CLOCK_MONOTONIC says, so that a clock that is
 * set forth or back neither moves files away early nor keeps them for ever. Starts as zeroes. */
struct rotate_seen {
	uint64_t ino, born_ns;
	uint64_t age_ns, at; /* at: CLOCK_MONOTONIC */
};

/* Is it time to move the file away, before `more` bytes are put behind it? The lock is held. `real_ns`,
 * `mono_ns`: the time now by either clock. An empty file never is. */
int rotate_is_due(const struct rotate *r, struct rotate_seen *seen, int fd, size_t more,
		  uint64_t real_ns, uint64_t mono_ns);
/* Move `path`, which must still be the file behind fd (else nothing is done and 0 returned): it becomes
 * path.20260131T123456.123456Z, with -1, -2 ... behind it if need be; nothing is overwritten. Then remove the
 * oldest of these beyond `keep`. The lock is held. Returns 1 when it moved, -errno. */
int rotate_now(const struct rotate *r, const char *path, int fd, uint64_t real_ns);

#endif
