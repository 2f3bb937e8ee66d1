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
#include "userspace/store/terminal.h"

DEFINE_AUTO(terminal_reader, terminal_reader_free)

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

/* The recording, record by record; one that is damaged is shown as far as it can be read. */
static int add_terminal(int bundle, struct report *report, struct err *damage)
{
	static const enum report_terminal_type types[] = {
		[TERMINAL_OUTPUT] = REPORT_OUTPUT,     [TERMINAL_INPUT] = REPORT_INPUT,
		[TERMINAL_RESIZE] = REPORT_RESIZE,     [TERMINAL_CUT] = REPORT_CUT,
		[TERMINAL_WITHHELD] = REPORT_WITHHELD,
	};
	AUTO(terminal_reader) struct terminal_reader *reader = NULL;
	struct terminal_record rec;
	struct err err = { 0 };
	uint64_t seq;
	int r;

	r = terminal_reader_open(&reader, bundle, &err);
	while (r >= 0 && (r = terminal_reader_next(reader, &rec, &seq, &err)) > 0) {
		const struct report_frame frame = {
			.type = types[rec.type],
			.stream = rec.stream,
			.mono = rec.mono,
			.cols = rec.cols,
			.rows = rec.rows,
			.bytes = rec.bytes,
			.data = rec.data,
		};
		int k = report_terminal(report, &frame);

		if (k < 0)
			return k;
	}
	if (r < 0 && !damage->code)
		err_set(damage, r, "the terminal's recording: %s", err_text(&err));
	return 0;
}

int report_extra(int bundle, struct report *report, struct err *damage, struct err *err)
{
	int r = report_extra_has_terminal(bundle) ? add_terminal(bundle, report, damage) : 0;

	if (r == 0)
		r = add_blobs(bundle, report);
	return r < 0 ? err_set(err, r, "writing the output: %s", strerror(-r)) : 0;
}
