// SPDX-License-Identifier: Apache-2.0
/* Go on with a journal whose writer died. Everything before the first incomplete frame stays; what
 * comes behind it was never reported durable. */
#include "userspace/store/journal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/store/segment.h"
#include "userspace/store/terminal_walk.h"

/* A crash tears at most what was written and not synced. More than that is damage, and cutting it
 * away would destroy evidence. */
#define RECOVER_CUT_MAX (JOURNAL_BUFFER_MAX + 2 * FRAME_RAW_LIMIT)

struct recovery {
	struct journal *j;
	struct segment_list list;
	struct segment_file file;
	struct manifest_info manifest;
	bool has_manifest;
	struct checkpoint_file log; /* fd -1: not signed */
	struct unpacker unpacker;
	/* Cut only when everything was looked at and nothing speaks against it. */
	uint64_t keep, cut; /* of the last segment with records */
	bool drop_last;	    /* the one behind it has not even a header */
};

static int segment_err(struct err *err, int code, unsigned number, const char *why)
{
	return err_set(err, code, "events.%04u.seg: %s", number, why);
}

static int adopt_header(struct recovery *rec, const struct segment_header *h, struct err *err)
{
	struct journal *j = rec->j;
	uint8_t start[STORE_HASH_LEN];
	const char *why = NULL;
	int r;

	r = chain_start(j->chain, start, h->session);
	if (r < 0)
		return err_set(err, r, "journal: %m");
	if (h->number != rec->file.number)
		why = "its header has another number than its name";
	else if (j->session[0] && strcmp(h->session, j->session) != 0)
		why = "it belongs to another session";
	else if (h->number == 1 &&
		 (h->first_seq != 1 || memcmp(h->head, start, STORE_HASH_LEN) != 0))
		why = "it does not begin a journal";
	else if (h->number > 1 &&
		 (h->first_seq != j->next_seq || memcmp(h->prev, j->link, STORE_HASH_LEN) != 0 ||
		  memcmp(h->head, j->head, STORE_HASH_LEN) != 0))
		why = "it does not go on from the segment before";
	if (why)
		return segment_err(err, EBADMSG, rec->file.number, why);
	memcpy(j->session, h->session, SESSION_LEN);
	memcpy(j->head, h->head, STORE_HASH_LEN);
	if (h->number == 1)
		j->created_ns = h->created_ns;
	return 0;
}

/* Runs the chain over a frame's records; changes nothing unless they are good. */
static int take_records(struct recovery *rec, const struct frame *f)
{
	uint8_t head[STORE_HASH_LEN];
	struct journal *j = rec->j;
	struct merkle tree = j->tree;
	const uint8_t *raw;
	int64_t n;
	int r;

	r = frame_unpack(&rec->unpacker, f, &raw);
	if (r < 0)
		return r;
	memcpy(head, j->head, STORE_HASH_LEN);
	n = chain_records(j->chain, head, j->signer ? &tree : NULL, raw, f->h.raw_len);
	if (n == -EIO)
		return -EIO;
	if (n != f->h.n || memcmp(head, f->h.head, STORE_HASH_LEN) != 0)
		return -EBADMSG;
	memcpy(j->head, head, STORE_HASH_LEN);
	j->redactions = redactions_add(j->redactions, frame_redactions(raw, f->h.raw_len));
	j->tree = tree;
	return 0;
}

/* Walks the frames from the segment's start to the first that is not good. *ret_why: NULL when the
 * file ends in good order or in the middle of a frame. */
static int walk(struct recovery *rec, struct manifest_segment *s, const char **ret_why)
{
	struct journal *j = rec->j;
	struct frame f;
	int r;

	*ret_why = NULL;
	for (;;) {
		r = frame_read(&rec->file, s->bytes, &f, ret_why);
		if (r == READ_END || r == READ_TORN || r == -EBADMSG)
			return 0;
		if (r < 0)
			return r;
		if (memcmp(f.h.prev, j->link, STORE_HASH_LEN) != 0 ||
		    f.h.first_seq != j->next_seq) {
			*ret_why = "a frame does not follow the bytes before it";
			return 0;
		}
		if (f.h.type == FRAME_SEAL)
			return -EALREADY;
		r = f.h.type == FRAME_DATA ? take_records(rec, &f) : 0;
		if (r == -EBADMSG) {
			*ret_why = "the records of a frame are not what was written";
			return 0;
		}
		if (r == 0)
			r = chain_hash(j->chain, j->link, f.header,
				       FRAME_HEADER_LEN + (size_t)f.h.comp_len, NULL, 0);
		if (r < 0)
			return r;
		s->bytes = frame_end(&f);
		if (f.h.type == FRAME_DATA) {
			memcpy(s->end, j->link, STORE_HASH_LEN);
			s->records += f.h.n;
			s->frames++;
			j->next_seq += f.h.n;
		}
	}
}

