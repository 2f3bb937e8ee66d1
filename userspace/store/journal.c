// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/journal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "userspace/base/clock.h"
#include "userspace/store/crc32c.h"

#define FILE_MODE	0640
#define KEEP_MIN	(64 * 1024)	  /* buffers up to this size stay */
#define JOURNAL_LOG_MAX (4 * 1024 * 1024) /* entries of 14,000 frames */

void journal_free(struct journal *j)
{
	if (!j)
		return;
	if (j->fd >= 0)
		close(j->fd);
	if (j->dirfd >= 0)
		close(j->dirfd);
	if (j->lock_fd >= 0)
		close(j->lock_fd);
	if (j->log_fd >= 0)
		close(j->log_fd);
	signer_free(j->signer);
	buf_done(&j->log);
	ZSTD_freeCCtx(j->zstd);
	chain_free(j->chain);
	buf_done(&j->raw);
	buf_done(&j->out);
	buf_done(&j->aside);
	free(j->segments);
	free(j->tty);
	free(j);
}

/* Level 1 with a hash table that stays in the first-level cache: 15 to 20 % less time than its own
 * default for 0 to 3 % more bytes, measured on event records in 256 KiB frames. */
#define FAST_HASH_LOG  12
#define FAST_MIN_MATCH 6

static int set_up_zstd(struct journal *j, int level)
{
	struct {
		ZSTD_cParameter name;
		int value;
	} params[] = {
		{ ZSTD_c_compressionLevel, level ? level : 1 },
		/* our checksum covers the payload, and the chain what is in it */
		{ ZSTD_c_checksumFlag, 0 },
		{ ZSTD_c_hashLog, level ? 0 : FAST_HASH_LOG },
		{ ZSTD_c_minMatch, level ? 0 : FAST_MIN_MATCH },
	};

	j->zstd = ZSTD_createCCtx();
	if (!j->zstd)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(params); i++)
		if (ZSTD_isError(ZSTD_CCtx_setParameter(j->zstd, params[i].name, params[i].value)))
			return -EINVAL;
	return 0;
}

