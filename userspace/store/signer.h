/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints.log (FORMAT.md section 9): signed statements about how far a journal has come.
 *
 * A genesis entry is signed by the host key and names the first session key. Each checkpoint is signed
 * by the key that the entry before it names, and names the next; a secret is wiped as soon as it has
 * signed once. So an entry that is in the log cannot be made again by whoever takes the process. */
#ifndef WARDER_STORE_SIGNER_H
#define WARDER_STORE_SIGNER_H

#include <stdbool.h>
#include "userspace/base/auto.h"
#include "userspace/store/format.h"
#include "userspace/store/keys.h"

#define CHECKPOINTS_NAME "checkpoints.log"
#define GENESIS_LEN	 1024
#define CHECKPOINT_LEN	 288

enum checkpoint_type {
	CHECKPOINT_GENESIS = 0,
	CHECKPOINT_FRAME = 1, /* behind a data frame */
	CHECKPOINT_SEAL = 2,  /* behind the seal; names no next key */
};

/* Where a journal is: everything before this point is meant. */
struct checkpoint {
	enum checkpoint_type type;
	uint64_t index; /* of the entry in the log, from 0 */
	uint64_t seq;	/* of the last record before it */
	uint32_t segment;
	uint32_t redactions; /* places of the records before it that were redacted */
	uint64_t offset;     /* in the segment: a frame's end, or the segment header's */
	uint64_t real_ns, boot_ns;
	uint64_t lost;		      /* events known to be lost so far */
	uint8_t head[STORE_HASH_LEN]; /* record chain */
	uint8_t link[STORE_HASH_LEN]; /* frame chain */
	uint8_t root[STORE_HASH_LEN]; /* RFC 6962, over h(1)..h(seq) */
	uint8_t next_key[KEY_LEN];    /* signs the next entry; zero in the last */
	uint8_t prev[STORE_HASH_LEN]; /* SHA-256 of the entry before; zero in the first */
};

/* ---- writing ---- */

struct signer;

/* `opt`: sign, keys_dirfd, host_sign, host_key. */
int signer_new(struct signer **ret, const struct journal_options *opt, struct err *err);
void signer_free(struct signer *s);
DEFINE_AUTO(signer, signer_free)

/* Go on behind these entries, after a recovery. */
void signer_continue(struct signer *s, uint64_t next_index, const uint8_t prev[STORE_HASH_LEN]);
/* The host's public key, as in the genesis. */
const uint8_t *signer_host_key(const struct signer *s);
/* `index`, `prev` and `next_key` are filled in here. */
int signer_genesis(struct signer *s, struct checkpoint *c, const char *session,
		   uint8_t out[GENESIS_LEN], struct err *err);
int signer_sign(struct signer *s, struct checkpoint *c, uint8_t out[CHECKPOINT_LEN]);

/* What of a genesis the host key signs. */
#define GENESIS_SIGNED_LEN 320
/* Is `msg` the part of a genesis that the host key may sign: for this session, by this host key? Asked
 * by who holds the key, about bytes from a process that it need not trust. */
bool genesis_is_for(const uint8_t *msg, size_t n, const char *session,
		    const uint8_t host_key[KEY_LEN]);

/* ---- reading ---- */

struct genesis {
	char session[SESSION_LEN];
	uint8_t host_key[KEY_LEN];
	struct key_signature sig;
};

/* Length of the entry that begins at p, by its magic; 0 when none does. */
size_t checkpoint_length(const uint8_t *p, size_t n);

/* Follows a log entry by entry. */
struct checkpoint_log {
	uint64_t index;
	uint8_t prev[STORE_HASH_LEN], next_key[KEY_LEN], host_key[KEY_LEN];
	bool begun, ended;
	bool any_host; /* the caller judges each genesis' host key itself */
};

/* Check one whole entry of checkpoint_length bytes against those before it, signatures included. NULL
 * when good, else what is wrong. *ret_genesis is set for a genesis. */
const char *checkpoint_log_next(struct checkpoint_log *log, const uint8_t *p, size_t n,
				struct checkpoint *ret, struct genesis *ret_genesis);

/* The file, read one entry ahead. */
struct checkpoint_file {
	int fd;
	uint64_t off; /* behind `next` when there is one */
	struct checkpoint_log log;
	bool has_next;
	struct checkpoint next;
	struct genesis genesis; /* the last one */
};

#define CHECKPOINT_FILE_NONE ((struct checkpoint_file){ .fd = -1 })

/* -ENOENT when there is none; -ELOOP, -EMEDIUMTYPE when it is no regular file. */
int checkpoint_file_open(struct checkpoint_file *f, int dirfd, int flags);
void checkpoint_file_close(struct checkpoint_file *f);
/* READ_OK: `next` holds an entry that is not taken yet (has_next = false takes it); READ_END,
 * READ_TORN; -EBADMSG with *ret_why; -errno. */
int checkpoint_file_next(struct checkpoint_file *f, const char **ret_why);

#endif
