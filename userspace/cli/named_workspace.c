// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/named_workspace.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/file_lock.h"
#include "userspace/base/log.h"
#include "userspace/cli/workspace_disk.h"
#include "userspace/pipeline/run.h"

#define PATH_LEN 4096
#define KIND	 "workspaces"
#define LOCK_OF	 ".lock." /* beside the directory: what lies in it is the payload's */
#define DISK_OF	 ".disk."
#define MOVED_OF ".moved-"

static const char *lock_of(const char *name, char ret[WORKSPACE_NAME_MAX + sizeof(LOCK_OF)])
{
	snprintf(ret, WORKSPACE_NAME_MAX + sizeof(LOCK_OF), LOCK_OF "%.63s", name);
	return ret;
}

static int lock(int *ret_fd, int dir, const char *name, struct err *err)
{
	char file[WORKSPACE_NAME_MAX + sizeof(LOCK_OF)];
	auto_close int fd = -1;
	int r;

	lock_of(name, file);
	fd = openat(dir, file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, errno, "workspace '%s': lock: %m", name);
	r = file_lock_take(fd);
	if (r == -EBUSY)
		return err_set(err, EBUSY, "workspace '%s' is in use by another sandbox", name);
	if (r < 0)
		return err_set(err, -r, "workspace '%s': lock: %m", name);
	*ret_fd = take_fd(fd);
	return 0;
}

static int check_name(const char *name, struct err *err)
{
	return tenant_dir_name_is_good(name)
		       ? 0
		       : err_set(err, EINVAL,
				 "workspace '%.80s': a name of letters, digits, '.', '_' and '-', at most %d",
				 name, WORKSPACE_NAME_MAX);
}

static const char *disk_of(const char *name, char ret[WORKSPACE_NAME_MAX + sizeof(DISK_OF)])
{
	snprintf(ret, WORKSPACE_NAME_MAX + sizeof(DISK_OF), DISK_OF "%.63s", name);
	return ret;
}

/* One a process. */
static int held = -1;
static char mounted[PATH_LEN];

void named_workspace_release(void)
{
	if (*mounted)
		workspace_disk_trim(mounted);
	if (held >= 0)
		close(take_fd(held));
}

/* The disk before the directory: who is killed between the two leaves none without. One that was made where there are
 * no disks stays as it is. Locked. */
static int make(bool *ret_limited, int dir, const char *name, uint64_t size, struct err *err)
{
	char disk[WORKSPACE_NAME_MAX + sizeof(DISK_OF)];
	bool is_new = faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	uint64_t old, used;
	int r = 0;

	*ret_limited = workspace_disk_size(dir, disk_of(name, disk), &old, &used);
	if (!*ret_limited && is_new) {
		r = workspace_disk_make(dir, disk, size, err);
		*ret_limited = r == 0;
	}
	if (r == -EOPNOTSUPP) {
		log_warn("workspace '%s' has no limit: %s", name, err_text(err));
		*err = (struct err){ 0 };
		r = 0;
	}
	if (r == 0 && is_new && mkdirat(dir, name, 0700) < 0)
		r = err_set(err, errno, "%m");
	return r;
}

int named_workspace_take(char *ret_path, bool *ret_limited, const char *tenant, const char *name,
			 uint64_t size, struct err *err)
{
	char disk[WORKSPACE_NAME_MAX + sizeof(DISK_OF)];
	auto_close int dir = -1;
	int r = check_name(name, err);

	if (r == 0)
		r = tenant_dir_open(&dir, KIND, tenant, true, err);
	if (r == 0)
		r = lock(&held, dir, name, err);
	if (r < 0)
		return r;
	if ((size_t)snprintf(ret_path, PATH_LEN, "%s/workspaces/%s/%s", state_dir(), tenant,
			     name) >= PATH_LEN)
		return err_set(err, ENAMETOOLONG, "workspace '%s': path too long", name);
	r = make(ret_limited, dir, name, size, err);
	if (r == 0 && *ret_limited)
		r = workspace_disk_mount(dir, disk_of(name, disk), ret_path, size, err);
	if (r < 0)
		return err_wrap(err, r, "workspace '%s'", name);
	if (*ret_limited)
		snprintf(mounted, sizeof(mounted), "%s", ret_path);
	return 0;
}

uint64_t named_workspace_size(const char *tenant, const char *name)
{
	char disk[WORKSPACE_NAME_MAX + sizeof(DISK_OF)];
	auto_close int dir = -1;
	uint64_t size, used;

	return check_name(name, NULL) == 0 &&
			       tenant_dir_open(&dir, KIND, tenant, false, NULL) == 0 &&
			       workspace_disk_size(dir, disk_of(name, disk), &size, &used)
		       ? size
		       : 0;
}

