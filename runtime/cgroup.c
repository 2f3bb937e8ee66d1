// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define PARENT_TRIES  8
#define CPU_PERIOD_US 100000
#define REMOVE_MS     2000 /* dying tasks keep a cgroup busy for a moment */

void cgroup_none(struct cgroup *c)
{
	*c = (struct cgroup){ .leaf = -1, .kill = -1, .freeze = -1, .events = -1 };
	for (int i = 0; i < CONTROLLER_COUNT; i++)
		c->v1_fd[i] = c->v1_tasks[i] = -1;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* `<dir>/cgroup.subtree_control` += name. Works if it is there already. */
static int enable(const char *dir, const char *name)
{
	char path[HOST_PATH_MAX + 64], word[32];

	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", dir);
	snprintf(word, sizeof(word), "+%s", name);
	return file_write_at(AT_FDCWD, path, word);
}

/* Our directory in the v2 hierarchy, with the controllers it can have handed down to the leaves. The
 * root's own list is touched only where a controller is missing from it. */
static int parent_open(struct cgroup *c, const struct host *h, int *ret_fd, struct err *err)
{
	char path[HOST_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/" CGROUP_PARENT, h->v2);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_set(err, errno, "cgroup '%s': cannot be made: %m", path);
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		if (h->controller[i] != CONTROLLER_V2)
			continue;
		c->where[i] = CONTROLLER_V2;
		if (enable(path, controller_names[i]) < 0 &&
		    (enable(h->v2, controller_names[i]) < 0 ||
		     enable(path, controller_names[i]) < 0))
			c->where[i] = CONTROLLER_ABSENT;
	}
	fd = open_dir(path);
	if (fd < 0)
		return err_set(err, errno, "cgroup '%s': %m", path);
	*ret_fd = fd;
	return 0;
}

/* Makes and locks the leaf. The parent is locked meanwhile, so that a sweep cannot take a leaf for
 * an orphan before its owner has locked it. */
static int leaf_make(struct cgroup *c, int parent, const char *session, struct err *err)
{
	struct stat st;
	int r = 0;

	if (flock(parent, LOCK_SH) < 0)
		return err_set(err, errno, "cgroup '%s': lock: %m", c->path);
	if (mkdirat(parent, session, 0755) < 0) {
		r = err_set(err, errno, "cgroup '%s': cannot be made: %m", c->path);
	} else {
		c->leaf = openat(parent, session, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (c->leaf < 0 || flock(c->leaf, LOCK_EX | LOCK_NB) < 0 ||
		    fstat(c->leaf, &st) < 0) {
			r = err_set(err, errno, "cgroup '%s': %m", c->path);
			unlinkat(parent, session, AT_REMOVEDIR);
			close_one(&c->leaf);
		} else {
			c->id = st.st_ino;
		}
	}
	flock(parent, LOCK_UN);
	return r;
}

static int v1_make(struct cgroup *c, const struct host *h, int i, const char *session,
		   struct err *err)
{
	snprintf(c->v1[i], sizeof(c->v1[i]), "%s/" CGROUP_V1_PREFIX "%s", h->v1[i], session);
	if (mkdir(c->v1[i], 0755) < 0) {
		int e = errno;
		char path[sizeof(c->v1[i])];

		memcpy(path, c->v1[i], sizeof(path));
		c->v1[i][0] = 0;
		return err_set(err, e, "cgroup '%s': cannot be made: %m", path);
	}
	c->v1_fd[i] = open_dir(c->v1[i]);
	if (c->v1_fd[i] >= 0)
		c->v1_tasks[i] = openat(c->v1_fd[i], "tasks", O_WRONLY | O_CLOEXEC);
	if (c->v1_tasks[i] < 0)
		return err_set(err, errno, "cgroup '%s': %m", c->v1[i]);
	c->where[i] = CONTROLLER_V1;
	return 0;
}

/* Where a later sweep finds the v1 directories. Without it they would outlive a killed warder. */
static int v1_note(const struct cgroup *c, struct err *err)
{
	char text[CONTROLLER_COUNT * sizeof(c->v1[0])];
	size_t n = 0;

	for (int i = 0; i < CONTROLLER_COUNT; i++)
		if (c->v1[i][0])
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n", c->v1[i]);
	if (n && fsetxattr(c->leaf, CGROUP_ATTR_V1, text, n, 0) < 0)
		return err_set(err, errno, "cgroup '%s': attribute " CGROUP_ATTR_V1 ": %m",
			       c->path);
	return 0;
}

static int put(const struct cgroup *c, int dir, const char *file, const char *value,
	       struct err *err)
{
	int r = file_write_at(dir, file, value);

	if (r < 0)
		return err_set(err, -r, "cgroup '%s': writing %s to %s: %m", c->path, value, file);
	return 0;
}

static int put_u64(const struct cgroup *c, int dir, const char *file, uint64_t v, struct err *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return put(c, dir, file, text, err);
}

static int limit_memory(const struct cgroup *c, uint64_t v, struct err *err)
{
	int dir = c->v1_fd[CONTROLLER_MEMORY];
	int r;

	if (c->where[CONTROLLER_MEMORY] == CONTROLLER_V1) {
		r = put_u64(c, dir, "memory.limit_in_bytes", v, err);
		if (r == 0 && faccessat(dir, "memory.memsw.limit_in_bytes", W_OK, 0) == 0)
			r = put_u64(c, dir, "memory.memsw.limit_in_bytes", v, err);
		return r;
	}
	r = put_u64(c, c->leaf, "memory.max", v, err);
	if (r == 0 && faccessat(c->leaf, "memory.swap.max", W_OK, 0) == 0)
		r = put(c, c->leaf, "memory.swap.max", "0", err);
	if (r == 0) /* half a sandbox is of no use to anyone */
		r = put(c, c->leaf, "memory.oom.group", "1", err);
	return r;
}

static int limit_pids(const struct cgroup *c, uint64_t v, struct err *err)
{
	bool v1 = c->where[CONTROLLER_PIDS] == CONTROLLER_V1;

	/* One more for init, which the payload did not ask for. */
	return put_u64(c, v1 ? c->v1_fd[CONTROLLER_PIDS] : c->leaf, "pids.max", v + 1, err);
}

static int limit_cpu(const struct cgroup *c, uint64_t milli, struct err *err)
{
	uint64_t quota = milli * CPU_PERIOD_US / 1000;
	char text[64];

	if (c->where[CONTROLLER_CPU] == CONTROLLER_V1)
		return put_u64(c, c->v1_fd[CONTROLLER_CPU], "cpu.cfs_quota_us", quota, err);
	snprintf(text, sizeof(text), "%llu %d", (unsigned long long)quota, CPU_PERIOD_US);
	return put(c, c->leaf, "cpu.max", text, err);
}

static int limits_set(struct cgroup *c, const struct host *h, const char *session,
		      const struct sandbox_limits *l, struct err *err)
{
	static int (*const set[])(const struct cgroup *, uint64_t,
				  struct err *) = { limit_memory, limit_pids, limit_cpu };
	const uint64_t asked[CONTROLLER_COUNT] = { l->memory, l->pids, l->cpu_milli };
	int r = 0;

	for (int i = 0; r == 0 && i < CONTROLLER_COUNT; i++)
		if (asked[i] && h->controller[i] == CONTROLLER_V1)
			r = v1_make(c, h, i, session, err);
	if (r == 0)
		r = v1_note(c, err);
	for (int i = 0; r == 0 && i < CONTROLLER_COUNT; i++)
		if (asked[i] && c->where[i] != CONTROLLER_ABSENT)
			r = set[i](c, asked[i], err);
	return r;
}

/* The parent goes with its last leaf, so another warder may take it away between our two steps. */
static int leaf_open(struct cgroup *c, const struct host *h, const char *session, struct err *err)
{
	int r = -ENOENT;

	for (int i = 0; r == -ENOENT && i < PARENT_TRIES; i++) {
		auto_close int parent = -1;

		r = parent_open(c, h, &parent, err);
		if (r == 0)
			r = leaf_make(c, parent, session, err);
	}
	return r;
}

int cgroup_create(struct cgroup *c, const struct host *h, const char *session,
		  const struct sandbox_limits *l, struct err *err)
{
	int r;

	cgroup_none(c);
	c->v2 = h->v2;
	snprintf(c->path, sizeof(c->path), "%s/" CGROUP_PARENT "/%s", h->v2, session);
	r = leaf_open(c, h, session, err);
	if (r == 0)
		r = limits_set(c, h, session, l, err);
	if (r < 0) {
		cgroup_remove(c);
		return r;
	}
	c->kill = openat(c->leaf, "cgroup.kill", O_WRONLY | O_CLOEXEC);	  /* 5.14 */
	c->freeze = openat(c->leaf, "cgroup.freeze", O_RDWR | O_CLOEXEC); /* 5.2 */
	c->events = openat(c->leaf, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (c->events < 0) {
		r = err_set(err, errno, "cgroup '%s': cgroup.events: %m", c->path);
		cgroup_remove(c);
		return r;
	}
	return 0;
}

bool cgroup_is_populated(const struct cgroup *c)
{
	char text[256];
	ssize_t n = c->events >= 0 ? pread(c->events, text, sizeof(text) - 1, 0) : -1;

	if (n <= 0)
		return false;
	text[n] = 0;
	return strstr(text, "populated 1") != NULL;
}

/* Kernels without cgroup.kill: nobody can fork while frozen, so one pass finds them all. */
static int kill_each(struct cgroup *c)
{
	auto_free char *text = NULL;
	int r;

	if (c->freeze >= 0)
		(void)!pwrite(c->freeze, "1", 1, 0);
	r = file_read_at(c->leaf, "cgroup.procs", 1u << 20, &text, NULL);
	for (char *p = text; r == 0 && p && *p;) {
		char *end;
		long pid = strtol(p, &end, 10);

		if (end == p)
			break;
		if (pid > 0)
			kill((pid_t)pid, SIGKILL);
		p = end + strspn(end, "\n");
	}
	if (c->freeze >= 0)
		(void)!pwrite(c->freeze, "0", 1, 0);
	return r;
}

int cgroup_kill_now(struct cgroup *c)
{
	if (c->leaf < 0)
		return 0;
	if (c->kill >= 0)
		return pwrite(c->kill, "1", 1, 0) == 1 ? 0 : -errno;
	return kill_each(c);
}

int cgroup_kill(struct cgroup *c, int leader, int timeout_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NSEC_PER_MSEC;

	if (c->leaf < 0)
		return 0;
	for (;;) {
		/* The leader's end wakes us at once; the cgroup's event comes by a kernel worker,
		 * which a busy host may run milliseconds later. */
		struct pollfd pfd[] = { { .fd = c->events, .events = POLLPRI },
					{ .fd = leader, .events = POLLIN } };
		uint64_t now;
		int r;

		if (!cgroup_is_populated(c))
			return 0;
		r = cgroup_kill_now(c);
		if (r < 0)
			return r;
		now = clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return -ETIMEDOUT;
		/* A change between the read and the poll is not lost; the short wait covers a
		 * fork that was in flight when kill was written. */
		poll(pfd, 2, (int)MIN((end - now) / NSEC_PER_MSEC + 1, 50));
		if (pfd[1].revents)
			leader = -1;
	}
}

int cgroup_remove_dir(int dirfd, const char *path, uint64_t end)
{
	while (unlinkat(dirfd, path, AT_REMOVEDIR) < 0) {
		struct timespec nap = { .tv_nsec = 500000 };

		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_ns(CLOCK_MONOTONIC) >= end)
			return -errno;
		nanosleep(&nap, NULL);
	}
	return 0;
}

void cgroup_remove_parent(const char *v2)
{
	char path[HOST_PATH_MAX + 32];

	snprintf(path, sizeof(path), "%s/" CGROUP_PARENT, v2);
	rmdir(path); /* busy while others have leaves in it */
}

void cgroup_close(struct cgroup *c)
{
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		close_one(&c->v1_fd[i]);
		close_one(&c->v1_tasks[i]);
	}
	close_one(&c->kill);
	close_one(&c->freeze);
	close_one(&c->events);
	close_one(&c->leaf);
}

int cgroup_remove(struct cgroup *c)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + REMOVE_MS * NSEC_PER_MSEC;
	int r = 0;

	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		int k = c->v1[i][0] ? cgroup_remove_dir(AT_FDCWD, c->v1[i], end) : 0;

		if (k < 0)
			r = k;
	}
	/* The leaf last: it knows where the others are. */
	if (r == 0 && c->leaf >= 0)
		r = cgroup_remove_dir(AT_FDCWD, c->path, end);
	if (r == 0 && c->leaf >= 0 && c->v2)
		cgroup_remove_parent(c->v2);
	cgroup_close(c);
	return r;
}
