// SPDX-License-Identifier: Apache-2.0
/* "user[:group]" of an image's configuration, by the files that the image has. They are hostile text. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/image/internal.h"

#define FILE_MAX (1u << 20)
#define ID_MAX	 65535

static bool number(const char *z, size_t n, uint32_t *ret)
{
	uint32_t v = 0;

	if (n == 0 || n > 5)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (z[i] < '0' || z[i] > '9')
			return false;
		v = v * 10 + (uint32_t)(z[i] - '0');
	}
	*ret = v;
	return v <= ID_MAX;
}

static char *file_of(int root, const char *path)
{
	const char *base;
	auto_close int dir = path_parent(root, path, false, &base);
	auto_close int fd =
		dir < 0 ? -1 : openat(dir, base, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char *text = NULL;
	size_t n;

	return fd >= 0 && fd_read_text(fd, FILE_MAX, &text, &n) >= 0 ? text : NULL;
}

/* The line that begins with `name`, or whose third part is `id`. Its third and fourth parts, if they are numbers. */
static bool line_of(const char *text, const char *name, size_t name_n, bool by_id, uint32_t id,
		    uint32_t ret[2])
{
	for (const char *line = text; line && *line;) {
		size_t n = strcspn(line, "\n");
		const char *part[4] = { line };
		size_t len[4] = { 0 };
		uint32_t v;

		for (int i = 0; i < 4; i++) {
			size_t left = n - (size_t)(part[i] - line);
			const char *colon = memchr(part[i], ':', left);

			len[i] = colon ? (size_t)(colon - part[i]) : left;
			if (i < 3)
				part[i + 1] = part[i] + len[i] + (colon != NULL);
		}
		if ((by_id ? number(part[2], len[2], &v) && v == id
			   : len[0] == name_n && !memcmp(part[0], name, name_n)) &&
		    number(part[2], len[2], &ret[0])) {
			if (!number(part[3], len[3], &ret[1]))
				ret[1] = ret[0];
			return true;
		}
		line += n + (line[n] == '\n');
	}
	return false;
}

void image_find_user(struct image *im, int root)
{
	const char *user = im->user.p, *colon;
	auto_free char *passwd = NULL, *group = NULL;
	uint32_t ids[2] = { 0, 0 }, gid[2];
	size_t n;

	if (!im->user.n)
		return;
	colon = memchr(user, ':', im->user.n);
	n = colon ? (size_t)(colon - user) : im->user.n;
	passwd = file_of(root, "etc/passwd");
	group = file_of(root, "etc/group");
	if (number(user, n, &ids[0])) {
		uint32_t id = ids[0];

		ids[1] = 0;
		if (!passwd || !line_of(passwd, NULL, 0, true, id, ids))
			ids[0] = id;
	} else if (!passwd || !line_of(passwd, user, n, false, 0, ids)) {
		return;
	}
	if (colon) {
		const char *g = colon + 1;
		size_t g_n = im->user.n - n - 1;

		if (!number(g, g_n, &gid[0]) && (!group || !line_of(group, g, g_n, false, 0, gid)))
			return;
		ids[1] = gid[0];
	}
	im->has_ids = true;
	im->uid = ids[0];
	im->gid = ids[1];
}
