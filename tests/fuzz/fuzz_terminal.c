// SPDX-License-Identifier: Apache-2.0
/* A hostile recording of a terminal. Input: flags, then bytes of tty.0001.seg; flag 1: make all checksums
 * right first, so that what lies behind them is reached; flag 2: the bytes are one record. What is taken for
 * a record must come out as the same bytes again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/store/crc32c.h"
#include "userspace/store/format.h"
#include "userspace/store/terminal.h"

#define INPUT_MAX 65536

static char dir_path[] = "/tmp/fuzz-terminal-XXXXXX";
static int dir_fd = -1;
static uint8_t copy[INPUT_MAX];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void remove_dir(void)
{
	unlinkat(dir_fd, "tty.0001.seg", 0);
	rmdir(dir_path);
}

static void make_dir(void)
{
	if (!mkdtemp(dir_path))
		abort();
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		abort();
	atexit(remove_dir);
}

static void make_right(uint8_t *p, size_t n)
{
	size_t at = SEGMENT_HEADER_LEN;

	if (n < SEGMENT_HEADER_LEN)
		return;
	put_le32(p + 188, crc32c(p, 188));
	while (n - at >= FRAME_HEADER_LEN) {
		size_t comp = get_le32(p + at + 24);

		if (comp > n - at - FRAME_HEADER_LEN)
			comp = n - at - FRAME_HEADER_LEN;
		put_le32(p + at + 28, crc32c(p + at + FRAME_HEADER_LEN, comp));
		put_le32(p + at + 124, crc32c(p + at, 124));
		at += FRAME_HEADER_LEN + comp;
	}
}

static void one_record(struct str bytes)
{
	struct terminal_record rec;
	struct buf out = { 0 };

	if (terminal_record_decode(&rec, bytes))
		return;
	if (terminal_record_encode(&out, &rec) < 0 || out.n != bytes.n ||
	    memcmp(out.p, bytes.p, out.n) != 0)
		abort();
	buf_done(&out);
}

static void one_segment(const uint8_t *p, size_t n)
{
	struct terminal_reader *r = NULL;
	struct terminal_record rec;
	uint64_t seq = 0, before = 0;
	int fd = openat(dir_fd, "tty.0001.seg", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, p, n) != (ssize_t)n || terminal_reader_open(&r, dir_fd, NULL) < 0)
		abort();
	close(fd);
	while (terminal_reader_next(r, &rec, &seq, NULL) == 1) {
		if (seq <= before || rec.data.n > TERMINAL_DATA_MAX)
			abort();
		before = seq;
	}
	if (terminal_reader_seek_time(r, before * 1000, NULL) == 0)
		terminal_reader_next(r, &rec, &seq, NULL);
	if (terminal_reader_seek(r, before / 2, NULL) == 0)
		terminal_reader_next(r, &rec, &seq, NULL);
	terminal_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > INPUT_MAX)
		return 0;
	if (dir_fd < 0)
		make_dir();
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 2) {
		one_record((struct str){ (const char *)copy, size - 1 });
		return 0;
	}
	if (data[0] & 1)
		make_right(copy, size - 1);
	one_segment(copy, size - 1);
	return 0;
}
