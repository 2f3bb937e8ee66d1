// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/workspace_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define NEW_OF	   ".new" /* behind the name, until it is whole */
#define LOOP_TRIES 64	  /* others take a free device before us */
#define LET_GO_MS  20000  /* for who died to let go of it */
#define BLOCK	   4096ull
#define TOOL_FD	   3
#define TOOL_PATH  "/proc/self/fd/3"

/* ---- programs of e2fsprogs ---- */

/* PROGRAM with the file as its descriptor 3, by a path of that: it may lie anywhere. *ret_code: its exit code. */
static int run_tool(char **argv, int fd, int *ret_code, struct err *err)
{
	static const char *const dirs[] = { "/usr/sbin", "/sbin" };
	char path[64], *env[] = { NULL };
	posix_spawn_file_actions_t fa;
	int status = 0, r = ENOENT;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	for (int i = 0; i < TOOL_FD; i++)
		posix_spawn_file_actions_addopen(&fa, i, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&fa, fd, TOOL_FD);
	for (size_t i = 0; i < ARRAY_SIZE(dirs) && r == ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dirs[i], argv[0]);
		r = posix_spawn(&pid, path, &fa, NULL, argv, env);
	}
	posix_spawn_file_actions_destroy(&fa);
	if (r == ENOENT)
		return err_set(err, EOPNOTSUPP, "%s is not installed (package e2fsprogs)", argv[0]);
	if (r)
		return err_set(err, r, "%s: %s", argv[0], strerror(r));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	return 0;
}

/* Most of what lies in a workspace is small: twice the inodes of the usual. */
static int make_fs(int fd, struct err *err)
{
	char *argv[] = { "mke2fs",
			 "-q",
			 "-F",
			 "-t",
			 "ext4",
			 "-b",
			 "4096",
			 "-i",
			 "8192",
			 "-m",
			 "0",
			 "-E",
			 "lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0",
			 TOOL_PATH,
			 NULL };
	int code = 0, r = run_tool(argv, fd, &code, err);

	return r == 0 && code ? err_set(err, EIO, "mke2fs failed (%d)", code) : r;
}

/* To the file's size. Not by the mounted one's ioctl, which wants a capability that a container's root may lack. */
static int grow_fs(int fd, struct err *err)
{
	char *check[] = { "e2fsck", "-f", "-p", TOOL_PATH, NULL };
	char *resize[] = { "resize2fs", TOOL_PATH, NULL };
	int code = 0, r = run_tool(check, fd, &code, err);

	if (r == 0 && (code < 0 || code > 1)) /* 1: it mended something */
		r = err_set(err, EIO, "its disk is damaged: e2fsck failed (%d)", code);
	if (r == 0)
		r = run_tool(resize, fd, &code, err);
	return r == 0 && code
		       ? err_set(err, EIO, "its disk does not grow: resize2fs failed (%d)", code)
		       : r;
}

/* Is the file longer than its file system? (fs/ext4/ext4.h: s_blocks_count_lo) */
static bool has_grown(int fd, uint64_t size)
{
	uint8_t b[4];

	return pread(fd, b, sizeof(b), 1024 + 4) == sizeof(b) &&
	       size / BLOCK >
		       ((uint64_t)b[3] << 24 | (uint64_t)b[2] << 16 | (uint64_t)b[1] << 8 | b[0]);
}

/* ---- making one ---- */

int workspace_disk_make(int dir, const char *name, uint64_t size, struct err *err)
{
	char tmp[NAME_MAX + 1];
	auto_close int fd = -1, control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int r;

	if (control < 0 || ioctl(control, LOOP_CTL_GET_FREE) < 0)
		return err_set(err, EOPNOTSUPP, "no loop devices: /dev/loop-control: %s",
			       strerror(errno));
	if (size < WORKSPACE_DISK_MIN)
		return err_set(err, EINVAL,
			       "option '--disk': a named workspace has at least %llu MiB",
			       (unsigned long long)(WORKSPACE_DISK_MIN >> 20));
	snprintf(tmp, sizeof(tmp), "%s" NEW_OF, name);
	unlinkat(dir, tmp, 0);
	fd = openat(dir, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)(size / BLOCK * BLOCK)) < 0)
		r = err_set(err, errno, "its disk: %m");
	else
		r = make_fs(fd, err);
	if (r == 0 && (fsync(fd) < 0 || renameat(dir, tmp, dir, name) < 0 || fsync(dir) < 0))
		r = err_set(err, errno, "its disk: %m");
	if (r < 0)
		unlinkat(dir, tmp, 0);
	return r;
}

