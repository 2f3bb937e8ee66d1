// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/signer.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/store/chain.h"
#include "userspace/store/segment.h"

/* Common to both kinds of entry, FORMAT.md section 9. */
enum {
	E_TYPE = 4,
	E_ZERO = 5,
	E_LEN = 6,
	E_INDEX = 8,
	E_SEQ = 16,
	E_SEGMENT = 24,
	E_REDACTIONS = 28,
	E_OFFSET = 32,
	E_REAL = 40,
	E_BOOT = 48,
	E_LOST = 56,
	E_HEAD = 64,
	E_LINK = 96,
	E_ROOT = 128,
	E_NEXT = 160,
	E_PREV = 192,

	C_SIG = 224,

	G_SESSION = 224,
	G_HOST = 288,
	G_EPOCH_KEY = 320,
	G_EPOCH = 352,
	G_DEPTH = 356,
	G_ZERO1 = 360,
	G_PATH = 384,
	G_ZERO2 = 896,
	G_SIG = 960,
};

_Static_assert(C_SIG + KEY_SIG_LEN == CHECKPOINT_LEN, "checkpoint");
_Static_assert(G_PATH + KEY_DEPTH_MAX * STORE_HASH_LEN == G_ZERO2, "genesis");
_Static_assert(G_SIG + KEY_SIG_LEN == GENESIS_LEN, "genesis");
_Static_assert(G_EPOCH_KEY == GENESIS_SIGNED_LEN, "genesis");

static const char no_entry[] = "no entry begins here";
static const char GENESIS_MAGIC[4] = { 'W', 'G', 'E', 'N' };
static const char CHECKPOINT_MAGIC[4] = { 'W', 'C', 'K', 'P' };

struct signer {
	int keys_fd; /* -1: host_sign is asked */
	journal_host_sign_fn host_sign;
	void *host_sign_arg;
	struct chain *chain;
	uint8_t host_key[KEY_LEN];
	uint64_t index;
	uint8_t prev[STORE_HASH_LEN];
	uint8_t *secret; /* of the next entry's key; locked memory */
};

void signer_free(struct signer *s)
{
	if (!s)
		return;
	if (s->keys_fd >= 0)
		close(s->keys_fd);
	sodium_free(s->secret); /* wipes */
	chain_free(s->chain);
	free(s);
}

static int find_host_key(struct signer *s, const struct journal_options *opt, struct err *err)
{
	int r;

	if (opt->host_sign) {
		s->host_sign = opt->host_sign;
		s->host_sign_arg = opt->host_sign_arg;
		memcpy(s->host_key, opt->host_key, KEY_LEN);
		return 0;
	}
	r = keys_public(opt->keys_dirfd, s->host_key, err);
	if (r < 0)
		return r;
	s->keys_fd = fcntl(opt->keys_dirfd, F_DUPFD_CLOEXEC, 0);
	return s->keys_fd < 0 ? err_set(err, errno, "signing: %m") : 0;
}

int signer_new(struct signer **ret, const struct journal_options *opt, struct err *err)
{
	AUTO(signer) struct signer *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "signing: %m");
	s->keys_fd = -1;
	if (sodium_init() < 0)
		return err_set(err, EIO, "signing: libsodium cannot be set up");
	r = find_host_key(s, opt, err);
	if (r < 0)
		return r;
	s->secret = sodium_malloc(crypto_sign_SECRETKEYBYTES);
	if (!s->secret || chain_new(&s->chain) < 0)
		return err_set(err, ENOMEM, "signing: %m");
	*ret = take_ptr(s);
	return 0;
}

void signer_continue(struct signer *s, uint64_t next_index, const uint8_t prev[STORE_HASH_LEN])
{
	s->index = next_index;
	memcpy(s->prev, prev, STORE_HASH_LEN);
}

const uint8_t *signer_host_key(const struct signer *s)
{
	return s->host_key;
}

static void encode_common(uint8_t *out, const struct checkpoint *c, size_t len)
{
	memset(out, 0, len);
	memcpy(out, len == GENESIS_LEN ? GENESIS_MAGIC : CHECKPOINT_MAGIC, 4);
	out[E_TYPE] = (uint8_t)c->type;
	out[E_LEN] = (uint8_t)len;
	out[E_LEN + 1] = (uint8_t)(len >> 8);
	put_le64(out + E_INDEX, c->index);
	put_le64(out + E_SEQ, c->seq);
	put_le32(out + E_SEGMENT, c->segment);
	put_le32(out + E_REDACTIONS, c->redactions);
	put_le64(out + E_OFFSET, c->offset);
	put_le64(out + E_REAL, c->real_ns);
	put_le64(out + E_BOOT, c->boot_ns);
	put_le64(out + E_LOST, c->lost);
	memcpy(out + E_HEAD, c->head, STORE_HASH_LEN);
	memcpy(out + E_LINK, c->link, STORE_HASH_LEN);
	memcpy(out + E_ROOT, c->root, STORE_HASH_LEN);
	memcpy(out + E_NEXT, c->next_key, KEY_LEN);
	memcpy(out + E_PREV, c->prev, STORE_HASH_LEN);
}

