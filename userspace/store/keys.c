// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/keys.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/store/chain.h"
#include "userspace/store/format.h"
#include "userspace/store/merkle.h"

#define SEED_FILE      "host.seed"
#define TREE_FILE      "host.tree"
#define PUBLIC_FILE    "host.pub"
#define ROTATIONS_FILE "rotations.log"
#define ROTATIONS_MAX  (1u << 20)
#define SEED_MAGIC     "WKEYSEED"
#define SEED_FILE_LEN  80
#define ROTATION_LABEL "warder key rotation"

/* host.seed: magic 8, depth 4, epoch 4, seconds 8, begun 8, seed 32, zero 16. It is overwritten in
 * place, never replaced: a new file would leave the old seed in free blocks of the disk. */
struct seed_file {
	uint32_t depth, epoch;
	uint64_t seconds, begun_ns;
	uint8_t seed[KEY_LEN];
};

static void seed_encode(uint8_t out[SEED_FILE_LEN], const struct seed_file *s)
{
	memset(out, 0, SEED_FILE_LEN);
	memcpy(out, SEED_MAGIC, 8);
	put_le32(out + 8, s->depth);
	put_le32(out + 12, s->epoch);
	put_le64(out + 16, s->seconds);
	put_le64(out + 24, s->begun_ns);
	memcpy(out + 32, s->seed, KEY_LEN);
}

static int seed_decode(struct seed_file *ret, const uint8_t *p)
{
	struct seed_file s = {
		.depth = get_le32(p + 8),
		.epoch = get_le32(p + 12),
		.seconds = get_le64(p + 16),
		.begun_ns = get_le64(p + 24),
	};

	if (memcmp(p, SEED_MAGIC, 8) != 0 || s.depth > KEY_DEPTH_MAX || s.epoch >> s.depth)
		return -EBADMSG;
	memcpy(s.seed, p + 32, KEY_LEN);
	*ret = s;
	return 0;
}

/* ---- the ratchet ---- */

static int next_seed(struct chain *c, uint8_t seed[KEY_LEN])
{
	static const char label[] = "warder next epoch";

	return chain_hash(c, seed, label, sizeof(label), seed, KEY_LEN);
}

static int epoch_key(struct chain *c, const uint8_t seed[KEY_LEN], uint8_t ret_public[KEY_LEN],
		     uint8_t ret_secret[crypto_sign_SECRETKEYBYTES])
{
	static const char label[] = "warder epoch key";
	uint8_t key_seed[KEY_LEN];
	int r;

	r = chain_hash(c, key_seed, label, sizeof(label), seed, KEY_LEN);
	if (r == 0 && crypto_sign_seed_keypair(ret_public, ret_secret, key_seed) != 0)
		r = -EIO;
	sodium_memzero(key_seed, sizeof(key_seed));
	return r;
}

static int epoch_leaf(struct chain *c, uint8_t ret[STORE_HASH_LEN], uint32_t epoch,
		      const uint8_t public_key[KEY_LEN])
{
	uint8_t entry[4 + KEY_LEN];

	put_le32(entry, epoch);
	memcpy(entry + 4, public_key, KEY_LEN);
	return merkle_leaf(c, ret, entry, sizeof(entry));
}

/* ---- the tree: host.tree holds 2^depth leaves, then 2^(depth-1) nodes above them, ..., the root ---- */

static size_t level_at(unsigned depth, unsigned level)
{
	size_t at = 0;

	for (unsigned i = 0; i < level; i++)
		at += (size_t)1 << (depth - i);
	return at;
}

