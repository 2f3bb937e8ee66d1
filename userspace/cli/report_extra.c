// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/report_extra.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define BLOB_MAX ((size_t)1 << 20)

bool report_extra_has_terminal(int bundle)
{
	struct stat st;

	return fstatat(bundle, "tty.0001.seg", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode) && st.st_size > 0;
}

static bool is_blob_name(const char *name)
{
	return strlen(name) == 64 && strspn(name, "0123456789abcdef") == 64;
}

/* Missing or too large: the page then says that the text was not kept. */
static int read_blob(int dir, const char *name, struct buf *ret)
{
	struct stat st;
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -ENOENT;
	return fd_read_rest(fd, ret);
}

static int add_blobs(int bundle, struct report *report)
{
	auto_close int dir =
		openat(bundle, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	auto_buf struct buf text = { 0 };
	const char *name;
	int r = 0;

	if (dir < 0)
		return 0;
	buf_init(&text, BLOB_MAX);
	for (size_t i = 0; r == 0 && *(name = report_blob_wanted(report, i)); i++) {
		buf_reset(&text);
		if (is_blob_name(name) && read_blob(dir, name, &text) == 0)
			r = report_blob(report, str_from(name), (struct str){ text.p, text.n });
	}
	return r;
}

int report_extra(int bundle, struct report *report, struct err *damage, struct err *err)
{
	int r = add_blobs(bundle, report);

	(void)damage;
	return r < 0 ? err_set(err, r, "writing the page: %s", strerror(-r)) : 0;
}
