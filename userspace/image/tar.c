// SPDX-License-Identifier: Apache-2.0
/* Tar by libarchive, with its unpacking and other formats left out: what comes in was unpacked and counted by us. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>

#include "userspace/image/internal.h"

static la_ssize_t read_cb(struct archive *a, void *arg, const void **ret)
{
	ssize_t n = stream_next(arg, ret);

	if (n >= 0)
		return n;
	archive_set_error(a, (int)-n, "stream");
	return ARCHIVE_FATAL;
}

struct archive *tar_open(struct stream *s)
{
	struct archive *a = archive_read_new();

	if (!a)
		return NULL;
	/* An empty file is an empty archive: "nothing changed in this layer". */
	if (archive_read_support_format_tar(a) != ARCHIVE_OK ||
	    archive_read_support_format_empty(a) != ARCHIVE_OK ||
	    archive_read_open(a, s, NULL, read_cb, NULL) != ARCHIVE_OK) {
		if (!s->failed)
			s->failed = err_set(s->err, EBADMSG, "%s: not a tar: %s", s->name,
					    archive_error_string(a) ? archive_error_string(a) : "");
		archive_read_free(a);
		return NULL;
	}
	return a;
}

int tar_next(struct archive *a, struct archive_entry **ret, struct stream *s, struct err *err)
{
	int r = archive_read_next_header(a, ret);

	if (r == ARCHIVE_EOF)
		return 0;
	if (r == ARCHIVE_OK || r == ARCHIVE_WARN)
		return 1;
	if (s->failed)
		return s->failed;
	return err_set(err, EBADMSG, "%s: %s", s->name,
		       archive_error_string(a) ? archive_error_string(a) : "damaged archive");
}