static int fill_tree(struct chain *c, uint8_t *tree, unsigned depth, const uint8_t seed[KEY_LEN])
{
	uint8_t s[KEY_LEN], public_key[KEY_LEN], secret[crypto_sign_SECRETKEYBYTES];
	int r = 0;

	memcpy(s, seed, KEY_LEN);
	for (uint32_t i = 0; r == 0 && i < 1u << depth; i++) {
		r = epoch_key(c, s, public_key, secret);
		if (r == 0)
			r = epoch_leaf(c, tree + (size_t)i * STORE_HASH_LEN, i, public_key);
		if (r == 0)
			r = next_seed(c, s);
	}
	sodium_memzero(s, sizeof(s));
	sodium_memzero(secret, sizeof(secret));
	for (unsigned level = 1; r == 0 && level <= depth; level++) {
		const uint8_t *from = tree + level_at(depth, level - 1) * STORE_HASH_LEN;
		uint8_t *to = tree + level_at(depth, level) * STORE_HASH_LEN;

		for (size_t i = 0; r == 0 && i < (size_t)1 << (depth - level); i++)
			r = merkle_node(c, to + i * STORE_HASH_LEN, from + 2 * i * STORE_HASH_LEN,
					from + (2 * i + 1) * STORE_HASH_LEN);
	}
	return r;
}

