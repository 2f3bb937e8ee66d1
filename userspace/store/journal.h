/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the writer, shared by journal.c (append, commit), seal.c and recover.c. */
#ifndef WARDER_STORE_JOURNAL_H
#define WARDER_STORE_JOURNAL_H

#include "userspace/base/auto.h"
#include "userspace/store/chain.h"
#include "userspace/store/format.h"
#include "userspace/store/manifest.h"
#include "userspace/store/merkle.h"
#include "userspace/store/signer.h"
#include "userspace/store/terminal.h"

#define JOURNAL_BUFFER_MAX (16 * 1024 * 1024)
/* Written and synced at the latest when this much is closed: also what a crash can tear. */
#define JOURNAL_FLUSH_AT (4 * 1024 * 1024)
#define TOOL_LEN	 64

/* A record goes raw -> out -> file. Bytes in `out` never change once they are there: a retry after
 * an I/O error writes the same bytes to the same place, so a reader never sees two versions. */
struct journal {
	int dirfd, fd;
	enum segment_kind kind;
	int lock_fd; /* the directory, flock()ed: one writer */
	char session[SESSION_LEN], tool[TOOL_LEN];
	uint64_t segment_max;
	bool no_sync;
	bool names_dirty; /* directory entries not synced yet */
	int io_error;	  /* of the last attempt to write; 0 = none */
	uint64_t deadline;

	struct chain *chain;
	struct ZSTD_CCtx_s *zstd;

	struct buf raw; /* records of the frame being filled: u32 length, bytes */
	uint32_t raw_n;
	uint32_t redactions; /* of the records of closed frames */
	struct buf
		aside; /* payload of a frame without records, to stand before the next data frame */
	uint64_t next_seq;

	struct buf out; /* closed frames that are not durable */
	uint64_t off;	/* where out[0] goes in the file */

	uint8_t head[STORE_HASH_LEN]; /* record chain behind the last closed frame */
	uint8_t link[STORE_HASH_LEN]; /* frame chain behind the last closed frame */

	/* Signing; all unused without a signer. */
	struct signer *signer;
	int log_fd;	    /* checkpoints.log */
	struct buf log;	    /* entries not written: they wait for the frames they are about */
	uint64_t log_off;   /* where log[0] goes */
	struct merkle tree; /* over the records of closed frames */
	uint64_t lost;

	uint64_t created_ns;
	uint64_t durable_seq;
	struct manifest_segment *segments; /* n of them; the last is being written */
	unsigned n_segments, cap_segments;

	struct terminal_end *tty; /* what a recovery found of the terminal; NULL = nothing */

	enum { JOURNAL_OPEN, JOURNAL_SEALING, JOURNAL_SEALED } state;
};

DEFINE_AUTO(journal, journal_free)
#define auto_journal AUTO(journal)

/* An empty journal on a locked directory; opens no segment. */
int journal_new(struct journal **ret, int dirfd, const struct journal_options *opt,
		struct err *err);
/* The same for the terminal's recording: no manifest, no signatures, and the lock is the other's. */
int journal_create_tty(struct journal **ret, int dirfd, const struct journal_options *opt,
		       struct err *err);
/* Create the segment behind the last one. The old one must be durable, `out` empty. */
int journal_add_segment(struct journal *j);
int journal_push_segment(struct journal *j, const struct manifest_segment *s);
/* The manifest of the open state; not synced. */
int journal_write_open_manifest(struct journal *j);
/* Turn `raw` into a frame in `out`. */
int journal_close_frame(struct journal *j);
/* Turn `aside` into one. */
int journal_close_aside(struct journal *j);
/* Put a frame behind `out`. Changes nothing on failure. `tree`: with the frame's records, or NULL. */
int journal_put_frame(struct journal *j, struct frame_header *h, const uint8_t *payload,
		      const uint8_t head[STORE_HASH_LEN], const struct merkle *tree);
/* checkpoint.c: the log begins (or, behind a recovery, goes on) with a genesis. */
int journal_begin_log(struct journal *j, struct err *err);
/* The entry about the frame that ends at `offset` of the current segment. */
int journal_checkpoint(struct journal *j, enum checkpoint_type type, uint64_t offset, uint64_t seq,
		       const uint8_t head[STORE_HASH_LEN], const uint8_t link[STORE_HASH_LEN],
		       const struct merkle *tree);
/* Write what waits; frames first. */
int journal_flush_log(struct journal *j, bool sync);
/* Write and sync `out`. */
int journal_flush(struct journal *j);

#endif