bool workspace_disk_size(int dir, const char *name, uint64_t *ret_size, uint64_t *ret_used)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	*ret_size = (uint64_t)st.st_size;
	*ret_used = (uint64_t)st.st_blocks * 512;
	return true;
}

/* ---- its loop device ---- */

/* Waits for what somebody who died has left for a moment. A device keeps the very open file that it was given: so a lock
 * on that lasts as long as the mount, and there is never a second one, which would be the end of the file system. */
static int open_locked(int *ret_fd, int dir, const char *name, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + LET_GO_MS * NSEC_PER_MSEC;
	auto_close int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_set(err, errno, "its disk: %m");
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_ns(CLOCK_MONOTONIC) >= end)
			return err_set(err, errno == EWOULDBLOCK ? EBUSY : errno,
				       "its disk is still mounted");
		poll(NULL, 0, 20);
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int workspace_disk_remove(int dir, const char *name, struct err *err)
{
	auto_close int fd = -1;
	int r = open_locked(&fd, dir, name, err);

	if (r == -ENOENT)
		return 0;
	return r == 0 && unlinkat(dir, name, 0) < 0 ? err_set(err, errno, "its disk: %m") : r;
}

static int attach(int *ret_fd, char path[64], int file, struct err *err)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config c = { .fd = (uint32_t)file,
				 .block_size = BLOCK,
				 .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };

	for (int i = 0; control >= 0 && i < LOOP_TRIES; i++) {
		int n = ioctl(control, LOOP_CTL_GET_FREE);
		auto_close int fd = -1;

		if (n < 0)
			break;
		snprintf(path, 64, "/dev/loop%d", n);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			break;
		if (ioctl(fd, LOOP_CONFIGURE, &c) == 0) {
			*ret_fd = take_fd(fd);
			return 0;
		}
		if (errno != EBUSY)
			break;
	}
	return err_set(err, errno, "no loop device for its disk: %m");
}

/* ---- mounting ---- */

/* What is mounted from here on is ours alone; what the host mounts and unmounts still comes. */
static int own_namespace(struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_set(err, errno, "a mount namespace for its disk: %m");
	return 0;
}

int workspace_disk_mount(int dir, const char *name, const char *path, uint64_t size,
			 struct err *err)
{
	auto_close int file = -1, loop = -1;
	char device[64], found[PATH_MAX];
	struct stat st;
	int r = open_locked(&file, dir, name, err);

	if (r < 0)
		return r;
	if (fstat(file, &st) < 0 ||
	    (size > (uint64_t)st.st_size && ftruncate(file, (off_t)(size / BLOCK * BLOCK)) < 0))
		return err_set(err, errno, "its disk: %m");
	/* Who made it longer may have died before all of it was. */
	if (has_grown(file, MAX(size, (uint64_t)st.st_size)))
		r = grow_fs(file, err);
	if (r == 0)
		r = attach(&loop, device, file, err);
	if (r == 0)
		r = own_namespace(err);
	if (r < 0)
		return r;
	/* After an error nothing more is written. */
	if (mount(device, path, "ext4", MS_NOSUID | MS_NODEV, "errors=remount-ro") < 0)
		return err_set(err, errno, "its disk cannot be mounted (e2fsck may mend it): %m");
	snprintf(found, sizeof(found), "%.4000s/lost+found", path);
	rmdir(found); /* e2fsck makes it anew where it needs it */
	return 0;
}

void workspace_disk_trim(const char *path)
{
	auto_close int top = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	struct fstrim_range all = { .len = UINT64_MAX };

	if (top >= 0 && syncfs(top) == 0) /* what is freed, but not written yet, is not free */
		ioctl(top, FITRIM, &all);
}