static int new_of_kind(struct journal **ret, int dirfd, enum segment_kind kind,
		       const struct journal_options *opt, struct err *err)
{
	auto_journal struct journal *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_set(err, ENOMEM, "journal: %m");
	j->fd = j->dirfd = j->lock_fd = j->log_fd = -1;
	j->kind = kind;
	buf_init(&j->raw, FRAME_RAW_LIMIT);
	buf_init(&j->log, JOURNAL_LOG_MAX);
	buf_init(&j->out, JOURNAL_BUFFER_MAX + 2 * FRAME_RAW_LIMIT);
	buf_init(&j->aside, STORE_ASIDE_MAX);
	j->segment_max = opt->segment_max ? opt->segment_max : STORE_SEGMENT_MAX;
	j->no_sync = opt->no_sync;
	j->next_seq = 1;
	memcpy(j->tool, "warder", 7);
	if (opt->tool)
		memcpy(j->tool, opt->tool, strnlen(opt->tool, TOOL_LEN - 1) + 1);
	j->tool[TOOL_LEN - 1] = 0;
	j->dirfd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	j->lock_fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dirfd < 0 || j->lock_fd < 0)
		return err_set(err, errno, "bundle directory: %m");
	if (kind == SEGMENT_EVENTS && flock(j->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno == EWOULDBLOCK ? EBUSY : errno,
			       "bundle directory: another writer holds the journal");
	r = chain_new(&j->chain);
	if (r == 0)
		r = set_up_zstd(j, opt->zstd_level);
	if (r < 0)
		return err_set(err, r, "journal: %m");
	if (opt->sign && kind == SEGMENT_EVENTS) {
		r = signer_new(&j->signer, opt, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(j);
	return 0;
}

int journal_new(struct journal **ret, int dirfd, const struct journal_options *opt, struct err *err)
{
	return new_of_kind(ret, dirfd, SEGMENT_EVENTS, opt, err);
}

int journal_push_segment(struct journal *j, const struct manifest_segment *s)
{
	if (j->n_segments == j->cap_segments) {
		unsigned cap = j->cap_segments ? 2 * j->cap_segments : 4;
		struct manifest_segment *p;

		if (j->n_segments == SEGMENT_NUMBER_MAX)
			return -EFBIG;
		p = realloc(j->segments, cap * sizeof(*p));
		if (!p)
			return -ENOMEM;
		j->segments = p;
		j->cap_segments = cap;
	}
	j->segments[j->n_segments++] = *s;
	return 0;
}

/* Under a temporary name first: a segment that has its name has its whole header. */
static int create_segment(struct journal *j, const uint8_t header[SEGMENT_HEADER_LEN],
			  unsigned number, int *ret_fd)
{
	char name[SEGMENT_NAME_LEN + 1], tmp[SEGMENT_NAME_LEN + 8];
	auto_close int fd = -1;
	ssize_t w;
	int r = 0;

	segment_kind_name(name, j->kind, number);
	snprintf(tmp, sizeof(tmp), ".%s.tmp", name);
	unlinkat(j->dirfd, tmp, 0);
	fd = openat(j->dirfd, tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (fd < 0)
		return -errno;
	w = pwrite(fd, header, SEGMENT_HEADER_LEN, 0);
	if (w != SEGMENT_HEADER_LEN)
		r = w < 0 ? -errno : -ENOSPC;
	else if (!j->no_sync && number > 1 && fdatasync(fd) < 0)
		r = -errno;
	else if (renameat2(j->dirfd, tmp, j->dirfd, name, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(j->dirfd, tmp, 0);
		return r;
	}
	*ret_fd = take_fd(fd);
	return 0;
}

int journal_add_segment(struct journal *j)
{
	struct segment_header h = {
		.kind = j->kind,
		.number = j->n_segments + 1,
		.first_seq = j->next_seq - j->raw_n,
		.created_ns = clock_real_ns(),
	};
	struct manifest_segment s = { .first_seq = h.first_seq, .bytes = SEGMENT_HEADER_LEN };
	uint8_t bytes[SEGMENT_HEADER_LEN], link[STORE_HASH_LEN];
	int fd = -1, r;

	if (j->n_segments == SEGMENT_NUMBER_MAX)
		return -EFBIG;
	memcpy(h.session, j->session, SESSION_LEN);
	memcpy(h.prev, j->link, STORE_HASH_LEN);
	memcpy(h.head, j->head, STORE_HASH_LEN);
	segment_header_encode(bytes, &h);
	r = chain_hash(j->chain, link, bytes, sizeof(bytes), NULL, 0);
	if (r < 0)
		return r;
	memcpy(s.end, link, STORE_HASH_LEN);
	r = create_segment(j, bytes, h.number, &fd);
	if (r < 0)
		return r;
	r = journal_push_segment(j, &s);
	if (r < 0) {
		close(fd);
		return r;
	}
	if (j->fd >= 0)
		close(j->fd);
	j->fd = fd;
	j->off = SEGMENT_HEADER_LEN;
	memcpy(j->link, link, STORE_HASH_LEN);
	if (h.number == 1)
		j->created_ns = h.created_ns;
	j->names_dirty = true;
	return 0;
}

int journal_write_open_manifest(struct journal *j)
{
	struct manifest m = {
		.session = j->session,
		.tool = j->tool,
		.created_ns = j->created_ns,
		.host_key = j->signer ? signer_host_key(j->signer) : NULL,
	};
	auto_buf struct buf text = { 0 };
	auto_close int fd = -1;
	int r;

	buf_init(&text, MANIFEST_MAX);
	r = manifest_write(&text, &m);
	if (r < 0)
		return r;
	fd = openat(j->dirfd, MANIFEST_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    FILE_MODE);
	if (fd < 0)
		return -errno;
	if (write(fd, text.p, text.n) != (ssize_t)text.n)
		return -ENOSPC;
	return 0;
}

int journal_create(struct journal **ret, int dirfd, const struct journal_options *opt,
		   struct err *err)
{
	auto_journal struct journal *j = NULL;
	int r;

	if (!session_is_valid(opt->session))
		return err_set(err, EINVAL, "journal: the session name is malformed");
	r = journal_new(&j, dirfd, opt, err);
	if (r < 0)
		return r;
	memcpy(j->session, opt->session, strlen(opt->session) + 1);
	if (faccessat(j->dirfd, MANIFEST_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(err, EEXIST, "bundle directory: there is a journal already");
	r = chain_start(j->chain, j->head, j->session);
	if (r == 0)
		r = journal_add_segment(j);
	if (r < 0)
		return err_set(err, r, "bundle directory: events.0001.seg: %m");
	if (j->signer)
		r = journal_begin_log(j, err);
	if (r < 0)
		return r;
	r = journal_write_open_manifest(j);
	if (r < 0)
		return err_set(err, r, "bundle directory: " MANIFEST_NAME ": %m");
	*ret = take_ptr(j);
	return 0;
}

int journal_create_tty(struct journal **ret, int dirfd, const struct journal_options *opt,
		       struct err *err)
{
	auto_journal struct journal *j = NULL;
	int r;

	if (!session_is_valid(opt->session))
		return err_set(err, EINVAL, "terminal: the session name is malformed");
	r = new_of_kind(&j, dirfd, SEGMENT_TTY, opt, err);
	if (r < 0)
		return r;
	memcpy(j->session, opt->session, strlen(opt->session) + 1);
	r = chain_start_tty(j->chain, j->head, j->session);
	if (r == 0)
		r = journal_add_segment(j);
	if (r < 0)
		return err_set(err, r, "bundle directory: tty.0001.seg: %m");
	*ret = take_ptr(j);
	return 0;
}

/* ---- append ---- */

int journal_put_frame(struct journal *j, struct frame_header *h, const uint8_t *payload,
		      const uint8_t head[STORE_HASH_LEN], const struct merkle *tree)
{
	uint8_t *p = (uint8_t *)j->out.p + j->out.n, link[STORE_HASH_LEN];
	struct manifest_segment *s = &j->segments[j->n_segments - 1];
	int r;

	if (payload != p + FRAME_HEADER_LEN)
		memcpy(p + FRAME_HEADER_LEN, payload, h->comp_len);
	h->payload_crc = crc32c(p + FRAME_HEADER_LEN, h->comp_len);
	h->real_ns = clock_real_ns();
	h->boot_ns = clock_boot_ns();
	memcpy(h->prev, j->link, STORE_HASH_LEN);
	memcpy(h->head, head, STORE_HASH_LEN);
	frame_header_encode(p, h);
	r = chain_hash(j->chain, link, p, FRAME_HEADER_LEN + (size_t)h->comp_len, NULL, 0);
	if (r == 0 && j->signer && h->type < FRAME_SKIP)
		r = journal_checkpoint(j,
				       h->type == FRAME_SEAL ? CHECKPOINT_SEAL : CHECKPOINT_FRAME,
				       s->bytes + FRAME_HEADER_LEN + h->comp_len,
				       h->first_seq + h->n - 1, head, link, tree ? tree : &j->tree);
	if (r < 0)
		return r;
	if (tree)
		j->tree = *tree;
	memcpy(j->link, link, STORE_HASH_LEN);
	memcpy(j->head, head, STORE_HASH_LEN);
	j->out.n += FRAME_HEADER_LEN + (size_t)h->comp_len;
	s->bytes += FRAME_HEADER_LEN + (uint64_t)h->comp_len;
	if (h->type == FRAME_DATA) {
		s->records += h->n;
		s->frames++;
		memcpy(s->end, link, STORE_HASH_LEN);
	}
	return 0;
}

/* Stored: what is sealed does not get smaller. */
int journal_close_aside(struct journal *j)
{
	struct frame_header h = {
		.type = FRAME_ESCROW,
		.codec = CODEC_STORED,
		.first_seq = j->next_seq - j->raw_n,
		.raw_len = (uint32_t)j->aside.n,
		.comp_len = (uint32_t)j->aside.n,
	};
	int r;

	if (!j->aside.n)
		return 0;
	r = buf_reserve(&j->out, FRAME_HEADER_LEN + j->aside.n);
	if (r < 0) {
		j->out.failed = false;
		return r == -EMSGSIZE ? -ENOBUFS : r;
	}
	r = journal_put_frame(j, &h, (const uint8_t *)j->aside.p, j->head, NULL);
	if (r == 0)
		buf_done(&j->aside);
	return r;
}

int journal_put_aside(struct journal *j, struct str payload)
{
	int r;

	if (j->state != JOURNAL_OPEN)
		return -EROFS;
	if (!payload.n || payload.n > STORE_ASIDE_MAX)
		return -EMSGSIZE;
	r = journal_close_aside(j);
	if (r == 0)
		r = buf_add(&j->aside, payload.p, payload.n);
	if (r < 0) {
		j->aside.failed = false;
		return r;
	}
	if (!j->deadline)
		j->deadline = clock_ns(CLOCK_MONOTONIC) + STORE_COMMIT_NS;
	return 0;
}

int journal_close_frame(struct journal *j)
{
	struct frame_header h = {
		.type = FRAME_DATA,
		.codec = CODEC_ZSTD,
		.first_seq = j->next_seq - j->raw_n,
		.n = j->raw_n,
		.raw_len = (uint32_t)j->raw.n,
	};
	uint8_t head[STORE_HASH_LEN];
	struct merkle room_for_tree, *tree = NULL;
	const uint8_t *payload;
	uint32_t before;
	uint8_t *room;
	size_t got;
	int r;

	r = journal_close_aside(j);
	if (r < 0 || j->raw_n == 0)
		return r;
	r = buf_reserve(&j->out, FRAME_HEADER_LEN + ZSTD_compressBound(j->raw.n));
	if (r < 0) {
		j->out.failed = false;
		return r == -EMSGSIZE ? -ENOBUFS : r;
	}
	memcpy(head, j->head, STORE_HASH_LEN);
	if (j->signer) {
		room_for_tree = j->tree;
		tree = &room_for_tree;
	}
	if (chain_records(j->chain, head, tree, (const uint8_t *)j->raw.p, j->raw.n) != j->raw_n)
		return -EIO;
	room = (uint8_t *)j->out.p + j->out.n + FRAME_HEADER_LEN;
	got = ZSTD_compress2(j->zstd, room, ZSTD_compressBound(j->raw.n), j->raw.p, j->raw.n);
	payload = room;
	if (ZSTD_isError(got) || got >= j->raw.n) {
		h.codec = CODEC_STORED;
		got = j->raw.n;
		payload = (const uint8_t *)j->raw.p;
	}
	h.comp_len = (uint32_t)got;
	before = j->redactions;
	if (j->kind == SEGMENT_EVENTS)
		j->redactions = redactions_add(
			before, frame_redactions((const uint8_t *)j->raw.p, j->raw.n));
	r = journal_put_frame(j, &h, payload, head, tree);
	if (r < 0) {
		j->redactions = before;
		return r;
	}
	buf_reset(&j->raw);
	j->raw_n = 0;
	return 0;
}

/* After a short write: how much of it is whole frames. */
static size_t whole_frames(const struct buf *out, size_t written)
{
	struct frame_header h;
	size_t at = 0;

	while (written - at >= FRAME_HEADER_LEN &&
	       !frame_header_decode(&h, (const uint8_t *)out->p + at) &&
	       written - at - FRAME_HEADER_LEN >= h.comp_len)
		at += FRAME_HEADER_LEN + (size_t)h.comp_len;
	return at;
}

/* Writes as many whole frames as the disk takes and leaves no torn one behind. */
static int write_out(struct journal *j, size_t *ret_written)
{
	size_t done = 0;
	int r = 0;

	while (done < j->out.n) {
		ssize_t w = pwrite(j->fd, j->out.p + done, j->out.n - done, (off_t)(j->off + done));

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			r = w < 0 ? -errno : -ENOSPC;
			break;
		}
		done += (size_t)w;
	}
	if (r < 0) {
		done = whole_frames(&j->out, done);
		/* fails only on a disk that fails; a torn end is what recovery is for */
		if (ftruncate(j->fd, (off_t)(j->off + done)) < 0)
			r = -errno;
	}
	*ret_written = done;
	return r;
}

static int sync_names(struct journal *j)
{
	auto_close int fd = -1;

	if (!j->names_dirty || j->no_sync)
		return 0;
	fd = openat(j->dirfd, MANIFEST_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fsync(fd) < 0)
		return -errno;
	if (fsync(j->dirfd) < 0)
		return -errno;
	j->names_dirty = false;
	return 0;
}

static int flush_out(struct journal *j)
{
	size_t written = 0;
	int r;

	r = write_out(j, &written);
	if (written) {
		/* Kept until the sync is good: after a failed one the kernel may have dropped the
		 * pages, and only writing them again brings them back. */
		if (!j->no_sync && fdatasync(j->fd) < 0)
			return -errno;
		buf_consume(&j->out, written);
		j->off += written;
	}
	if (r == 0 && j->signer)
		r = journal_flush_log(j, false);
	if (r < 0)
		return r;
	return sync_names(j);
}

int journal_flush(struct journal *j)
{
	int r = flush_out(j);

	j->io_error = r;
	if (r < 0) {
		j->deadline = clock_ns(CLOCK_MONOTONIC) + STORE_COMMIT_NS;
		return r;
	}
	j->durable_seq = j->next_seq - 1 - j->raw_n;
	if (j->raw_n == 0)
		j->deadline = 0;
	/* A new segment that cannot be made is no loss: the old one grows, the next flush tries. */
	if (j->state == JOURNAL_OPEN && j->off >= j->segment_max)
		(void)journal_add_segment(j);
	return 0;
}

uint64_t journal_next_seq(const struct journal *j)
{
	return j->next_seq;
}

void journal_set_lost(struct journal *j, uint64_t lost)
{
	j->lost = lost;
}

uint64_t journal_durable_seq(const struct journal *j)
{
	return j->durable_seq;
}

size_t journal_behind(const struct journal *j)
{
	return j->raw.n + j->out.n + j->aside.n;
}

uint64_t journal_deadline(const struct journal *j)
{
	return j->deadline;
}

/* Full: try the disk again, but not for every record that is turned away. */
static bool make_room(struct journal *j, size_t need)
{
	if (clock_ns(CLOCK_MONOTONIC) >= j->deadline)
		journal_flush(j);
	return journal_behind(j) + need <= JOURNAL_BUFFER_MAX;
}

int journal_append(struct journal *j, struct str rec)
{
	size_t need = 4 + rec.n;
	int r;

	if (j->state != JOURNAL_OPEN)
		return -EROFS;
	if (rec.n == 0)
		return -EINVAL;
	if (rec.n > STORE_RECORD_MAX)
		return -EMSGSIZE;
	if (j->raw_n && j->raw.n + need > STORE_FRAME_RAW_MAX) {
		r = journal_close_frame(j);
		if (r < 0)
			return r;
		if (j->out.n >= JOURNAL_FLUSH_AT || j->io_error)
			journal_flush(j);
	}
	if (journal_behind(j) + need > JOURNAL_BUFFER_MAX && !make_room(j, need))
		return -ENOBUFS;
	r = buf_reserve(&j->raw, need);
	if (r < 0)
		return r;
	put_le32((uint8_t *)j->raw.p + j->raw.n, (uint32_t)rec.n);
	memcpy(j->raw.p + j->raw.n + 4, rec.p, rec.n);
	j->raw.n += need;
	j->raw_n++;
	j->next_seq++;
	if (!j->deadline)
		j->deadline = clock_ns(CLOCK_MONOTONIC) + STORE_COMMIT_NS;
	return j->io_error;
}

/* A burst leaves buffers behind that a quiet session of a thousand need not keep. */
static void trim(struct buf *b, size_t used)
{
	if (b->n == 0 && b->cap > KEEP_MIN && used < b->cap / 4)
		buf_done(b);
}

int journal_commit(struct journal *j)
{
	size_t raw_used = j->raw.n, out_used;
	int r;

	if (j->state != JOURNAL_OPEN)
		return j->state == JOURNAL_SEALED ? 0 : -EROFS;
	r = journal_close_frame(j);
	if (r < 0)
		return r;
	out_used = j->out.n;
	r = journal_flush(j);
	trim(&j->raw, raw_used);
	trim(&j->out, out_used);
	return r;
}
