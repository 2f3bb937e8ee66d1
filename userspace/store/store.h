/* SPDX-License-Identifier: Apache-2.0 */
/* The session journal: append-only, hash-chained, zstd frames. FORMAT.md specifies it byte by byte.
 * It is also the queue of the exporters, which read it by cursor while it grows. */
#ifndef WARDER_STORE_STORE_H
#define WARDER_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define STORE_HASH_LEN	    32
#define STORE_FRAME_RAW_MAX (256 * 1024) /* a frame is closed when it would grow past this */
#define STORE_RECORD_MAX    (1024 * 1024)
#define STORE_SEGMENT_MAX   (64ull << 20)
#define STORE_COMMIT_NS	    200000000ull

/* ---- writer: one thread ---- */

struct journal;
struct key_signature; /* keys.h */
struct terminal_end;  /* terminal.h */

/* Has the host key sign `n` bytes; for a writer that must not hold the key itself (the engine asks the
 * root part). `real_ns`: now. As keys_sign. */
typedef int (*journal_host_sign_fn)(void *arg, uint64_t real_ns, const void *msg, size_t n,
				    struct key_signature *ret, struct err *err);

struct journal_options {
	const char *session;  /* ULID; 1 to 63 of [0-9A-Za-z._-] */
	const char *tool;     /* name and version for the manifest; NULL = "warder" */
	uint64_t segment_max; /* 0 = STORE_SEGMENT_MAX */
	int zstd_level;	      /* 0 = the default, tuned for speed */
	bool no_sync;	      /* benchmarks only */
	bool sign;	      /* signed checkpoints, by the host key: */
	int keys_dirfd;	      /* in this directory (see keys.h; used and not kept), or, when */
	journal_host_sign_fn host_sign; /* is there, by whoever this asks */
	void *host_sign_arg;
	const uint8_t *host_key; /* with host_sign: the public key, STORE_HASH_LEN bytes */
};

/* `dirfd`: the bundle's directory, writable by us. Creates events.0001.seg and manifest.json (state
 * "open"). -EEXIST when the directory already holds a journal. */
int journal_create(struct journal **ret, int dirfd, const struct journal_options *opt,
		   struct err *err);
/* Reopen after a crash: cuts a torn frame, goes on in the chain. *ret_cut = bytes cut. */
int journal_recover(struct journal **ret, int dirfd, const struct journal_options *opt,
		    uint64_t *ret_cut, struct err *err);
void journal_free(struct journal *j);

/* The sequence number that the next record will get; starts at 1. */
uint64_t journal_next_seq(const struct journal *j);
/* The last sequence number that is on disk for good (0 = none yet). Readers see frames only shortly
 * before that: write and fdatasync go together. */
uint64_t journal_durable_seq(const struct journal *j);
/* Append one record (a JSON object, no newline). Buffers; -EMSGSIZE past STORE_RECORD_MAX. After an
 * I/O error the record stays buffered, every later call retries: -ENOSPC etc. says the disk is
 * behind; journal_behind tells how much. Buffer limit 16 MiB, then -ENOBUFS: the caller counts a gap.
 * Not taken (no sequence number used) with -EINVAL (empty), -EMSGSIZE, -ENOBUFS, -ENOMEM, -EROFS
 * (sealed); with any other result the record is in. */
int journal_append(struct journal *j, struct str rec);
#define STORE_ASIDE_MAX (256 * 1024)
/* Bytes that are no record and go into a frame of their own before the records that are not written yet: inside of
 * the frame chain, and passed over by all who read records (FORMAT.md section 15). -EMSGSIZE, -EROFS, -ENOMEM,
 * -ENOBUFS: not taken. */
int journal_put_aside(struct journal *j, struct str payload);
/* Close the frame, write it, fdatasync. Alerts and actions call it at once, others by timer. */
int journal_commit(struct journal *j);
/* Bytes buffered and not on disk. */
size_t journal_behind(const struct journal *j);
/* ns (CLOCK_MONOTONIC) when a timer should call journal_commit; 0 = nothing pending. */
uint64_t journal_deadline(const struct journal *j);

/* Events known to be lost so far, in all; goes into the signed checkpoints. */
void journal_set_lost(struct journal *j, uint64_t lost);