/* May what follows byte `keep` of this segment be cut? */
static int plan_cut(struct recovery *rec, uint64_t keep, const char *why, struct err *err)
{
	unsigned number = rec->file.number;
	uint64_t size;
	int r;

	r = segment_file_size(&rec->file, &size);
	if (r < 0)
		return err_set(err, r, "events.%04u.seg: %m", number);
	rec->keep = keep;
	if (size == keep)
		return 0;
	if (number != rec->list.max)
		return err_set(err, EBADMSG,
			       "events.%04u.seg is damaged at byte %llu, and another segment "
			       "follows; nothing was cut",
			       number, (unsigned long long)keep);
	if (size - keep > RECOVER_CUT_MAX)
		return err_set(
			err, EBADMSG,
			"events.%04u.seg is damaged at byte %llu (%s), %llu bytes before its "
			"end: more than a crash can tear; nothing was cut",
			number, (unsigned long long)keep, why ? why : "incomplete frame",
			(unsigned long long)(size - keep));
	rec->cut = size - keep;
	return 0;
}

static int cut_tail(struct recovery *rec, struct err *err)
{
	char name[SEGMENT_NAME_LEN + 1];

	if (rec->drop_last) {
		segment_name(name, rec->list.max);
		if (unlinkat(rec->j->dirfd, name, 0) < 0)
			return err_set(err, errno, "%s: %m", name);
		return 0;
	}
	if (rec->cut == 0)
		return 0;
	if (ftruncate(rec->j->fd, (off_t)rec->keep) < 0 ||
	    (!rec->j->no_sync && fsync(rec->j->fd) < 0))
		return err_set(err, errno, "events.%04u.seg: %m", rec->list.max);
	return 0;
}

static int take_segment(struct recovery *rec, unsigned number, struct err *err)
{
	struct manifest_segment s = { .bytes = SEGMENT_HEADER_LEN };
	struct journal *j = rec->j;
	struct segment_header h;
	const uint8_t *bytes;
	const char *why = NULL;
	int r;

	r = segment_file_open(&rec->file, j->dirfd, number, O_RDWR);
	if (r < 0)
		return segment_err(err, r, number, strerror(-r));
	r = segment_header_read(&rec->file, &h, &why);
	if (number == rec->list.max && (r == READ_END || r == READ_TORN)) {
		rec->drop_last = true;
		return segment_file_size(&rec->file, &rec->cut);
	}
	if (r != READ_OK)
		return segment_err(err, r < 0 ? r : -EBADMSG, number,
				   why ? why : "its header is incomplete");
	r = adopt_header(rec, &h, err);
	if (r < 0)
		return r;
	if (segment_file_get(&rec->file, 0, SEGMENT_HEADER_LEN, &bytes) != SEGMENT_HEADER_LEN)
		return segment_err(err, EIO, number, "cannot be read");
	r = chain_hash(j->chain, j->link, bytes, SEGMENT_HEADER_LEN, NULL, 0);
	if (r < 0)
		return err_set(err, r, "journal: %m");
	s.first_seq = h.first_seq;
	memcpy(s.end, j->link, STORE_HASH_LEN);
	r = walk(rec, &s, &why);
	if (r == -EALREADY)
		return err_set(err, r, "the bundle is sealed");
	if (r < 0)
		return err_set(err, r, "events.%04u.seg: %m", number);
	r = plan_cut(rec, s.bytes, why, err);
	if (r < 0)
		return r;
	r = journal_push_segment(j, &s);
	return r < 0 ? err_set(err, r, "journal: %m") : 0;
}

