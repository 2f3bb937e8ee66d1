// SPDX-License-Identifier: Apache-2.0
/* Cursor over a journal that may still grow. Checks what a consumer needs (checksums, sequence,
 * lengths); the hash chain is the business of store_verify. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/store/segment.h"

struct journal_reader {
	int dirfd;
	struct segment_file file; /* fd -1: no segment yet */
	uint64_t off;		  /* of the next frame */
	uint64_t segment_first;	  /* sequence of the segment's first record */
	uint64_t next_seq;	  /* of the next record to give */
	uint64_t skip_to;	  /* records before this one are passed over */
	bool end;		  /* the seal was read */
	bool final;		  /* a next segment exists: nothing will be added to this one */

	struct unpacker unpacker;
	const uint8_t *raw; /* records left of the current frame, lengths checked one by one */
	size_t raw_n;
	uint32_t left;	  /* records the header promised */
	struct str aside; /* of the last frame, when it has no records but something else */
};

DEFINE_AUTO(journal_reader, journal_reader_free)

void journal_reader_free(struct journal_reader *r)
{
	if (!r)
		return;
	segment_file_close(&r->file);
	unpacker_done(&r->unpacker);
	if (r->dirfd >= 0)
		close(r->dirfd);
	free(r);
}

int journal_reader_open_kind(struct journal_reader **ret, int dirfd, enum segment_kind kind,
			     struct err *err)
{
	AUTO(journal_reader) struct journal_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_set(err, ENOMEM, "journal reader: %m");
	r->file = SEGMENT_FILE_OF(kind);
	r->next_seq = r->skip_to = 1;
	r->dirfd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->dirfd < 0)
		return err_set(err, errno, "bundle directory: %m");
	*ret = take_ptr(r);
	return 0;
}

int journal_reader_open(struct journal_reader **ret, int dirfd, struct err *err)
{
	return journal_reader_open_kind(ret, dirfd, SEGMENT_EVENTS, err);
}

static const char *kind_name(const struct journal_reader *r)
{
	return r->file.kind == SEGMENT_TTY ? "tty" : "events";
}

static int bad(struct journal_reader *r, int code, const char *why, struct err *err)
{
	return err_set(err, code, "%s.%04u.seg, byte %llu, at record %llu: %s", kind_name(r),
		       r->file.number, (unsigned long long)r->off, (unsigned long long)r->next_seq,
		       why);
}

/* 1: open, its header read; 0: not there, or its header not complete. */
static int open_segment(struct journal_reader *r, unsigned number, struct segment_file *ret,
			struct segment_header *ret_h, struct err *err)
{
	struct segment_file f = SEGMENT_FILE_OF(r->file.kind);
	const char *why;
	int s;

	s = segment_file_open(&f, r->dirfd, number, O_RDONLY);
	if (s == -ENOENT)
		return 0;
	if (s < 0)
		return err_set(err, s, "%s.%04u.seg: %s", kind_name(r), number,
			       s == -EMEDIUMTYPE || s == -ELOOP ? "it is no regular file"
								: strerror(-s));
	s = segment_header_read(&f, ret_h, &why);
	if (s == READ_OK && ret_h->number != number) {
		s = -EBADMSG;
		why = "its header has another number than its name";
	}
	if (s != READ_OK) {
		segment_file_close(&f);
		if (s == -EBADMSG)
			return err_set(err, s, "%s.%04u.seg: %s", kind_name(r), number, why);
		return s < 0 ? err_set(err, s, "%s.%04u.seg: %m", kind_name(r), number) : 0;
	}
	*ret = f;
	return 1;
}

static void enter_segment(struct journal_reader *r, struct segment_file *f,
			  const struct segment_header *h)
{
	segment_file_close(&r->file);
	r->file = *f;
	r->off = SEGMENT_HEADER_LEN;
	r->segment_first = r->next_seq = h->first_seq;
	r->left = 0;
	r->raw_n = 0;
	r->end = r->final = false;
}

/* At the end of what the segment holds: on to the next, if it goes on from exactly here. When it
 * begins later, the old segment got its last frames after we looked: look there again. */
