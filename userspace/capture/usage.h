/* SPDX-License-Identifier: Apache-2.0 */
/* How full the kernel's tables are, and what memory they take: of this process or of another one, by the
 * descriptors that it has (proc(5), /proc/PID/fdinfo). Walks each table, so it is for when somebody asks. */
#ifndef WARDER_CAPTURE_USAGE_H
#define WARDER_CAPTURE_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define CAPTURE_MAPS_MAX 48

struct capture_map {
	char name[16];
	uint32_t id;  /* the kernel's */
	bool is_ring; /* used and max are bytes; else entries */
	uint64_t
		used; /* a table that forgets its oldest entries may stay full: that is not a loss */
	uint64_t max;
	uint64_t bytes; /* of kernel memory */
};

struct capture_usage {
	struct capture_map maps[CAPTURE_MAPS_MAX]; /* by name; those that can fill up */
	size_t maps_n;
	uint64_t map_bytes;	/* of all maps, those of fixed content included */
	uint64_t program_bytes; /* of all programs, as loaded and as compiled */
};

/* Root only. -ESRCH: no such process; -ENOENT: it has no maps of BPF. */
int capture_usage(pid_t pid, struct capture_usage *ret, struct err *err);
/* Count anew, the same maps. One that is gone keeps its numbers. */
void capture_usage_again(struct capture_usage *u);

/* ---- for the tests ---- */

struct usage_fd {
	bool is_map, is_program;
	uint32_t id;
	uint64_t bytes;
};

/* What the fdinfo of a descriptor says. false: it is none of BPF's maps and programs. */
bool usage_fdinfo(struct str text, struct usage_fd *ret);

#endif
