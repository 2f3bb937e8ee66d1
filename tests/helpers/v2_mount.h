/* SPDX-License-Identifier: Apache-2.0 */
/* For test programs that make control groups of their own. */
#ifndef WARDER_TESTS_HELPERS_V2_MOUNT_H
#define WARDER_TESTS_HELPERS_V2_MOUNT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where cgroup v2 is mounted. Ends the program, before it has made anything, where it is not. */
static inline const char *v2_mount(void)
{
	static char path[256];
	char line[512], type[64];
	FILE *f = fopen("/proc/self/mounts", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %255s %63s", path, type) == 2 &&
		    strcmp(type, "cgroup2") == 0) {
			fclose(f);
			return path;
		}
	fprintf(stderr, "no cgroup v2 mount\n");
	exit(3);
}

#endif