static int next_segment(struct journal_reader *r, struct err *err)
{
	struct segment_file f = SEGMENT_FILE_OF(r->file.kind);
	struct segment_header h;
	uint64_t size = 0;
	int s;

	if (r->file.fd >= 0 && r->file.number == SEGMENT_NUMBER_MAX)
		return 0;
	s = open_segment(r, r->file.fd < 0 ? 1 : r->file.number + 1, &f, &h, err);
	if (s <= 0)
		return s;
	if (r->file.fd < 0 && h.first_seq != 1) {
		segment_file_close(&f);
		return err_set(err, EBADMSG, "%s.0001.seg does not begin with record 1",
			       kind_name(r));
	}
	if (r->file.fd >= 0) {
		s = segment_file_size(&r->file, &size);
		if (s < 0 || h.first_seq != r->next_seq || size != r->off) {
			segment_file_close(&f);
			if (s < 0)
				return bad(r, s, strerror(-s), err);
			if (size > r->off && !r->final) {
				r->final = true;
				return 1;
			}
			return bad(r, EBADMSG, "the next segment does not go on from here", err);
		}
	}
	enter_segment(r, &f, &h);
	return 1;
}

static const char *frame_fits(const struct journal_reader *r, const struct frame_header *h)
{
	if (h->first_seq != r->next_seq)
		return "the frame's sequence number does not go on from the one before";
	return NULL;
}

/* What stands behind the seal is not of whoever sealed it, and no reader may keep silent about it. */
static const char *behind_seal(struct journal_reader *r, uint64_t end)
{
	struct segment_file f = SEGMENT_FILE_OF(r->file.kind);
	uint64_t size;

	if (segment_file_size(&r->file, &size) == 0 && size > end)
		return "bytes were added behind the seal";
	if (r->file.number < SEGMENT_NUMBER_MAX &&
	    segment_file_open(&f, r->dirfd, r->file.number + 1, O_RDONLY) == 0) {
		segment_file_close(&f);
		return "a segment was added behind the seal";
	}
	return NULL;
}

/* READ_OK with a frame of records ready, or passed over; READ_END: nothing (more) yet. */
static int next_frame(struct journal_reader *r, struct err *err)
{
	bool retried = false;
	struct frame frame;
	const char *why;
	int s;

again:
	s = frame_read_header(&r->file, r->off, &frame, &why);
	if (s == READ_OK && frame.h.first_seq == r->next_seq &&
	    frame.h.first_seq + frame.h.n <= r->skip_to && frame.h.n) {
		uint64_t size;

		/* passed over by its header alone, when all of it is there */
		s = segment_file_size(&r->file, &size);
		if (s == 0 && frame_end(&frame) <= size) {
			r->off = frame_end(&frame);
			r->next_seq += frame.h.n;
			return READ_OK;
		}
		s = s < 0 ? s : READ_TORN;
	}
	if (s == READ_OK)
		s = frame_read(&r->file, r->off, &frame, &why);
	if (s == READ_OK && (why = frame_fits(r, &frame.h)))
		s = -EBADMSG;
	if (s == -EBADMSG && !retried) {
		/* we may hold the torn end that a recovery has replaced since */
		segment_file_forget(&r->file);
		retried = true;
		goto again;
	}
	if (s == READ_TORN || s == READ_END) {
		segment_file_forget(&r->file);
		return READ_END;
	}
	if (s < 0)
		return bad(r, s, s == -EBADMSG ? why : strerror(-s), err);
	r->aside = (struct str){ 0 };
	if (frame.h.type == FRAME_DATA || frame.h.type == FRAME_ESCROW) {
		const uint8_t *raw;

		s = frame_unpack(&r->unpacker, &frame, &raw);
		if (s < 0)
			return bad(r, s,
				   s == -EBADMSG ? "the frame does not decompress to its size"
						 : strerror(-s),
				   err);
		if (frame.h.type == FRAME_ESCROW) {
			r->aside = (struct str){ (const char *)raw, frame.h.raw_len };
		} else {
			r->raw = raw;
			r->raw_n = frame.h.raw_len;
			r->left = frame.h.n;
		}
	} else if (frame.h.type == FRAME_SEAL) {
		r->off = frame_end(&frame);
		why = behind_seal(r, r->off);
		if (why)
			return bad(r, EBADMSG, why, err);
		r->end = true;
	}
	r->off = frame_end(&frame);
	return READ_OK;
}

static int take_record(struct journal_reader *r, struct str *ret, struct err *err)
{
	uint32_t len;

	if (r->raw_n < 4 || (len = get_le32(r->raw)) == 0 || len > r->raw_n - 4 ||
	    (r->left == 1 && len != r->raw_n - 4)) {
		r->left = 0;
		return bad(r, EBADMSG, "the records do not fit into their frame", err);
	}
	*ret = (struct str){ (const char *)r->raw + 4, len };
	r->raw += 4 + (size_t)len;
	r->raw_n -= 4 + (size_t)len;
	r->left--;
	r->next_seq++;
	return 1;
}