static int read_path(int dirfd, unsigned depth, uint32_t epoch, uint8_t path[][STORE_HASH_LEN])
{
	auto_close int fd = openat(dirfd, TREE_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	for (unsigned level = 0; level < depth; level++) {
		size_t node = level_at(depth, level) + ((epoch >> level) ^ 1);

		if (pread(fd, path[level], STORE_HASH_LEN, (off_t)(node * STORE_HASH_LEN)) !=
		    STORE_HASH_LEN)
			return -EIO;
	}
	return 0;
}

/* ---- making and showing ---- */

static int make_key(int dirfd, const struct key_options *opt, uint64_t real_ns,
		    uint8_t ret_public[KEY_LEN], uint8_t ret_seed[SEED_FILE_LEN], struct err *err)
{
	struct seed_file s = { .begun_ns = real_ns };
	auto_chain struct chain *c = NULL;
	auto_free uint8_t *tree = NULL;
	size_t nodes;
	int r;

	s.depth = opt && opt->depth ? opt->depth : KEY_DEPTH_MAX;
	s.seconds = opt && opt->seconds ? opt->seconds : KEY_EPOCH_SECONDS;
	if (s.depth > KEY_DEPTH_MAX)
		return err_set(err, EINVAL, "host key: at most 2^%d epochs", KEY_DEPTH_MAX);
	if (sodium_init() < 0)
		return err_set(err, EIO, "host key: libsodium cannot be set up");
	nodes = ((size_t)2 << s.depth) - 1;
	tree = malloc(nodes * STORE_HASH_LEN);
	r = tree ? chain_new(&c) : -ENOMEM;
	if (r < 0)
		return err_set(err, r, "host key: %m");
	randombytes_buf(s.seed, KEY_LEN);
	r = fill_tree(c, tree, s.depth, s.seed);
	if (r == 0)
		r = file_replace_at(dirfd, TREE_FILE, tree, nodes * STORE_HASH_LEN, 0644);
	if (r == 0) {
		memcpy(ret_public, tree + (nodes - 1) * STORE_HASH_LEN, KEY_LEN);
		seed_encode(ret_seed, &s);
	}
	sodium_memzero(&s, sizeof(s));
	return r < 0 ? err_set(err, r, "host key: " TREE_FILE ": %m") : 0;
}

static int write_public(int dirfd, const uint8_t public_key[KEY_LEN])
{
	char hex[2 * STORE_HASH_LEN + 1], line[sizeof(KEY_TEXT) + sizeof(hex)];

	hash_to_hex(hex, public_key);
	snprintf(line, sizeof(line), KEY_TEXT "%s\n", hex);
	return file_replace_at(dirfd, PUBLIC_FILE, line, strlen(line), 0644);
}

int keys_init(int dirfd, const struct key_options *opt, struct err *err)
{
	uint8_t public_key[KEY_LEN], seed[SEED_FILE_LEN];
	auto_close int fd = -1;
	int r;

	/* Last to appear and first to be taken: a directory with a seed has a whole key. */
	fd = openat(dirfd, SEED_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, errno, "host key: " SEED_FILE ": %m");
	if (faccessat(dirfd, SEED_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		unlinkat(dirfd, SEED_FILE ".new", 0);
		return err_set(err, EEXIST, "the host has a key already");
	}
	r = make_key(dirfd, opt, clock_real_ns(), public_key, seed, err);
	if (r < 0)
		return r;
	r = write_public(dirfd, public_key);
	if (r == 0)
		r = fd_write_all(fd, seed, sizeof(seed));
	sodium_memzero(seed, sizeof(seed));
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	if (r == 0 && renameat2(dirfd, SEED_FILE ".new", dirfd, SEED_FILE, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r == 0)
		fsync(dirfd);
	return r < 0 ? err_set(err, r, "host key: %m") : 0;
}

int key_parse(struct str line, uint8_t ret[KEY_LEN])
{
	size_t n = 0;

	while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
		line.n--;
	if (!str_starts(line, STR(KEY_TEXT)) || line.n != sizeof(KEY_TEXT) - 1 + 2 * KEY_LEN)
		return -EINVAL;
	if (sodium_hex2bin(ret, KEY_LEN, line.p + sizeof(KEY_TEXT) - 1, 2 * KEY_LEN, NULL, &n,
			   NULL) != 0 ||
	    n != KEY_LEN)
		return -EINVAL;
	return 0;
}

int keys_public(int dirfd, uint8_t ret[KEY_LEN], struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r;

	r = file_read_at(dirfd, PUBLIC_FILE, 4096, &text, &n);
	if (r < 0)
		return err_set(err, r, "host key: " PUBLIC_FILE ": %m");
	r = key_parse((struct str){ text, n }, ret);
	return r < 0 ? err_set(err, r, "host key: " PUBLIC_FILE " is no public key") : 0;
}

/* ---- signing ---- */

/* The locked seed file, its epoch moved on when that is due. */
static int open_seed(int dirfd, uint64_t real_ns, struct chain *c, int *ret_fd,
		     struct seed_file *ret, struct err *err)
{
	uint8_t bytes[SEED_FILE_LEN];
	auto_close int fd = -1;
	struct seed_file s;
	int r = 0;

	fd = openat(dirfd, SEED_FILE, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, errno, "host key: " SEED_FILE ": %m");
	if (pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) || seed_decode(&s, bytes) < 0)
		return err_set(err, EBADMSG, "host key: " SEED_FILE " is damaged");
	/* the last epoch lasts until the key is rotated */
	if (s.epoch + 1 < 1u << s.depth && real_ns >= s.begun_ns &&
	    real_ns - s.begun_ns >= s.seconds * NSEC_PER_SEC) {
		r = next_seed(c, s.seed);
		s.epoch++;
		s.begun_ns = real_ns;
		seed_encode(bytes, &s);
		/* on disk before it is used: no crash brings the old seed back */
		if (r == 0 &&
		    (pwrite(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) || fdatasync(fd) < 0))
			r = -EIO;
	}
	sodium_memzero(bytes, sizeof(bytes));
	if (r == 0) {
		*ret = s;
		*ret_fd = take_fd(fd);
	}
	sodium_memzero(&s, sizeof(s));
	return r < 0 ? err_set(err, r, "host key: " SEED_FILE ": %m") : 0;
}

int keys_sign(int dirfd, uint64_t real_ns, const void *msg, size_t n, struct key_signature *ret,
	      struct err *err)
{
	uint8_t secret[crypto_sign_SECRETKEYBYTES], host[KEY_LEN];
	struct key_signature sig = { 0 };
	auto_chain struct chain *c = NULL;
	auto_close int fd = -1;
	struct seed_file s;
	int r;

	if (sodium_init() < 0)
		return err_set(err, EIO, "host key: libsodium cannot be set up");
	r = chain_new(&c);
	if (r < 0)
		return err_set(err, r, "host key: %m");
	r = open_seed(dirfd, real_ns, c, &fd, &s, err);
	if (r < 0)
		return r;
	sig.epoch = s.epoch;
	sig.depth = s.depth;
	r = epoch_key(c, s.seed, sig.public_key, secret);
	sodium_memzero(&s, sizeof(s));
	if (r == 0)
		r = read_path(dirfd, sig.depth, sig.epoch, sig.path);
	if (r == 0 && crypto_sign_detached(sig.sig, NULL, msg, n, secret) != 0)
		r = -EIO;
	sodium_memzero(secret, sizeof(secret));
	if (r < 0)
		return err_set(err, r, "host key: %m");
	/* seed, tree and public key are three files: find out here that they fit, not in court */
	r = keys_public(dirfd, host, err);
	if (r < 0)
		return r;
	if (!key_signature_is_good(host, &sig, msg, n))
		return err_set(err, EBADMSG, "host key: its files do not fit together");
	*ret = sig;
	return 0;
}

bool key_signature_is_good(const uint8_t host[KEY_LEN], const struct key_signature *s,
			   const void *msg, size_t n)
{
	auto_chain struct chain *c = NULL;
	uint8_t node[STORE_HASH_LEN];

	if (s->depth > KEY_DEPTH_MAX || s->epoch >> s->depth || chain_new(&c) < 0 ||
	    sodium_init() < 0)
		return false;
	if (epoch_leaf(c, node, s->epoch, s->public_key) < 0)
		return false;
	for (unsigned level = 0; level < s->depth; level++) {
		bool right = s->epoch >> level & 1;

		if (merkle_node(c, node, right ? s->path[level] : node,
				right ? node : s->path[level]) < 0)
			return false;
	}
	return memcmp(node, host, KEY_LEN) == 0 &&
	       crypto_sign_verify_detached(s->sig, msg, n, s->public_key) == 0;
}

int keys_epochs(int dirfd, uint32_t *ret_epoch, uint32_t *ret_all, struct err *err)
{
	uint8_t bytes[SEED_FILE_LEN];
	auto_close int fd = openat(dirfd, SEED_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct seed_file s;

	if (fd < 0)
		return err_set(err, errno, "host key: " SEED_FILE ": %m");
	if (pread(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) || seed_decode(&s, bytes) < 0)
		return err_set(err, EBADMSG, "host key: " SEED_FILE " is damaged");
	*ret_epoch = s.epoch;
	*ret_all = 1u << s.depth;
	sodium_memzero(&s, sizeof(s));
	sodium_memzero(bytes, sizeof(bytes));
	return 0;
}

/* ---- rotation ---- */

/* One line: old key, new key, when, and the old key's signature over the three. */
static int log_rotation(int dirfd, const uint8_t old[KEY_LEN], const uint8_t new[KEY_LEN],
			uint64_t real_ns, struct err *err)
{
	uint8_t msg[sizeof(ROTATION_LABEL) + 2 * KEY_LEN + 8];
	char hex[2 * KEY_SIG_LEN + 1];
	struct key_signature sig;
	auto_close int fd = -1;
	auto_buf struct buf line = { 0 };
	int r;

	memcpy(msg, ROTATION_LABEL, sizeof(ROTATION_LABEL));
	memcpy(msg + sizeof(ROTATION_LABEL), old, KEY_LEN);
	memcpy(msg + sizeof(ROTATION_LABEL) + KEY_LEN, new, KEY_LEN);
	put_le64(msg + sizeof(ROTATION_LABEL) + 2 * KEY_LEN, real_ns);
	r = keys_sign(dirfd, real_ns, msg, sizeof(msg), &sig, err);
	if (r < 0)
		return r;
	buf_init(&line, 8192);
	buf_printf(&line, "{\"old\":\"%s\",", sodium_bin2hex(hex, sizeof(hex), old, KEY_LEN));
	buf_printf(&line, "\"new\":\"%s\",", sodium_bin2hex(hex, sizeof(hex), new, KEY_LEN));
	buf_printf(&line, "\"time_ns\":%llu,\"epoch\":%u,\"depth\":%u,",
		   (unsigned long long)real_ns, sig.epoch, sig.depth);
	buf_printf(&line, "\"epoch_key\":\"%s\",\"path\":[",
		   sodium_bin2hex(hex, sizeof(hex), sig.public_key, KEY_LEN));
	for (unsigned i = 0; i < sig.depth; i++)
		buf_printf(&line, "%s\"%s\"", i ? "," : "",
			   sodium_bin2hex(hex, sizeof(hex), sig.path[i], STORE_HASH_LEN));
	buf_printf(&line, "],\"signature\":\"%s\"}\n",
		   sodium_bin2hex(hex, sizeof(hex), sig.sig, KEY_SIG_LEN));
	fd = openat(dirfd, ROTATIONS_FILE, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		    0644);
	if (fd < 0)
		return err_set(err, errno, "host key: " ROTATIONS_FILE ": %m");
	r = line.failed ? -ENOMEM : fd_write_all(fd, line.p, line.n);
	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "host key: " ROTATIONS_FILE ": %m") : 0;
}

int keys_rotate(int dirfd, const struct key_options *opt, struct err *err)
{
	uint8_t old[KEY_LEN], new[KEY_LEN], seed[SEED_FILE_LEN];
	uint64_t now = clock_real_ns();
	auto_close int sub = -1, fd = -1;
	int r;

	r = keys_public(dirfd, old, err);
	if (r < 0)
		return r;
	/* made aside, so that the old tree can still sign */
	if (mkdirat(dirfd, "next", 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "host key: next: %m");
	sub = openat(dirfd, "next", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (sub < 0)
		return err_set(err, errno, "host key: next: %m");
	r = make_key(sub, opt, now, new, seed, err);
	if (r == 0)
		r = log_rotation(dirfd, old, new, now, err);
	if (r < 0)
		goto out;
	fd = openat(dirfd, SEED_FILE, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || flock(fd, LOCK_EX) < 0 || pwrite(fd, seed, sizeof(seed), 0) != sizeof(seed) ||
	    fdatasync(fd) < 0 || renameat(sub, TREE_FILE, dirfd, TREE_FILE) < 0)
		r = err_set(err, errno, "host key: %m");
	else if (write_public(dirfd, new) < 0)
		r = err_set(err, EIO, "host key: " PUBLIC_FILE ": %m");
out:
	sodium_memzero(seed, sizeof(seed));
	unlinkat(sub, TREE_FILE, 0);
	unlinkat(dirfd, "next", AT_REMOVEDIR);
	return r;
}

int keys_former(int dirfd, uint8_t ret[][KEY_LEN], size_t max, struct err *err)
{
	static const char start[] = "{\"old\":\"";
	auto_free char *text = NULL;
	size_t size = 0, n = 0, hex = 0;
	int r = file_read_at(dirfd, ROTATIONS_FILE, ROTATIONS_MAX, &text, &size);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(err, r, "host key: " ROTATIONS_FILE ": %m");
	for (const char *p = text, *end; p < text + size; p = end + 1, n++) {
		end = memchr(p, '\n', (size_t)(text + size - p));
		if (n == max)
			return err_set(err, E2BIG, "host key: more than %zu were in use", max);
		if (!end || (size_t)(end - p) < sizeof(start) + 2 * KEY_LEN ||
		    memcmp(p, start, sizeof(start) - 1) != 0 ||
		    sodium_hex2bin(ret[n], KEY_LEN, p + sizeof(start) - 1, 2 * KEY_LEN, NULL, &hex,
				   NULL) != 0 ||
		    hex != KEY_LEN)
			return err_set(err, EBADMSG,
				       "host key: " ROTATIONS_FILE ", line %zu: no change of key",
				       n + 1);
	}
	return (int)n;
}
