// SPDX-License-Identifier: Apache-2.0
#include "userspace/capture/selftest_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define NAME	     "warder-selftest-"
#define MEMORY	     "4194304"
#define REMOVE_TRIES 200 /* of 10 ms: a process that ended keeps its cgroup for a moment */
#define OLD_S	     10

struct mounts {
	char v2[256], memory[256];
};

static void find_mounts(struct mounts *m)
{
	auto_file FILE *f = fopen("/proc/self/mounts", "re");
	char line[1024], path[256], type[64], options[512];

	memset(m, 0, sizeof(*m));
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %255s %63s %511s", path, type, options) != 3)
			continue;
		if (!strcmp(type, "cgroup2") && !m->v2[0])
			snprintf(m->v2, sizeof(m->v2), "%s", path);
		if (!strcmp(type, "cgroup") && strstr(options, "memory") && !m->memory[0])
			snprintf(m->memory, sizeof(m->memory), "%s", path);
	}
}

static void remove_dir(const char *path)
{
	const struct timespec moment = { .tv_nsec = 10000000 };

	for (int i = 0; i < REMOVE_TRIES && rmdir(path) < 0 && errno == EBUSY; i++)
		nanosleep(&moment, NULL);
}

/* Its owner holds a lock while it lives; one that has just been made has none yet. */
static bool is_left_over(int parent, const char *name)
{
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
	       st.st_ctime + OLD_S < time(NULL);
}

static void sweep(const char *parent)
{
	auto_dir DIR *dir = *parent ? opendir(parent) : NULL;
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (!strncmp(de->d_name, NAME, sizeof(NAME) - 1) &&
		    is_left_over(dirfd(dir), de->d_name))
			unlinkat(dirfd(dir), de->d_name, AT_REMOVEDIR);
}

static int make(char ret_path[PATH_MAX], const char *parent, const char *suffix)
{
	auto_close int fd = -1;

	/* Another pid namespace may have the same number. */
	snprintf(ret_path, PATH_MAX, "%s/" NAME "%d-%llx%s", parent, (int)getpid(),
		 (unsigned long long)clock_boot_ns(), suffix);
	if (mkdir(ret_path, 0755) < 0) {
		int e = errno;

		ret_path[0] = 0;
		return -e;
	}
	fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	return take_fd(fd);
}

/* With little memory and no swap: v2 where the controller is there, else v1. */
static void make_limited(struct selftest_group *g, const struct mounts *m)
{
	auto_close int policy = open("/proc/sys/vm/panic_on_oom", O_RDONLY | O_CLOEXEC);
	auto_close int dir = -1;
	char text[4] = "";
	int v2;

	/* A host that stops when memory runs out somewhere must not be tried. */
	if (policy < 0 || read(policy, text, 1) != 1 || text[0] != '0')
		return;
	dir = make(g->limited, m->v2, "-oom");
	v2 = dir >= 0 && file_write_at(dir, "memory.max", MEMORY) == 0;
	if (v2) {
		(void)!file_write_at(dir, "memory.swap.max", "0");
		g->limited_tasks = openat(dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
		return;
	}
	if (g->limited[0])
		rmdir(g->limited);
	g->limited[0] = 0;
	if (dir >= 0)
		close(take_fd(dir));
	if (!m->memory[0])
		return;
	dir = make(g->limited, m->memory, "-oom");
	if (dir < 0 || file_write_at(dir, "memory.limit_in_bytes", MEMORY) < 0)
		return;
	(void)!file_write_at(dir, "memory.memsw.limit_in_bytes", MEMORY);
	g->limited_tasks = openat(dir, "tasks", O_WRONLY | O_CLOEXEC);
}

int selftest_group_open(struct selftest_group *ret, bool limited, struct err *err)
{
	struct mounts m;
	char path[512];
	int fd;

	find_mounts(&m);
	if (!m.v2[0])
		return err_set(err, ENOENT, "no cgroup v2 hierarchy is mounted");
	sweep(m.v2);
	*ret = (struct selftest_group){ .leaf = -1, .outside = -1, .limited_tasks = -1 };
	fd = make(ret->path, m.v2, "");
	if (fd < 0) {
		int r = err_set(err, fd, "a cgroup in '%s': %s", m.v2, strerror(-fd));

		selftest_group_close(ret);
		return r;
	}
	ret->leaf = fd;
	if (!limited)
		return 0;
	snprintf(path, sizeof(path), "%s/cgroup.procs", m.v2);
	ret->outside = open(path, O_WRONLY | O_CLOEXEC);
	sweep(m.memory);
	make_limited(ret, &m);
	return 0;
}

void selftest_group_close(struct selftest_group *g)
{
	if (g->limited_tasks >= 0)
		close(g->limited_tasks);
	if (g->outside >= 0)
		close(g->outside);
	if (g->limited[0])
		remove_dir(g->limited);
	if (g->path[0])
		remove_dir(g->path);
	if (g->leaf >= 0)
		close(g->leaf);
}
