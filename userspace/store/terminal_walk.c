// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/terminal_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

int terminal_walk_start(struct terminal_walk *w, int dirfd, const char *session, unsigned last,
			struct chain *chain)
{
	w->dirfd = dirfd;
	w->session = session;
	w->last = last;
	w->chain = chain;
	return chain_start_tty(chain, w->head, session);
}

void terminal_walk_done(struct terminal_walk *w)
{
	segment_file_close(&w->file);
	unpacker_done(&w->unpacker);
}

static const char *check_header(const struct terminal_walk *w, const struct segment_header *h)
{
	if (h->number != w->file.number)
		return "the segment's number is not the one in its name";
	if (strcmp(h->session, w->session) != 0)
		return "the segment belongs to another session";
	if (memcmp(h->prev, w->link, STORE_HASH_LEN) != 0 ||
	    memcmp(h->head, w->head, STORE_HASH_LEN) != 0 || h->first_seq != w->next_seq)
		return "the segment does not go on from the one before";
	return NULL;
}

static int enter_next(struct terminal_walk *w, const char **ret_why)
{
	unsigned number = w->file.fd < 0 ? 1 : w->file.number + 1;
	struct segment_header h;
	const uint8_t *bytes;
	int r;

	if (number > w->last)
		return READ_END;
	r = segment_file_open(&w->file, w->dirfd, number, O_RDONLY);
	if (r == -ENOENT || r == -ELOOP || r == -EMEDIUMTYPE) {
		*ret_why = r == -ENOENT ? "the segment is missing, though a later one is there"
					: "the segment is no regular file";
		return -EBADMSG;
	}
	w->bytes += w->off;
	w->off = 0;
	if (r == 0)
		r = segment_header_read(&w->file, &h, ret_why);
	if (r == READ_END || r == READ_TORN)
		return READ_TORN;
	if (r != READ_OK)
		return r;
	*ret_why = check_header(w, &h);
	if (*ret_why)
		return -EBADMSG;
	if (segment_file_get(&w->file, 0, SEGMENT_HEADER_LEN, &bytes) != SEGMENT_HEADER_LEN)
		return -EIO;
	w->off = SEGMENT_HEADER_LEN;
	r = chain_hash(w->chain, w->link, bytes, SEGMENT_HEADER_LEN, NULL, 0);
	return r < 0 ? r : READ_OK;
}

static int take_frame(struct terminal_walk *w, const struct frame *f, const char **ret_why)
{
	uint8_t head[STORE_HASH_LEN], link[STORE_HASH_LEN];
	const uint8_t *raw;
	int64_t n = 0;
	int r;

	*ret_why = NULL;
	if (memcmp(f->h.prev, w->link, STORE_HASH_LEN) != 0 || f->h.first_seq != w->next_seq)
		*ret_why = "the frame does not follow the bytes before it";
	else if (f->h.type == FRAME_SEAL)
		*ret_why = "a seal has no place here";
	if (*ret_why)
		return -EBADMSG;
	memcpy(head, w->head, sizeof(head));
	if (f->h.type == FRAME_DATA) {
		r = frame_unpack(&w->unpacker, f, &raw);
		if (r == -EBADMSG)
			*ret_why = "the frame does not decompress to its size";
		if (r < 0)
			return r;
		n = chain_records(w->chain, head, NULL, raw, f->h.raw_len);
		if (n < 0 && n != -EBADMSG)
			return (int)n;
		if (n != f->h.n)
			*ret_why = "the frame's records do not fit into it";
	}
	if (!*ret_why && memcmp(head, f->h.head, STORE_HASH_LEN) != 0)
		*ret_why = "the records do not have the hash that was written";
	if (*ret_why)
		return -EBADMSG;
	r = chain_hash(w->chain, link, f->header, FRAME_HEADER_LEN + (size_t)f->h.comp_len, NULL,
		       0);
	if (r < 0)
		return r;
	memcpy(w->head, head, sizeof(head));
	memcpy(w->link, link, sizeof(link));
	w->next_seq += (uint64_t)n;
	w->frames += n > 0;
	w->off = frame_end(f);
	return 0;
}

int terminal_walk_next(struct terminal_walk *w, const char **ret_why)
{
	struct frame f;
	int r;

	if (w->file.fd < 0)
		return enter_next(w, ret_why);
	r = frame_read(&w->file, w->off, &f, ret_why);
	if (r == READ_END)
		return enter_next(w, ret_why);
	if (r == READ_TORN && w->file.number < w->last) {
		*ret_why = "cut, though another segment follows";
		return -EBADMSG;
	}
	if (r != READ_OK)
		return r;
	r = take_frame(w, &f, ret_why);
	return r < 0 ? r : READ_OK;
}