/* READ_OK: one more frame was read; READ_END: nothing more is there yet. */
static int go_on(struct journal_reader *r, struct err *err)
{
	int s = r->file.fd >= 0 ? next_frame(r, err) : READ_END;

	return s == READ_END ? next_segment(r, err) : s;
}

int journal_reader_next_aside(struct journal_reader *r, struct str *ret, struct err *err)
{
	int s;

	for (;;) {
		r->next_seq += r->left;
		r->left = 0;
		r->aside = (struct str){ 0 };
		if (r->end)
			return 0;
		s = go_on(r, err);
		if (s <= 0)
			return s;
		if (r->aside.n) {
			*ret = r->aside;
			return 1;
		}
	}
}

int journal_reader_next(struct journal_reader *r, struct str *ret_rec, uint64_t *ret_seq,
			struct err *err)
{
	int s;

	for (;;) {
		if (r->left) {
			struct str rec;

			s = take_record(r, &rec, err);
			if (s < 0)
				return s;
			if (r->next_seq <= r->skip_to)
				continue;
			*ret_rec = rec;
			if (ret_seq)
				*ret_seq = r->next_seq - 1;
			return 1;
		}
		if (r->end)
			return 0;
		s = go_on(r, err);
		if (s < 0)
			return s;
		if (s == 0) {
			/* idle readers are many and cost nothing but their descriptors */
			segment_file_forget(&r->file);
			unpacker_done(&r->unpacker);
			return 0;
		}
	}
}

/* Where a reader wants to go: to a record, or (seq 0) to a moment. */
struct place {
	uint64_t seq, boot_ns;
};

static bool begins_before(struct segment_file *f, const struct segment_header *h,
			  const struct place *to)
{
	struct frame first;
	const char *why;

	if (to->seq)
		return h->first_seq <= to->seq;
	return frame_read_header(f, SEGMENT_HEADER_LEN, &first, &why) == READ_OK &&
	       first.h.boot_ns < to->boot_ns;
}

/* The last segment that begins before it; they are numbered in order. */
static int find_segment(struct journal_reader *r, const struct place *to, struct err *err)
{
	unsigned low = 1, high = SEGMENT_NUMBER_MAX + 1;
	struct segment_file best = SEGMENT_FILE_OF(r->file.kind), f;
	struct segment_header best_h = { 0 }, h;
	int s;

	/* gallop, then halve: a bundle has few segments, but may have thousands */
	for (unsigned at = 1; low < high;) {
		f = SEGMENT_FILE_OF(r->file.kind);
		s = open_segment(r, at, &f, &h, err);
		if (s < 0) {
			segment_file_close(&best);
			return s;
		}
		if (s == 1 && (at == 1 || begins_before(&f, &h, to))) {
			segment_file_close(&best);
			best = f;
			best_h = h;
			low = at + 1;
			at = high > SEGMENT_NUMBER_MAX ? MIN(at * 2, SEGMENT_NUMBER_MAX)
						       : low + (high - low) / 2;
			if (at < low)
				at = low;
		} else {
			segment_file_close(&f);
			high = at;
			at = low + (high - low) / 2;
		}
	}
	if (best.fd < 0)
		return 0;
	enter_segment(r, &best, &best_h);
	return 1;
}

static void go_to_start(struct journal_reader *r)
{
	segment_file_close(&r->file);
	r->next_seq = 1;
	r->left = 0;
	r->end = false;
}

int journal_reader_seek(struct journal_reader *r, uint64_t seq, struct err *err)
{
	const struct place to = { .seq = seq + 1 };
	int s;

	if (seq == UINT64_MAX)
		return err_set(err, EINVAL, "no sequence number");
	r->skip_to = seq + 1;
	/* forward, a step in the same segment is cheaper than a search */
	if (r->file.fd >= 0 && r->next_seq <= r->skip_to && r->skip_to - r->next_seq < 4096)
		return 0;
	s = find_segment(r, &to, err);
	if (s == 0)
		go_to_start(r); /* nothing there yet */
	return s < 0 ? s : 0;
}

/* Frames that were passed over, the latest ones. */
#define PASSED_MAX 1024

