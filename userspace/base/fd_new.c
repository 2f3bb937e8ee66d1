// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/fd_new.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/fd.h"
#include "userspace/base/option.h"

static int open_special(struct fd_new *f, const char *path)
{
	struct stat st;

	if (fstatat(f->dirfd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(st.st_mode) ||
	    S_ISLNK(st.st_mode))
		return 0;
	f->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return f->fd < 0 ? -errno : 1;
}

static int open_new(struct fd_new *f, const char *path, mode_t mode)
{
	char text[PATH_MAX];
	int r;

	if ((size_t)snprintf(text, sizeof(text), "%s", path) >= sizeof(text))
		return -ENAMETOOLONG;
	if ((size_t)snprintf(f->name, sizeof(f->name), "%s", basename(text)) >= sizeof(f->name))
		return -ENAMETOOLONG;
	snprintf(text, sizeof(text), "%s", path);
	f->dirfd = open(dirname(text), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->dirfd < 0)
		return -errno;
	r = open_special(f, path);
	if (r != 0)
		return r < 0 ? r : 0;
	if ((size_t)snprintf(f->tmp, sizeof(f->tmp), ".%.200s.%d.tmp", f->name, (int)getpid()) >=
	    sizeof(f->tmp))
		return -ENAMETOOLONG;
	f->fd = openat(f->dirfd, f->tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		       mode);
	if (f->fd < 0) {
		r = -errno;
		f->tmp[0] = 0; /* not ours to remove */
		return r;
	}
	return 0;
}

int fd_new_open(struct fd_new *ret, const char *path, mode_t mode, struct err *err)
{
	struct fd_new f = { .fd = -1, .dirfd = -1 };
	int r;

	if (!path || !strcmp(path, "-")) {
		f.fd = STDOUT_FILENO;
	} else {
		r = open_new(&f, path, mode);
		if (r < 0) {
			fd_new_done(&f);
			return err_set(err, r, "'%s': %s", path, strerror(-r));
		}
	}
	*ret = f;
	return 0;
}

int fd_new_write(void *file, const void *p, size_t n)
{
	return fd_write_all(((struct fd_new *)file)->fd, p, n);
}

void fd_new_give_to_caller(const struct fd_new *f)
{
	const char *uid_text = getenv("SUDO_UID"), *gid_text = getenv("SUDO_GID");
	uint64_t uid, gid;

	if (!f->tmp[0] || geteuid() != 0 || !uid_text || !gid_text)
		return;
	if (parse_u64(uid_text, &uid) < 0 || parse_u64(gid_text, &gid) < 0 || uid >= UINT32_MAX ||
	    gid >= UINT32_MAX)
		return;
	/* It stays root's where the file system knows no owners: he can still read it as root. */
	if (fchown(f->fd, (uid_t)uid, (gid_t)gid) < 0)
		return;
}

int fd_new_commit(struct fd_new *f, struct err *err)
{
	int r = 0;

	if (f->tmp[0]) {
		if (fsync(f->fd) < 0 || renameat(f->dirfd, f->tmp, f->dirfd, f->name) < 0)
			r = -errno;
		else
			f->tmp[0] = 0;
	}
	return r < 0 ? err_set(err, r, "'%s': %s", f->name, strerror(-r)) : 0;
}

void fd_new_done(struct fd_new *f)
{
	if (f->tmp[0])
		unlinkat(f->dirfd, f->tmp, 0);
	if (f->fd >= 0 && f->fd != STDOUT_FILENO)
		close(f->fd);
	if (f->dirfd >= 0)
		close(f->dirfd);
	*f = (struct fd_new){ .fd = -1, .dirfd = -1 };
}
