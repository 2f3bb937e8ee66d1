// SPDX-License-Identifier: Apache-2.0
/* Names of an archive. Whatever stands in it, nothing is ever looked up through a link, and nothing outside of the root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/openat2.h"
#include "userspace/image/internal.h"

int path_clean(char *path, const char **ret_problem)
{
	char *from = path, *to = path;
	unsigned depth = 0;

	while (*from) {
		size_t n;

		from += strspn(from, "/");
		n = strcspn(from, "/");
		if (n == 2 && from[0] == '.' && from[1] == '.') {
			*ret_problem = "has '..' in it";
			return -EPERM;
		}
		if (n > IMAGE_PART_MAX || ++depth > IMAGE_DEPTH_MAX) {
			*ret_problem = n > IMAGE_PART_MAX ? "has a part of more than 255 bytes"
							  : "is more than 128 directories deep";
			return -ENAMETOOLONG;
		}
		if (n && !(n == 1 && from[0] == '.')) {
			if (to != path)
				*to++ = '/';
			memmove(to, from, n);
			to += n;
		}
		from += n;
	}
	*to = 0;
	if (to - path > IMAGE_PATH_MAX) {
		*ret_problem = "is longer than 4095 bytes";
		return -ENAMETOOLONG;
	}
	return 0;
}

static int open_beneath(int root, const char *path)
{
	int fd = sys_openat2(root, path, O_PATH | O_DIRECTORY, RESOLVE_INSIDE);

	return fd < 0 ? -errno : fd;
}

/* Step by step: the kernel makes only the last part of a path. */
static int make_dirs(int root, char *path)
{
	for (char *c = path; *c; c++) {
		int fd, r;

		if (*c != '/' && c[1])
			continue;
		if (*c == '/')
			*c = 0;
		fd = open_beneath(root, path);
		if (fd == -ENOENT) {
			char *slash = strrchr(path, '/');
			auto_close int above = -1;

			if (slash)
				*slash = 0;
			above = slash ? open_beneath(root, path) : dup(root);
			if (slash)
				*slash = '/';
			r = above < 0						 ? -EIO
			    : mkdirat(above, slash ? slash + 1 : path, 0755) < 0 ? -errno
										 : 0;
		} else {
			r = fd < 0 ? fd : 0;
		}
		if (fd >= 0)
			close(fd);
		if (r < 0)
			return r;
		if (!*c && c[1])
			*c = '/';
	}
	return 0;
}

int path_parent(int root, const char *path, bool make, const char **ret_base)
{
	const char *slash = strrchr(path, '/');
	char dir[IMAGE_PATH_MAX + 1];
	int fd, r;

	*ret_base = slash ? slash + 1 : path;
	if (!slash)
		return fcntl(root, F_DUPFD_CLOEXEC, 3);
	if ((size_t)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path) >= sizeof(dir))
		return -ENAMETOOLONG;
	fd = open_beneath(root, dir);
	if (fd != -ENOENT || !make)
		return fd;
	r = make_dirs(root, dir);
	return r < 0 ? r : open_beneath(root, dir);
}
