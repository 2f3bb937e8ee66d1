// SPDX-License-Identifier: Apache-2.0
/* Removing what killed warders left behind. A leaf whose lock can be had has no owner. */
#include "runtime/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define SWEEP_MS 2000 /* for one leaf */

/* A v1 directory as the leaf's attribute names it. Only what we could have made ourselves is
 * believed: right name, cgroup file system. */
static void sweep_v1(const char *path, const char *session, uint64_t end)
{
	char name[NAME_MAX + 16];
	const char *base = strrchr(path, '/');
	struct statfs fs;

	snprintf(name, sizeof(name), CGROUP_V1_PREFIX "%s", session);
	if (!base || strcmp(base + 1, name) != 0 || statfs(path, &fs) < 0 ||
	    fs.f_type != CGROUP_SUPER_MAGIC)
		return;
	cgroup_remove_dir(AT_FDCWD, path, end);
}

static void sweep_v1_all(int leaf, const char *session, uint64_t end)
{
	char text[CONTROLLER_COUNT * CGROUP_PATH_MAX + 1];
	ssize_t n = fgetxattr(leaf, CGROUP_ATTR_V1, text, sizeof(text) - 1);
	char *save = NULL;

	if (n <= 0)
		return;
	text[n] = 0;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		sweep_v1(line, session, end);
}

/* 1 = removed, 0 = it lives, -errno. */
static int sweep_leaf(int parent, const char *v2, const char *session)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + SWEEP_MS * NSEC_PER_MSEC;
	struct cgroup c;
	int r;

	cgroup_none(&c);
	c.leaf = openat(parent, session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (c.leaf < 0)
		return errno == ENOENT ? 0 : -errno;
	if (flock(c.leaf, LOCK_EX | LOCK_NB) < 0) {
		close(c.leaf);
		return 0;
	}
	snprintf(c.path, sizeof(c.path), "%s/" CGROUP_PARENT "/%s", v2, session);
	c.kill = openat(c.leaf, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	c.freeze = openat(c.leaf, "cgroup.freeze", O_RDWR | O_CLOEXEC);
	c.events = openat(c.leaf, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (c.freeze >= 0) /* a frozen sandbox whose warder died */
		(void)!pwrite(c.freeze, "0", 1, 0);
	r = cgroup_kill(&c, -1, SWEEP_MS);
	if (r == 0)
		sweep_v1_all(c.leaf, session, end);
	if (r == 0)
		r = cgroup_remove(&c);
	else
		cgroup_close(&c);
	return r < 0 ? r : 1;
}

int cgroup_sweep(const struct host *h, struct err *err)
{
	char path[HOST_PATH_MAX + 32];
	auto_dir DIR *dir = NULL;
	auto_close int parent = -1;
	struct dirent *d;
	int removed = 0, r = 0;

	if (!h->v2[0])
		return err_set(err, ENOENT, "no cgroup v2 hierarchy is mounted");
	snprintf(path, sizeof(path), "%s/" CGROUP_PARENT, h->v2);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : err_set(err, errno, "cgroup '%s': %m", path);
	parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || flock(parent, LOCK_EX) < 0)
		return err_set(err, errno, "cgroup '%s': lock: %m", path);
	while ((d = readdir(dir))) {
		int k;

		if (d->d_type != DT_DIR || d->d_name[0] == '.')
			continue;
		k = sweep_leaf(parent, h->v2, d->d_name);
		if (k < 0)
			r = err_set(err, -k, "cgroup '%s/%s': cannot be removed: %m", path,
				    d->d_name);
		else
			removed += k;
	}
	cgroup_remove_parent(h->v2);
	return r < 0 ? r : removed;
}
