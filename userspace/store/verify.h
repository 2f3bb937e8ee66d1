/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of store_verify, shared by verify.c (frames, seal, manifest) and verify_log.c (signatures). */
#ifndef WARDER_STORE_VERIFY_H
#define WARDER_STORE_VERIFY_H

/* "1 record", "2 records" */
#define VERIFY_S(n) ((n) == 1 ? "" : "s")

#include "userspace/store/chain.h"
#include "userspace/store/manifest.h"
#include "userspace/store/merkle.h"
#include "userspace/store/segment.h"
#include "userspace/store/signer.h"
#include "userspace/store/terminal_walk.h"

enum walk {
	WALK_ON = 0,
	WALK_STOP = 1, /* a finding is in the report; the rest is not looked at */
};

/* Names of texts, each as often as it was named. */
struct verify_blobs {
	uint8_t (*v)[STORE_HASH_LEN];
	size_t n, cap;
};

struct verify {
	int dirfd;
	struct verify_report *report;
	struct segment_list list;
	struct segment_file file;
	struct unpacker unpacker;
	const uint8_t *raw; /* records of the frame that was checked last */
	struct chain *chain;

	struct buf manifest_text;
	bool has_manifest, manifest_readable;
	struct manifest_info manifest;
	uint64_t bytes_on_disk; /* of all segments, when we began */

	uint8_t link[STORE_HASH_LEN], head[STORE_HASH_LEN];
	uint64_t next_seq;
	bool sealed;
	struct seal seal;

	struct terminal_walk tty;
	struct verify_blobs blobs;

	const struct verify_options *opt;
	struct checkpoint_file log; /* fd -1: the bundle is not signed */
	struct merkle *tree;	    /* only when it is */
	uint64_t signed_seq;	    /* covered by the last checkpoint that was good */
	size_t witness;		    /* next in opt->witness */
	bool is_unsigned;	    /* keys were given, and nothing is signed */
	bool is_foreign;	    /* keys were given, and the signer is none of them */

	verify_progress_fn fn;
	void *arg;
	uint64_t told;
};

/* Put the result into the report. Returns WALK_STOP. */
int verify_finding(struct verify *v, enum verify_state state, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The first three: enum walk, or -errno. */
int verify_log_open(struct verify *v, struct err *err);
/* All that was signed about the point that the walk has reached, `off` in its segment. */
int verify_log_reached(struct verify *v, uint64_t off);
/* At the end of a sealed bundle: the last signature is about the seal, and nothing follows it. */
int verify_log_end(struct verify *v);
/* Who signed, behind the sentence of a good bundle. */
void verify_log_signer(struct verify *v);
/* Whatever was found, a signature by somebody else than the reader trusts fails. */
void verify_log_foreign(struct verify *v);

/* The records of a frame that is good, for what they say of the terminal. enum walk, or -errno. */
int verify_tty_records(struct verify *v, const uint8_t *raw, size_t n, uint64_t first_seq);
/* 64 hex digits, lower case, and past them. */
bool verify_scan_hash(struct str *s, uint8_t ret[STORE_HASH_LEN]);
/* All events were read, and the seal if there is one. */
int verify_tty_end(struct verify *v);
/* How much there is, behind the sentence of a good bundle. */
void verify_tty_tell(struct verify *v);

/* The records of a frame that is good, for the texts they name. -ENOMEM, -E2BIG. */
int verify_blobs_records(struct verify *v, const uint8_t *raw, size_t n);
/* A sealed bundle was read: are they there, and what they were? enum walk. */
int verify_blobs_end(struct verify *v);
void verify_blobs_done(struct verify_blobs *b);

/* The session is known: where its witness begins. */
void verify_witness_start(struct verify *v);
/* A frame has ended. NULL, or what is wrong. */
const char *verify_witness_reached(struct verify *v);
/* All was walked over: did the witness see more? */
void verify_witness_end(struct verify *v);

#endif