/* ---- all of them ---- */

static bool is_in_use(int dir, const char *name)
{
	char file[WORKSPACE_NAME_MAX + sizeof(LOCK_OF)];
	auto_close int fd = openat(dir, lock_of(name, file), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && file_lock_is_taken(fd);
}

struct each {
	int (*fn)(void *arg, const struct named_workspace *w);
	void *arg;
};

static int each_of(void *arg, const char *tenant, int dir)
{
	const struct each *e = arg;
	int copy = openat(dir, ".", TENANT_DIR_FLAGS), r = 0;
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d && copy >= 0)
		close(copy);
	while (r == 0 && d && (de = readdir(d))) {
		char disk[WORKSPACE_NAME_MAX + sizeof(DISK_OF)];
		struct named_workspace w = { 0 };
		struct stat st;

		if (!tenant_dir_name_is_good(de->d_name) ||
		    fstatat(dir, de->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
			continue;
		snprintf(w.tenant, sizeof(w.tenant), "%s", tenant);
		snprintf(w.name, sizeof(w.name), "%.63s", de->d_name);
		w.in_use = is_in_use(dir, de->d_name);
		if (workspace_disk_size(dir, disk_of(w.name, disk), &w.size, &w.used))
			fstatat(dir, disk, &st, AT_SYMLINK_NOFOLLOW);
		w.changed_s = (uint64_t)st.st_mtime;
		r = e->fn(e->arg, &w);
	}
	return r;
}

int named_workspace_each(const char *tenant, int (*fn)(void *arg, const struct named_workspace *w),
			 void *arg, struct err *err)
{
	struct each e = { fn, arg };

	return tenant_dir_each(KIND, tenant, each_of, &e, err);
}

/* ---- removing one ---- */

/* All that lies in `dir` goes; what has something in it moves to `top` first, so that no depth that a payload could
 * build needs as many descriptors or as much stack. */
static int empty(int top, int dir, unsigned *moved)
{
	int copy = openat(dir, ".", TENANT_DIR_FLAGS), r = 0;
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d) {
		r = -errno;
		if (copy >= 0)
			close(copy);
		return r;
	}
	while (r == 0 && (de = readdir(d))) {
		char name[64];

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (unlinkat(dir, de->d_name, 0) == 0 ||
		    unlinkat(dir, de->d_name, AT_REMOVEDIR) == 0)
			continue;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		if (dir == top)
			continue; /* its turn comes */
		snprintf(name, sizeof(name), MOVED_OF "%u", (*moved)++);
		if (renameat(dir, de->d_name, top, name) < 0)
			r = -errno;
	}
	return r;
}

static int empty_all(int top)
{
	unsigned moved = 0;
	bool more = true;
	int r = 0;

	while (more && r == 0) {
		int copy = openat(top, ".", TENANT_DIR_FLAGS);
		auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
		struct dirent *de;

		if (!d && copy >= 0)
			close(copy);
		more = false;
		r = d ? empty(top, top, &moved) : -ENOMEM;
		while (r == 0 && (de = readdir(d))) {
			auto_close int dir = -1;

			if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
				continue;
			dir = openat(top, de->d_name, TENANT_DIR_FLAGS);
			if (dir < 0)
				continue;
			more = true;
			r = empty(top, dir, &moved);
		}
	}
	return r;
}

int named_workspace_remove(const char *tenant, const char *name, struct err *err)
{
	auto_close int dir = -1, locked = -1, top = -1;
	char file[WORKSPACE_NAME_MAX + sizeof(LOCK_OF)];
	char disk[WORKSPACE_NAME_MAX + sizeof(DISK_OF)];
	int r = check_name(name, err);

	if (r == 0)
		r = tenant_dir_open(&dir, KIND, tenant, false, err);
	if (r == -ENOENT)
		return err_set(err, ENOENT, "tenant '%s' has no workspace '%s'", tenant, name);
	if (r < 0)
		return r;
	top = openat(dir, name, TENANT_DIR_FLAGS);
	if (top < 0)
		return err_set(err, errno,
			       errno == ENOENT ? "tenant '%s' has no workspace '%s'"
					       : "tenant '%s': workspace '%s': %m",
			       tenant, name);
	r = lock(&locked, dir, name, err);
	if (r < 0)
		return r;
	r = workspace_disk_remove(dir, disk_of(name, disk), err);
	if (r < 0)
		return err_wrap(err, r, "workspace '%s'", name);
	r = empty_all(top);
	if (r == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0)
		r = -errno;
	snprintf(file, sizeof(file), LOCK_OF "%s", name);
	if (r == 0)
		unlinkat(dir, file, 0);
	return r < 0 ? err_set(err, r, "workspace '%s': %m", name) : 0;
}
