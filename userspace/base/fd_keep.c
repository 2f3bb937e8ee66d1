// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/fd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

int fd_keep_only(int *keep, size_t n)
{
	unsigned next = 3;

	if (n)
		qsort(keep, n, sizeof(*keep), compare);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < (int)next)
			continue; /* absent (-1), standard, or the same again */
		if ((unsigned)keep[i] > next && close_range(next, (unsigned)keep[i] - 1, 0) < 0)
			return -errno;
		next = (unsigned)keep[i] + 1;
	}
	return close_range(next, UINT_MAX, 0) < 0 ? -errno : 0;
}