static int load_manifest(struct recovery *rec)
{
	auto_buf struct buf text = { 0 };
	int r;

	r = manifest_load(rec->j->dirfd, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	/* one that cannot be read is what a power cut leaves of a new one */
	rec->has_manifest = manifest_parse((struct str){ text.p, text.n }, &rec->manifest) == 0;
	return 0;
}

/* Sealing writes the manifest before the seal, so a crash may leave a sealed manifest and all
 * records. With fewer records somebody has cut a sealed bundle, and we must not sew it up. */
static int check_manifest(const struct recovery *rec, struct err *err)
{
	const struct journal *j = rec->j;
	char head[2 * STORE_HASH_LEN + 1];

	if (!rec->has_manifest)
		return 0;
	if (strcmp(rec->manifest.session, j->session) != 0)
		return err_set(err, EBADMSG, "manifest.json belongs to another session");
	hash_to_hex(head, j->head);
	if (rec->manifest.sealed &&
	    (rec->manifest.records != j->next_seq - 1 || strcmp(head, rec->manifest.head) != 0))
		return err_set(err, EBADMSG,
			       "the bundle was sealed with %llu records and cut or changed since",
			       (unsigned long long)rec->manifest.records);
	return 0;
}

/* The log is written behind the frames it is about, so it never knows more records than are there:
 * if it does, or if an entry is wrong, somebody has been here, and we must not go on over it. */
static int check_log(struct recovery *rec, struct err *err)
{
	struct journal *j = rec->j;
	const char *why = NULL;
	int r;

	if (rec->log.fd < 0)
		return 0;
	while ((r = checkpoint_file_next(&rec->log, &why)) == READ_OK) {
		if (rec->log.next.seq > j->next_seq - 1 || rec->log.log.ended)
			return err_set(err, EBADMSG,
				       "%llu records were signed, but only %llu are there: the "
				       "journal was cut",
				       (unsigned long long)rec->log.next.seq,
				       (unsigned long long)j->next_seq - 1);
		rec->log.has_next = false;
	}
	if (r == -EBADMSG)
		return err_set(err, r, "checkpoints.log, entry %llu: %s",
			       (unsigned long long)rec->log.log.index, why);
	return r < 0 ? err_set(err, r, "checkpoints.log: %m") : 0;
}

/* Behind its last whole entry, with a new genesis. */
static int continue_log(struct recovery *rec, struct err *err)
{
	struct journal *j = rec->j;

	if (!j->signer)
		return 0;
	if (rec->log.fd >= 0) {
		j->log_off = rec->log.off;
		j->log_fd = take_fd(rec->log.fd);
		if (ftruncate(j->log_fd, (off_t)j->log_off) < 0)
			return err_set(err, errno, "checkpoints.log: %m");
		signer_continue(j->signer, rec->log.log.index, rec->log.log.prev);
	}
	return journal_begin_log(j, err);
}

static int open_log(struct recovery *rec, struct err *err)
{
	int r = checkpoint_file_open(&rec->log, rec->j->dirfd, O_RDWR);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(err, r, "checkpoints.log: %m");
	rec->log.log.any_host = true; /* the host may have a new key since */
	if (!rec->j->signer)
		return err_set(err, ENOKEY, "the journal is signed: its host key is needed");
	return 0;
}

/* Nothing was left of the first segment: begin as journal_create does. */
static int find_session(struct recovery *rec, struct err *err)
{
	struct journal *j = rec->j;
	int r;

	if (!j->session[0] && rec->has_manifest)
		memcpy(j->session, rec->manifest.session, SESSION_LEN);
	if (!j->session[0])
		return err_set(err, ENODATA, "the journal holds nothing, not even a session name");
	r = chain_start(j->chain, j->head, j->session);
	return r < 0 ? err_set(err, r, "journal: %m") : 0;
}

static int reopen_last(struct recovery *rec, struct err *err)
{
	struct journal *j = rec->j;
	int r;

	if (rec->file.number != j->n_segments) {
		r = segment_file_open(&rec->file, j->dirfd, j->n_segments, O_RDWR);
		if (r < 0)
			return segment_err(err, r, j->n_segments, strerror(-r));
	}
	j->fd = take_fd(rec->file.fd);
	j->off = j->segments[j->n_segments - 1].bytes;
	return 0;
}

static int recover(struct recovery *rec, struct err *err)
{
	struct journal *j = rec->j;
	int r;

	r = segment_list(j->dirfd, &rec->list, err);
	if (r < 0)
		return r;
	r = load_manifest(rec);
	if (r < 0)
		return err_set(err, r, "manifest.json: %m");
	if (rec->list.max == 0 && !rec->has_manifest)
		return err_set(err, ENOENT, "there is no journal");
	r = open_log(rec, err);
	if (r < 0)
		return r;
	for (unsigned i = 1; i <= rec->list.max; i++) {
		r = take_segment(rec, i, err);
		if (r < 0)
			return r;
	}
	r = j->n_segments ? reopen_last(rec, err) : find_session(rec, err);
	if (r < 0)
		return r;
	r = check_manifest(rec, err);
	if (r == 0)
		r = check_log(rec, err);
	if (r < 0)
		return r;
	r = cut_tail(rec, err);
	if (r < 0)
		return r;
	if (j->n_segments == 0) {
		r = journal_add_segment(j);
		if (r < 0)
			return err_set(err, r, "bundle directory: events.0001.seg: %m");
	}
	r = continue_log(rec, err);
	if (r < 0)
		return r;
	r = journal_write_open_manifest(j);
	if (r < 0)
		return err_set(err, r, "bundle directory: manifest.json: %m");
	j->names_dirty = true;
	j->durable_seq = j->next_seq - 1;
	return 0;
}

/* What follows the last whole frame of the terminal's recording. */
static int cut_terminal(struct recovery *rec, const struct terminal_walk *w, struct err *err)
{
	char name[SEGMENT_NAME_LEN + 1];
	auto_close int fd = -1;
	unsigned number = w->file.fd < 0 ? 1 : w->file.number;
	uint64_t size;

	segment_kind_name(name, SEGMENT_TTY, number);
	if (w->off < SEGMENT_HEADER_LEN)
		return unlinkat(rec->j->dirfd, name, 0) < 0 ? err_set(err, errno, "%s: %m", name)
							    : 0;
	if (segment_file_size(&w->file, &size) < 0 || size - w->off > RECOVER_CUT_MAX)
		return err_set(
			err, EBADMSG,
			"%s is damaged at byte %llu: more than a crash can tear; nothing was cut",
			name, (unsigned long long)w->off);
	fd = openat(rec->j->dirfd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || ftruncate(fd, (off_t)w->off) < 0 || fsync(fd) < 0)
		return err_set(err, errno, "%s: %m", name);
	return 0;
}

/* The recording is not gone on with: what is there goes into the seal. */
static int recover_terminal(struct recovery *rec, struct err *err)
{
	struct terminal_walk w = TERMINAL_WALK_NONE;
	struct journal *j = rec->j;
	const char *why = NULL;
	int r;

	if (!rec->list.tty_max)
		return 0;
	r = terminal_walk_start(&w, j->dirfd, j->session, rec->list.tty_max, j->chain);
	while (r >= 0 && (r = terminal_walk_next(&w, &why)) == READ_OK)
		;
	if (r == READ_TORN)
		r = cut_terminal(rec, &w, err);
	else if (r < 0)
		err_set(err, r, "tty.%04u.seg, byte %llu: %s", w.file.number,
			(unsigned long long)w.off, r == -EBADMSG ? why : strerror(-r));
	if (r == 0) {
		free(j->tty);
		j->tty = calloc(1, sizeof(*j->tty));
		if (!j->tty)
			r = err_set(err, ENOMEM, "journal: %m");
	}
	if (r == 0) {
		*j->tty = (struct terminal_end){ .records = w.next_seq - 1,
						 .frames = w.frames,
						 .bytes = w.bytes + w.off,
						 .segments = rec->list.tty_max };
		memcpy(j->tty->head, w.head, STORE_HASH_LEN);
		memcpy(j->tty->link, w.link, STORE_HASH_LEN);
	}
	terminal_walk_done(&w);
	return r;
}

int journal_recover(struct journal **ret, int dirfd, const struct journal_options *opt,
		    uint64_t *ret_cut, struct err *err)
{
	auto_journal struct journal *j = NULL;
	struct recovery rec = { .file = SEGMENT_FILE_NONE, .log = CHECKPOINT_FILE_NONE };
	int r;

	if (opt->session && !session_is_valid(opt->session))
		return err_set(err, EINVAL, "journal: the session name is malformed");
	r = journal_new(&j, dirfd, opt, err);
	if (r < 0)
		return r;
	if (opt->session)
		memcpy(j->session, opt->session, strlen(opt->session) + 1);
	rec.j = j;
	r = recover(&rec, err);
	if (r == 0)
		r = recover_terminal(&rec, err);
	segment_file_close(&rec.file);
	checkpoint_file_close(&rec.log);
	unpacker_done(&rec.unpacker);
	if (r < 0)
		return r;
	*ret_cut = rec.cut;
	*ret = take_ptr(j);
	return 0;
}
