// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/option.h"

#define ACL "system.posix_acl_access"

void trust_init(struct trust *t)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	uint64_t v;

	*t = (struct trust){
		.uid = { 0, geteuid(), getuid() }, .uids = 3, .gid = { 0 }, .gids = 1
	};
	if (uid && parse_u64(uid, &v) == 0 && v < UINT32_MAX)
		t->uid[t->uids++] = (uid_t)v;
	if (gid && parse_u64(gid, &v) == 0 && v < UINT32_MAX)
		t->gid[t->gids++] = (gid_t)v;
}

bool trust_uid(const struct trust *t, uid_t uid)
{
	for (size_t i = 0; i < t->uids; i++)
		if (t->uid[i] == uid)
			return true;
	return false;
}

/* An access list hides behind the bits of the group: whoever is in it counts. */
static bool group_may_write(const struct trust *t, const struct stat *st, bool has_acl)
{
	if (!(st->st_mode & S_IWGRP))
		return false;
	for (size_t i = 0; i < t->gids && !has_acl; i++)
		if (t->gid[i] == st->st_gid)
			return false;
	return true;
}

static int check_dir(const struct trust *t, const char *path, const char *dir, struct err *err)
{
	struct statvfs fs;
	struct stat st;
	bool group;

	if (stat(dir, &st) < 0)
		return err_set(err, errno, "'%s': directory '%s': %m", path, dir);
	if (!trust_uid(t, st.st_uid))
		return err_set(
			err, EPERM,
			"'%s': its directory '%s' belongs to user %u, neither root nor who runs this: "
			"put it elsewhere, or chown",
			path, dir, (unsigned)st.st_uid);
	group = group_may_write(t, &st, getxattr(dir, ACL, NULL, 0) > 0);
	if ((!group && !(st.st_mode & S_IWOTH)) || st.st_mode & S_ISVTX)
		return 0;
	if (statvfs(dir, &fs) == 0 && fs.f_flag & ST_RDONLY)
		return 0;
	return err_set(err, EPERM,
		       "'%s': %s may replace it, by its directory '%s' (mode %04o): chmod %s-w",
		       path, group ? "others of a group" : "everybody", dir, st.st_mode & 07777,
		       group ? "g" : "o");
}

static int check_dirs_above(const struct trust *t, const char *path, char *dir, struct err *err)
{
	char *slash;
	int r = 0;

	while (r == 0 && (slash = strrchr(dir, '/'))) {
		bool top = slash == dir;

		slash[top] = 0;
		r = check_dir(t, path, dir, err);
		if (top)
			break;
	}
	return r;
}

/* Where the name stands, and where what it leads to does: whoever may change one of them chooses what is read. */
static int check_dirs(const struct trust *t, const char *path, struct err *err)
{
	char real[PATH_MAX], dir[PATH_MAX], name[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	int r;

	if (n + 2 > sizeof(name))
		return err_set(err, ENAMETOOLONG, "'%s': %m", path);
	snprintf(name, sizeof(name), "%.*s.", (int)n, path);
	/* The last slash stays: what stands above it is looked at. */
	if (!realpath(path, real) || !realpath(name, dir))
		return err_set(err, errno, "'%s': %m", path);
	n = strlen(dir);
	if (n + 2 > sizeof(dir))
		return err_set(err, ENAMETOOLONG, "'%s': %m", path);
	snprintf(dir + n, sizeof(dir) - n, "/");
	r = check_dirs_above(t, path, dir, err);
	return r < 0 ? r : check_dirs_above(t, path, real, err);
}

int trust_check(const struct trust *t, int fd, const char *path, struct err *err)
{
	struct stat st;
	bool group;

	if (!strncmp(path, "/dev/", 5))
		return 0;
	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "'%s': %m", path);
	if (!trust_uid(t, st.st_uid))
		return err_set(err, EPERM,
			       "'%s' belongs to user %u, neither root nor who runs this: chown",
			       path, (unsigned)st.st_uid);
	group = group_may_write(t, &st, fgetxattr(fd, ACL, NULL, 0) > 0);
	if (group || st.st_mode & S_IWOTH)
		return err_set(err, EPERM, "'%s' can be written by %s (mode %04o): chmod %s-w",
			       path, group ? "others of a group" : "everybody", st.st_mode & 07777,
			       group ? "g" : "o");
	return check_dirs(t, path, err);
}

int file_trusted(int fd, const char *path, struct err *err)
{
	struct trust t;

	if (geteuid() != 0)
		return 0;
	trust_init(&t);
	return trust_check(&t, fd, path, err);
}

int file_read_trusted(const char *path, size_t max, char **ret_text, size_t *ret_n,
		      const char *what, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int r;

	if (fd < 0)
		return err_set(err, errno, "%s '%s': %m", what, path);
	r = file_trusted(fd, path, err);
	if (r < 0)
		return err_wrap(err, r, "%s", what);
	fcntl(fd, F_SETFL, 0);
	r = fd_read_text(fd, max, ret_text, ret_n);
	return r < 0 ? err_set(err, -r, "%s '%s': %m", what, path) : 0;
}
