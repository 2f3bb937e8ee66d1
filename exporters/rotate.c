// SPDX-License-Identifier: Apache-2.0
#include "exporters/rotate.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/err.h"

#define STAMP	    "%Y%m%dT%H%M%S"
#define STAMP_SHAPE "00000000T000000.000000Z" /* names of one clock are never used again */
#define STAMP_LEN   (sizeof(STAMP_SHAPE) - 1)
#define SAME_TIME   1000  /* files rotated at one time, should the clock stand */
#define ROTATED_MAX 10000 /* looked at when old ones are removed */

static uint64_t age_of(struct rotate_seen *seen, const struct statx *st, uint64_t real_ns,
		       uint64_t mono_ns)
{
	uint64_t born = (uint64_t)st->stx_btime.tv_sec * NSEC_PER_SEC + st->stx_btime.tv_nsec;

	if (seen->ino != st->stx_ino || seen->born_ns != born)
		*seen = (struct rotate_seen){
			.ino = st->stx_ino,
			.born_ns = born,
			/* A clock that was set back since: counts from now. */
			.age_ns = real_ns > born ? real_ns - born : 0,
			.at = mono_ns
		};
	return seen->age_ns + (mono_ns - seen->at);
}

int rotate_is_due(const struct rotate *r, struct rotate_seen *seen, int fd, size_t more,
		  uint64_t real_ns, uint64_t mono_ns)
{
	struct statx st;
	uint64_t age = 0;

	if (!r->size && !r->age_ns)
		return 0;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_INO | STATX_BTIME, &st) < 0)
		return -errno;
	if (r->age_ns && (st.stx_mask & STATX_BTIME))
		age = age_of(seen, &st, real_ns, mono_ns);
	if (!st.stx_size)
		return 0;
	if (r->size && st.stx_size + more > r->size)
		return 1;
	return r->age_ns && age >= r->age_ns;
}

static int move(const char *path, uint64_t real_ns)
{
	time_t sec = (time_t)(real_ns / NSEC_PER_SEC);
	char stamp[32], to[PATH_MAX];
	struct tm tm;

	gmtime_r(&sec, &tm);
	strftime(stamp, sizeof(stamp), STAMP, &tm);
	for (int i = 0; i < SAME_TIME; i++) {
		int n = snprintf(to, sizeof(to), i ? "%s.%s.%06uZ-%d" : "%s.%s.%06uZ", path, stamp,
				 (unsigned)(real_ns % NSEC_PER_SEC / 1000), i);

		if ((size_t)n >= sizeof(to))
			return -ENAMETOOLONG;
		if (renameat2(AT_FDCWD, path, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
			return 1;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Is `name` one of ours: base.20260131T123456.123456Z[-N]? */
static bool is_rotated(const char *name, const char *base)
{
	size_t n = strlen(base);
	const char *p = name + n + 1;

	if (strncmp(name, base, n) || name[n] != '.' || strlen(p) < STAMP_LEN)
		return false;
	for (size_t i = 0; i < STAMP_LEN; i++)
		if (STAMP_SHAPE[i] == '0' ? !isdigit((unsigned char)p[i]) : p[i] != STAMP_SHAPE[i])
			return false;
	p += STAMP_LEN;
	return !*p || (*p == '-' && p[1] && p[1 + strspn(p + 1, "0123456789")] == 0);
}

/* By age: the stamp, then the number behind it. */
static int by_age(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

static void remove_old(const struct rotate *r, const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char folder[PATH_MAX], *names[ROTATED_MAX];
	auto_dir DIR *dir = NULL;
	struct dirent *de;
	size_t n = 0;

	snprintf(folder, sizeof(folder), "%.*s", base == path ? 1 : (int)(base - path),
		 base == path ? "." : path);
	dir = opendir(folder);
	while (dir && n < ROTATED_MAX && (de = readdir(dir))) {
		if (!is_rotated(de->d_name, base))
			continue;
		names[n] = strdup(de->d_name);
		n += names[n] != NULL;
	}
	qsort(names, n, sizeof(*names), by_age);
	for (size_t i = 0; i < n; i++) {
		if (i + r->keep < n)
			unlinkat(dirfd(dir), names[i], 0); /* the next rotation tries again */
		free(names[i]);
	}
}

int rotate_now(const struct rotate *r, const char *path, int fd, uint64_t real_ns)
{
	struct stat have, named;
	int k;

	if (fstat(fd, &have) < 0 || stat(path, &named) < 0)
		return -errno;
	if (have.st_ino != named.st_ino || have.st_dev != named.st_dev)
		return 0; /* another process was faster */
	k = move(path, real_ns);
	if (k == 1 && r->keep)
		remove_old(r, path);
	return k;
}
