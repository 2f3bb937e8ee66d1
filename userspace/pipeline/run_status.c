// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/run_status.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define RUN_DIR_DEFAULT "/run/warder"
#define DIR_FLAGS	(O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)

const char *run_dir(void)
{
	const char *dir = getenv("WARDER_RUN");

	return dir && *dir ? dir : RUN_DIR_DEFAULT;
}

static int open_sessions(int *ret_fd)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/sessions", run_dir()) >= sizeof(path))
		return -ENAMETOOLONG;
	*ret_fd = open(path, DIR_FLAGS);
	return *ret_fd < 0 ? -errno : 0;
}

int run_status_open(int *ret_fd, const char *session, uid_t uid, gid_t gid, struct err *err)
{
	auto_close int sessions = -1, fd = -1;
	char path[PATH_MAX];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/sessions", run_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	r = dir_make_all(path, 0711);
	if (r == 0)
		r = open_sessions(&sessions);
	if (r < 0)
		return err_set(err, r, "run directory '%s': %m", path);
	if (mkdirat(sessions, session, 0700) < 0)
		return err_set(err, errno, "run directory '%s/%s': %m", path, session);
	fd = openat(sessions, session, DIR_FLAGS);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0 || fchown(fd, uid, gid) < 0) {
		r = err_set(err, errno, "run directory '%s/%s': %m", path, session);
		unlinkat(sessions, session, AT_REMOVEDIR);
		return r;
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int run_status_write(int dirfd, const char *part, struct str json)
{
	char name[64];

	if (dirfd < 0)
		return 0;
	if (json.n > RUN_STATUS_PART_MAX ||
	    (size_t)snprintf(name, sizeof(name), "%s.json", part) >= sizeof(name))
		return -EMSGSIZE;
	return file_replace_at(dirfd, name, json.p, json.n, 0600);
}

/* Flat: parts are files. What somebody else put there stays, and the directory with it. */
static void empty(int dirfd)
{
	int copy = openat(dirfd, ".", DIR_FLAGS);
	auto_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((de = readdir(dir)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			unlinkat(dirfd, de->d_name, 0);
}

void run_status_remove(int dirfd, const char *session)
{
	auto_close int sessions = -1;

	if (dirfd < 0)
		return;
	empty(dirfd);
	if (open_sessions(&sessions) == 0)
		unlinkat(sessions, session, AT_REMOVEDIR);
}

static bool is_left_over(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return false;
	/* Made, but not locked yet: a warder that starts at this moment. It locks before it writes. */
	return faccessat(fd, "run.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	       st.st_mtime + 10 < time(NULL);
}

int run_status_sweep(void)
{
	int sessions = -1, n = 0;
	auto_dir DIR *dir = NULL;
	struct dirent *de;

	if (open_sessions(&sessions) < 0)
		return 0;
	dir = fdopendir(sessions);
	if (!dir) {
		close(sessions);
		return 0;
	}
	while ((de = readdir(dir))) {
		auto_close int fd = -1;

		if (de->d_name[0] == '.')
			continue;
		fd = openat(sessions, de->d_name, DIR_FLAGS);
		if (fd < 0 || !is_left_over(fd))
			continue;
		empty(fd);
		n += unlinkat(sessions, de->d_name, AT_REMOVEDIR) == 0;
	}
	return n;
}