struct passed {
	struct {
		unsigned segment;
		uint64_t off, seq;
		uint32_t raw_len;
	} v[PASSED_MAX];
	size_t n; /* in all */
};

static void note_passed(struct passed *p, const struct journal_reader *r, const struct frame *f)
{
	size_t i = p->n++ % PASSED_MAX;

	p->v[i].segment = r->file.number;
	p->v[i].off = r->off;
	p->v[i].seq = r->next_seq;
	p->v[i].raw_len = f->h.raw_len;
}

/* Passes over frames that were closed before `boot_ns`. 1: stands at one that was not; 0: at the end. */
static int pass_older(struct journal_reader *r, uint64_t boot_ns, struct passed *passed,
		      struct err *err)
{
	struct frame frame;
	uint64_t size;
	const char *why;
	int s;

	for (;;) {
		s = frame_read_header(&r->file, r->off, &frame, &why);
		if (s == READ_OK)
			s = segment_file_size(&r->file, &size);
		if (s == 0 && frame_end(&frame) <= size && frame.h.type == FRAME_DATA &&
		    frame.h.first_seq == r->next_seq) {
			if (frame.h.boot_ns >= boot_ns)
				return 1;
			if (passed)
				note_passed(passed, r, &frame);
			r->off = frame_end(&frame);
			r->next_seq += frame.h.n;
			continue;
		}
		if (s == 0 && frame_end(&frame) <= size && frame.h.type >= FRAME_SKIP &&
		    frame.h.first_seq == r->next_seq) {
			r->off = frame_end(&frame);
			continue;
		}
		if (s < 0 && s != -EBADMSG)
			return bad(r, s, strerror(-s), err);
		/* what does not fit is for next_frame to tell */
		s = next_segment(r, err);
		if (s <= 0)
			return s;
	}
}

int journal_reader_seek_time(struct journal_reader *r, uint64_t boot_ns, struct err *err)
{
	const struct place to = { .boot_ns = boot_ns };
	int s;

	r->skip_to = 1;
	s = find_segment(r, &to, err);
	if (s == 1)
		s = pass_older(r, boot_ns, NULL, err);
	else if (s == 0)
		go_to_start(r);
	return s < 0 ? s : 0;
}

/* Into segment `number`, which was there before. */
static int enter_number(struct journal_reader *r, unsigned number, struct err *err)
{
	struct segment_file f = SEGMENT_FILE_OF(r->file.kind);
	struct segment_header h;
	int s = open_segment(r, number, &f, &h, err);

	if (s < 0)
		return s;
	if (s == 0)
		return err_set(err, EBADMSG, "%s.%04u.seg is gone", kind_name(r), number);
	enter_segment(r, &f, &h);
	return 0;
}

static int go_back(struct journal_reader *r, const struct passed *p, size_t bytes, struct err *err)
{
	size_t i = p->n, back = MIN(p->n, (size_t)PASSED_MAX);
	uint64_t sum = 0;
	int s = 0;

	if (!back)
		return 0;
	while (sum < bytes && i > p->n - back)
		sum += p->v[--i % PASSED_MAX].raw_len;
	if (i == p->n)
		return 0;
	i %= PASSED_MAX;
	if (p->v[i].segment != r->file.number)
		s = enter_number(r, p->v[i].segment, err);
	if (s < 0)
		return s;
	r->off = p->v[i].off;
	r->next_seq = p->v[i].seq;
	r->end = r->final = false;
	return 0;
}

int journal_reader_seek_back(struct journal_reader *r, uint64_t boot_ns, size_t bytes,
			     bool *ret_start, struct err *err)
{
	const struct place to = { .boot_ns = boot_ns };
	auto_free struct passed *p = malloc(sizeof(*p));
	int s;

	if (!p)
		return err_set(err, ENOMEM, "journal reader: %m");
	p->n = 0;
	r->skip_to = 1;
	s = find_segment(r, &to, err);
	if (s == 0)
		go_to_start(r);
	if (s == 1 && r->file.number > 1)
		s = enter_number(r, r->file.number - 1, err) < 0 ? -EBADMSG : 1;
	if (s == 1)
		s = pass_older(r, boot_ns, p, err);
	if (s >= 0)
		s = go_back(r, p, bytes, err);
	if (s < 0)
		return s;
	*ret_start = r->next_seq == 1;
	return 0;
}

bool journal_reader_at_end(const struct journal_reader *r)
{
	return r->end && r->left == 0;
}
