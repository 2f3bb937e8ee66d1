// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/segment.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "userspace/base/auto.h"
#include "userspace/store/crc32c.h"

#define READ_AHEAD 4096

/* 0 when the name is not canonical: events.0002.seg, never events.2.seg or events.+002.seg. */
static unsigned segment_number_of(const char *name, enum segment_kind kind)
{
	size_t prefix = kind == SEGMENT_TTY ? 4 : 7;
	char canonical[SEGMENT_NAME_LEN + 1];
	unsigned n = 0;

	if (strlen(name) != prefix + 8)
		return 0;
	for (const char *p = name + prefix; p < name + prefix + 4; p++) {
		if (*p < '0' || *p > '9')
			return 0;
		n = n * 10 + (unsigned)(*p - '0');
	}
	segment_kind_name(canonical, kind, n);
	return strcmp(name, canonical) == 0 ? n : 0;
}

static void remember_foreign(struct segment_list *l, const char *name)
{
	size_t i;

	if (l->foreign[0])
		return;
	for (i = 0; name[i] && i < sizeof(l->foreign) - 1; i++)
		l->foreign[i] = isprint((unsigned char)name[i]) ? name[i] : '?';
	l->foreign[i] = 0;
}

int segment_list(int dirfd, struct segment_list *ret, struct err *err)
{
	struct segment_list l = { 0 };
	auto_dir DIR *d = NULL;
	struct dirent *e;
	int fd;

	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "bundle directory: %m");
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return err_set(err, ENOMEM, "bundle directory: %m");
	}
	for (errno = 0; (e = readdir(d)); errno = 0) {
		bool is_tty = strncmp(e->d_name, "tty.", 4) == 0;
		size_t len = strlen(e->d_name);
		unsigned n;

		if ((!is_tty && strncmp(e->d_name, "events.", 7) != 0) || len < 4 ||
		    strcmp(e->d_name + len - 4, ".seg") != 0)
			continue;
		n = segment_number_of(e->d_name, is_tty ? SEGMENT_TTY : SEGMENT_EVENTS);
		if (!n) {
			remember_foreign(&l, e->d_name);
			continue;
		}
		if (is_tty) {
			l.tty_count++;
			l.tty_max = MAX(l.tty_max, n);
			continue;
		}
		l.count++;
		l.max = MAX(l.max, n);
	}
	if (errno)
		return err_set(err, errno, "bundle directory: %m");
	*ret = l;
	return 0;
}

void segment_file_close(struct segment_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	free(f->p);
	*f = SEGMENT_FILE_OF(f->kind);
}

void segment_file_forget(struct segment_file *f)
{
	free(f->p);
	f->p = NULL;
	f->n = f->cap = 0;
}

int segment_file_open(struct segment_file *f, int dirfd, unsigned number, int flags)
{
	char name[SEGMENT_NAME_LEN + 1];
	auto_close int fd = -1;
	struct stat st;

	segment_kind_name(name, f->kind, number);
	/* O_NONBLOCK: a fifo in a bundle must not hang us */
	fd = openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	segment_file_close(f);
	f->fd = take_fd(fd);
	f->number = number;
	return 0;
}

int segment_file_size(const struct segment_file *f, uint64_t *ret)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return -errno;
	*ret = (uint64_t)st.st_size;
	return 0;
}

ssize_t segment_file_get(struct segment_file *f, uint64_t off, size_t n, const uint8_t **ret)
{
	size_t want = MAX(n, (size_t)READ_AHEAD), got = 0;

	if (off >= f->off && off - f->off <= f->n && f->n - (off - f->off) >= n) {
		*ret = f->p + (off - f->off);
		return (ssize_t)n;
	}
	f->n = 0;
	if (f->cap < want) {
		free(f->p);
		f->cap = 0;
		f->p = malloc(want);
		if (!f->p)
			return -ENOMEM;
		f->cap = want;
	}
	while (got < want) {
		ssize_t r = pread(f->fd, f->p + got, want - got, (off_t)(off + got));

		if (r < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (r == 0)
			break;
		got += (size_t)r;
	}
	f->off = off;
	f->n = got;
	*ret = f->p;
	return (ssize_t)MIN(got, n);
}

static int read_whole(struct segment_file *f, uint64_t off, size_t n, const uint8_t **ret)
{
	ssize_t got = segment_file_get(f, off, n, ret);

	if (got < 0)
		return (int)got;
	return got == 0 ? READ_END : (size_t)got < n ? READ_TORN : READ_OK;
}

int segment_header_read(struct segment_file *f, struct segment_header *ret, const char **ret_why)
{
	const uint8_t *p;
	const char *why;
	int r;

	r = read_whole(f, 0, SEGMENT_HEADER_LEN, &p);
	if (r != READ_OK)
		return r;
	why = segment_header_decode(ret, p);
	if (!why && ret->kind != f->kind)
		why = "the segment is of another kind";
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	return READ_OK;
}

int frame_read_header(struct segment_file *f, uint64_t off, struct frame *ret, const char **ret_why)
{
	struct frame frame = { .off = off };
	const char *why;
	int r;

	r = read_whole(f, off, FRAME_HEADER_LEN, &frame.header);
	if (r == READ_TORN && memcmp(frame.header, FRAME_MAGIC, MIN(4, f->n)) != 0) {
		*ret_why = "no frame begins here";
		return -EBADMSG;
	}
	if (r != READ_OK)
		return r;
	why = frame_header_decode(&frame.h, frame.header);
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	*ret = frame;
	return READ_OK;
}

int frame_read(struct segment_file *f, uint64_t off, struct frame *ret, const char **ret_why)
{
	struct frame frame;
	int r;

	r = frame_read_header(f, off, &frame, ret_why);
	if (r != READ_OK)
		return r;
	/* header and payload in one piece: the pointers must hold together */
	r = read_whole(f, off, FRAME_HEADER_LEN + (size_t)frame.h.comp_len, &frame.header);
	if (r != READ_OK)
		return r < 0 ? r : READ_TORN;
	frame.payload = frame.header + FRAME_HEADER_LEN;
	if (crc32c(frame.payload, frame.h.comp_len) != frame.h.payload_crc) {
		*ret_why = "the checksum of the frame's content is wrong";
		return -EBADMSG;
	}
	*ret = frame;
	return READ_OK;
}

void unpacker_done(struct unpacker *u)
{
	ZSTD_freeDCtx(u->zstd);
	free(u->raw);
	*u = (struct unpacker){ 0 };
}

int frame_unpack(struct unpacker *u, const struct frame *f, const uint8_t **ret)
{
	size_t got;

	if (f->h.codec == CODEC_STORED) {
		*ret = f->payload;
		return 0;
	}
	if (u->cap < f->h.raw_len) {
		free(u->raw);
		u->cap = 0;
		u->raw = malloc(f->h.raw_len);
		if (!u->raw)
			return -ENOMEM;
		u->cap = f->h.raw_len;
	}
	if (!u->zstd)
		u->zstd = ZSTD_createDCtx();
	if (!u->zstd)
		return -ENOMEM;
	got = ZSTD_decompressDCtx(u->zstd, u->raw, f->h.raw_len, f->payload, f->h.comp_len);
	if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	if (ZSTD_isError(got) || got != f->h.raw_len)
		return -EBADMSG;
	*ret = u->raw;
	return 0;
}
