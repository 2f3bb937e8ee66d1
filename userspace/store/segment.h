/* SPDX-License-Identifier: Apache-2.0 */
/* Reading segment files, for reader, verify and recovery. Whatever is in the directory is hostile:
 * names are made here and never taken from a bundle, symlinks and special files are refused, and
 * every length was judged by format.c before it is used. */
#ifndef WARDER_STORE_SEGMENT_H
#define WARDER_STORE_SEGMENT_H

#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/store/format.h"

struct journal_reader;

/* What is there, by name alone. */
struct segment_list {
	unsigned count, max; /* files with a good name; the highest number */
	unsigned tty_count, tty_max;
	char foreign[32]; /* first bytes of a name like ours that is none, printable; or "" */
};

int segment_list(int dirfd, struct segment_list *ret, struct err *err);

/* One open file with the bytes last read from it. */
struct segment_file {
	int fd;
	enum segment_kind kind; /* to be set before segment_file_open; kept by it */
	unsigned number;
	uint8_t *p; /* bytes [off, off + n) of the file */
	size_t n, cap;
	uint64_t off;
};

#define SEGMENT_FILE_NONE  ((struct segment_file){ .fd = -1, .kind = SEGMENT_EVENTS })
#define SEGMENT_FILE_OF(k) ((struct segment_file){ .fd = -1, .kind = (k) })

/* -ENOENT when there is none; -ELOOP, -EMEDIUMTYPE when it is no regular file. Closes what `f` held. */
int segment_file_open(struct segment_file *f, int dirfd, unsigned number, int flags);
void segment_file_close(struct segment_file *f);
/* Forget what was read: the file may have changed. Gives the memory back, too. */
void segment_file_forget(struct segment_file *f);
/* Bytes at `off`: fewer than n only at the end of the file. The pointer holds until the next call. */
ssize_t segment_file_get(struct segment_file *f, uint64_t off, size_t n, const uint8_t **ret);
int segment_file_size(const struct segment_file *f, uint64_t *ret);

enum read_status {
	READ_END = 0,  /* not one byte there */
	READ_OK = 1,   /* complete and its checksums right */
	READ_TORN = 2, /* begins, but the file ends before it does */
};

struct frame {
	struct frame_header h;
	uint64_t off;	       /* of its header in the file */
	const uint8_t *header; /* FRAME_HEADER_LEN bytes, until the next read */
	const uint8_t *payload;
};

static inline uint64_t frame_end(const struct frame *f)
{
	return f->off + FRAME_HEADER_LEN + f->h.comp_len;
}

/* All three: enum read_status, -EBADMSG with *ret_why set, or another -errno. */
int segment_header_read(struct segment_file *f, struct segment_header *ret, const char **ret_why);
int frame_read_header(struct segment_file *f, uint64_t off, struct frame *ret,
		      const char **ret_why);
int frame_read(struct segment_file *f, uint64_t off, struct frame *ret, const char **ret_why);

/* reader.c: journal_reader_open for segments of either kind. */
int journal_reader_open_kind(struct journal_reader **ret, int dirfd, enum segment_kind kind,
			     struct err *err);

/* Decompression into a buffer that is kept from frame to frame. */
struct unpacker {
	struct ZSTD_DCtx_s *zstd;
	uint8_t *raw;
	size_t cap;
};

void unpacker_done(struct unpacker *u);
/* *ret points to h.raw_len bytes, in the frame or the unpacker. -EBADMSG when the payload does not
 * decompress to exactly that. */
int frame_unpack(struct unpacker *u, const struct frame *f, const uint8_t **ret);

#endif