static int entry_done(struct signer *s, const uint8_t *entry, size_t len)
{
	s->index++;
	return chain_hash(s->chain, s->prev, entry, len, NULL, 0);
}

int signer_genesis(struct signer *s, struct checkpoint *c, const char *session,
		   uint8_t out[GENESIS_LEN], struct err *err)
{
	struct key_signature sig;
	int r;

	c->type = CHECKPOINT_GENESIS;
	c->index = s->index;
	c->real_ns = clock_real_ns();
	c->boot_ns = clock_boot_ns();
	memcpy(c->prev, s->prev, STORE_HASH_LEN);
	crypto_sign_keypair(c->next_key, s->secret);
	/* Which epoch will sign is only known behind the signature, so what it signs is the entry up
	 * to the epoch's part; that part proves itself by the path to the host key. */
	encode_common(out, c, GENESIS_LEN);
	memcpy(out + G_SESSION, session, strnlen(session, SESSION_LEN - 1));
	memcpy(out + G_HOST, s->host_key, KEY_LEN);
	if (s->host_sign) {
		r = s->host_sign(s->host_sign_arg, c->real_ns, out, G_EPOCH_KEY, &sig, err);
		/* it comes from another process: a wrong one must not get into the record */
		if (r == 0 && !key_signature_is_good(s->host_key, &sig, out, G_EPOCH_KEY))
			r = err_set(err, EBADMSG, "signing: the host key's signature is not good");
	} else {
		r = keys_sign(s->keys_fd, c->real_ns, out, G_EPOCH_KEY, &sig, err);
	}
	if (r < 0)
		return r;
	memcpy(out + G_EPOCH_KEY, sig.public_key, KEY_LEN);
	put_le32(out + G_EPOCH, sig.epoch);
	put_le32(out + G_DEPTH, sig.depth);
	memcpy(out + G_PATH, sig.path, sizeof(sig.path));
	memcpy(out + G_SIG, sig.sig, KEY_SIG_LEN);
	r = entry_done(s, out, GENESIS_LEN);
	return r < 0 ? err_set(err, r, "signing: %m") : 0;
}

bool genesis_is_for(const uint8_t *msg, size_t n, const char *session,
		    const uint8_t host_key[KEY_LEN])
{
	char want[SESSION_LEN] = { 0 };

	if (n != GENESIS_SIGNED_LEN || strlen(session) >= SESSION_LEN)
		return false;
	memcpy(want, session, strlen(session));
	return memcmp(msg, GENESIS_MAGIC, 4) == 0 && msg[E_TYPE] == CHECKPOINT_GENESIS &&
	       memcmp(msg + G_SESSION, want, SESSION_LEN) == 0 &&
	       memcmp(msg + G_HOST, host_key, KEY_LEN) == 0;
}

int signer_sign(struct signer *s, struct checkpoint *c, uint8_t out[CHECKPOINT_LEN])
{
	uint8_t next[crypto_sign_SECRETKEYBYTES] = { 0 };
	int r = 0;

	c->index = s->index;
	memcpy(c->prev, s->prev, STORE_HASH_LEN);
	memset(c->next_key, 0, KEY_LEN);
	if (c->type != CHECKPOINT_SEAL)
		crypto_sign_keypair(c->next_key, next);
	encode_common(out, c, CHECKPOINT_LEN);
	if (crypto_sign_detached(out + C_SIG, NULL, out, C_SIG, s->secret) != 0)
		r = -EIO;
	memcpy(s->secret, next, sizeof(next));
	sodium_memzero(next, sizeof(next));
	return r < 0 ? r : entry_done(s, out, CHECKPOINT_LEN);
}

/* ---- reading ---- */

size_t checkpoint_length(const uint8_t *p, size_t n)
{
	if (n >= 4 && memcmp(p, GENESIS_MAGIC, 4) == 0)
		return GENESIS_LEN;
	if (n >= 4 && memcmp(p, CHECKPOINT_MAGIC, 4) == 0)
		return CHECKPOINT_LEN;
	return 0;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	return sodium_is_zero(p, n);
}

static const char *decode_common(struct checkpoint *c, const uint8_t *p, size_t n)
{
	c->type = p[E_TYPE];
	if (p[E_ZERO] || p[E_LEN] != (uint8_t)n || p[E_LEN + 1] != (uint8_t)(n >> 8) ||
	    (n == GENESIS_LEN) != (c->type == CHECKPOINT_GENESIS) || c->type > CHECKPOINT_SEAL)
		return "its fields are malformed";
	c->index = get_le64(p + E_INDEX);
	c->seq = get_le64(p + E_SEQ);
	c->segment = get_le32(p + E_SEGMENT);
	c->redactions = get_le32(p + E_REDACTIONS);
	c->offset = get_le64(p + E_OFFSET);
	c->real_ns = get_le64(p + E_REAL);
	c->boot_ns = get_le64(p + E_BOOT);
	c->lost = get_le64(p + E_LOST);
	memcpy(c->head, p + E_HEAD, STORE_HASH_LEN);
	memcpy(c->link, p + E_LINK, STORE_HASH_LEN);
	memcpy(c->root, p + E_ROOT, STORE_HASH_LEN);
	memcpy(c->next_key, p + E_NEXT, KEY_LEN);
	memcpy(c->prev, p + E_PREV, STORE_HASH_LEN);
	return NULL;
}