struct journal_seal {
	struct str
		summary; /* a JSON object that goes into the manifest: counts by kind, gaps, ... */
	uint64_t gaps;	 /* records lost, declared by gap records; not 0 = verify says 3 */
	const struct terminal_end *terminal; /* its recording, ended; NULL = there is none */
};
/* Commit, write the final manifest, make it durable. No append after that. After an error (disk full)
 * call it again. -EINVAL: the summary is no JSON object; -EMSGSIZE: it is past 4 MiB. */
int journal_seal(struct journal *j, const struct journal_seal *seal);

/* ---- reader: any number, any process ---- */

struct journal_reader;

/* Reads what is committed; a writer may go on. */
int journal_reader_open(struct journal_reader **ret, int dirfd, struct err *err);
void journal_reader_free(struct journal_reader *r);
/* 1: *ret_rec is valid until the next call; 0: nothing more committed yet; -EBADMSG: damaged (err
 * says where). */
int journal_reader_next(struct journal_reader *r, struct str *ret_rec, uint64_t *ret_seq,
			struct err *err);
/* Go on behind sequence `seq` (0 = from the start). */
int journal_reader_seek(struct journal_reader *r, uint64_t seq, struct err *err);
/* The next record is one of the first frame that was closed at `boot_ns` (CLOCK_BOOTTIME) or later; its
 * first ones may be older. Past the end: nothing more. */
int journal_reader_seek_time(struct journal_reader *r, uint64_t boot_ns, struct err *err);
/* As seek_time, but so much earlier that records of at least `bytes` bytes lie before that moment, or at the start;
 * *ret_start: it is the start. Reads frame headers only; what is that far back in more than one older segment, or
 * in more than 1,024 frames, is not gone back to. */
int journal_reader_seek_back(struct journal_reader *r, uint64_t boot_ns, size_t bytes,
			     bool *ret_start, struct err *err);
/* Sealed, and everything was read. */
/* The payload of the next frame without records (journal_put_aside), records passed over; valid until the next
 * call. As journal_reader_next. */
int journal_reader_next_aside(struct journal_reader *r, struct str *ret, struct err *err);
bool journal_reader_at_end(const struct journal_reader *r);

/* ---- verify ---- */

enum verify_state {
	VERIFY_OK = 0,	    /* intact and sealed */
	VERIFY_ALTERED = 1, /* something is not as it was written */
	VERIFY_OPEN = 2,    /* no seal, or the end is missing: open, crashed or cut */
	VERIFY_GAPS = 3,    /* intact and sealed, with declared gaps */
};

struct verify_report {
	enum verify_state state;
	char session[64];
	uint64_t records, frames, segments, bytes;
	uint64_t gaps; /* events lost, as declared */
	uint64_t
		first_bad; /* sequence of the first bad record (or of its frame's first); 0 = none */
	char head[2 * STORE_HASH_LEN + 1]; /* chain head, hex */
	bool is_signed;			   /* it has checkpoints, and they are good */
	bool is_trusted;		   /* signed by one of the keys that the caller gave */
	uint64_t checkpoints;
	char host_key[2 * STORE_HASH_LEN + 1]; /* who signed, hex */
	uint32_t redactions; /* places from which a secret was taken out, as the records say */
	uint64_t terminal_records; /* of its terminal or output */
	uint64_t witnessed;	   /* the last record up to which a witness agrees */
	char text[512];		   /* one sentence for a person: what and where */
};

/* A state of a record that somebody else has seen: the head of its chain behind record `seq`. */
struct verify_witness {
	char session[64];
	uint64_t seq;
	uint8_t head[STORE_HASH_LEN];
};

struct verify_options {
	/* Public host keys that the caller trusts (key_parse). With any given, a bundle that none of
	 * them signed is altered. */
	const uint8_t (*keys)[STORE_HASH_LEN];
	size_t n_keys;
	/* By session, then seq. With any given, a bundle of which they tell another state, a later one (it
	 * was rolled back), or nothing is altered. NULL: no witness; n_witness 0: one who saw nothing. */
	const struct verify_witness *witness;
	size_t n_witness;
};

typedef void (*verify_progress_fn)(void *arg, uint64_t done, uint64_t total);

/* Streams; bounded memory. Negative only when the bundle cannot be read at all (err says why). */
int store_verify(int dirfd, struct verify_report *ret, verify_progress_fn fn, void *arg,
		 struct err *err);
/* The same against known keys; `opt` may be NULL. */
int store_verify_signed(int dirfd, const struct verify_options *opt, struct verify_report *ret,
			verify_progress_fn fn, void *arg, struct err *err);
const char *verify_state_name(enum verify_state s);

#endif