static const char *check_genesis(struct genesis *g, const uint8_t *p)
{
	memcpy(g->session, p + G_SESSION, SESSION_LEN);
	memcpy(g->host_key, p + G_HOST, KEY_LEN);
	memcpy(g->sig.public_key, p + G_EPOCH_KEY, KEY_LEN);
	g->sig.epoch = get_le32(p + G_EPOCH);
	g->sig.depth = get_le32(p + G_DEPTH);
	memcpy(g->sig.path, p + G_PATH, sizeof(g->sig.path));
	memcpy(g->sig.sig, p + G_SIG, KEY_SIG_LEN);
	if (g->sig.depth > KEY_DEPTH_MAX || g->session[SESSION_LEN - 1] ||
	    !session_is_valid(g->session) ||
	    !is_zero((const uint8_t *)g->session + strlen(g->session),
		     SESSION_LEN - strlen(g->session)) ||
	    !is_zero(p + G_ZERO1, G_PATH - G_ZERO1) ||
	    !is_zero(p + G_PATH + g->sig.depth * STORE_HASH_LEN,
		     G_SIG - G_PATH - g->sig.depth * STORE_HASH_LEN))
		return "its fields are malformed";
	if (!key_signature_is_good(g->host_key, &g->sig, p, G_EPOCH_KEY))
		return "the host key did not sign it";
	return NULL;
}

const char *checkpoint_log_next(struct checkpoint_log *log, const uint8_t *p, size_t n,
				struct checkpoint *ret, struct genesis *ret_genesis)
{
	struct checkpoint c = { 0 };
	struct genesis g = { 0 };
	const char *why;

	if (n != checkpoint_length(p, n))
		return no_entry;
	if (log->ended)
		return "it follows the one that ends the session";
	why = decode_common(&c, p, n);
	if (why)
		return why;
	if (c.index != log->index || memcmp(c.prev, log->prev, STORE_HASH_LEN) != 0)
		return "it does not follow the entry before it: one was removed, added or moved";
	if (c.type == CHECKPOINT_GENESIS) {
		why = check_genesis(&g, p);
		if (why)
			return why;
		if (log->begun && !log->any_host && memcmp(log->host_key, g.host_key, KEY_LEN) != 0)
			return "it is signed by another host";
		memcpy(log->host_key, g.host_key, KEY_LEN);
	} else if (!log->begun) {
		return "no genesis comes before it";
	} else if (crypto_sign_verify_detached(p + C_SIG, p, C_SIG, log->next_key) != 0) {
		return "the key named by the entry before it did not sign it";
	} else if (is_zero(c.next_key, KEY_LEN) != (c.type == CHECKPOINT_SEAL)) {
		return "its fields are malformed";
	}
	log->begun = true;
	log->ended = c.type == CHECKPOINT_SEAL;
	log->index++;
	memcpy(log->next_key, c.next_key, KEY_LEN);
	crypto_hash_sha256(log->prev, p, n);
	*ret = c;
	if (ret_genesis && c.type == CHECKPOINT_GENESIS)
		*ret_genesis = g;
	return NULL;
}

int checkpoint_file_open(struct checkpoint_file *f, int dirfd, int flags)
{
	auto_close int fd = -1;
	struct stat st;

	if (sodium_init() < 0)
		return -EIO;
	fd = openat(dirfd, CHECKPOINTS_NAME,
		    flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	*f = CHECKPOINT_FILE_NONE;
	f->fd = take_fd(fd);
	return 0;
}

void checkpoint_file_close(struct checkpoint_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	*f = CHECKPOINT_FILE_NONE;
}

int checkpoint_file_next(struct checkpoint_file *f, const char **ret_why)
{
	uint8_t entry[GENESIS_LEN];
	const char *why;
	ssize_t got;
	size_t n;

	if (f->has_next)
		return READ_OK;
	got = pread(f->fd, entry, sizeof(entry), (off_t)f->off);
	if (got < 0)
		return -errno;
	if (got == 0)
		return READ_END;
	n = checkpoint_length(entry, (size_t)got);
	if (n > (size_t)got)
		return READ_TORN;
	if (n == 0 && got < 4 &&
	    (memcmp(entry, GENESIS_MAGIC, (size_t)got) == 0 ||
	     memcmp(entry, CHECKPOINT_MAGIC, (size_t)got) == 0))
		return READ_TORN;
	why = n ? checkpoint_log_next(&f->log, entry, n, &f->next, &f->genesis) : no_entry;
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	f->off += n;
	f->has_next = true;
	return READ_OK;
}
