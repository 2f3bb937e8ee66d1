// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/redact_escrow.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/trust.h"
#include "userspace/cli/bundle.h"
#include "userspace/redact/redact.h"
#include "userspace/store/store.h"

#define KEY_FILE_MAX 4096

DEFINE_AUTO(journal_reader, journal_reader_free)

static int write_key(const char *path, mode_t mode, const char *line,
		     const uint8_t key[ESCROW_KEY_LEN], struct err *err)
{
	auto_close int fd = -1;
	char text[128], hex[2 * ESCROW_KEY_LEN + 1];
	int n, r = 0;

	sodium_bin2hex(hex, sizeof(hex), key, ESCROW_KEY_LEN);
	n = snprintf(text, sizeof(text), "%s%s\n", line, hex);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		r = errno;
	else if (write(fd, text, (size_t)n) != n || fsync(fd) < 0)
		r = errno ? errno : EIO;
	sodium_memzero(text, sizeof(text));
	sodium_memzero(hex, sizeof(hex));
	return r ? err_set(err, r, "'%s': %m", path) : 0;
}

int redact_keygen(const char *path, struct err *err)
{
	uint8_t public_key[ESCROW_KEY_LEN], secret[ESCROW_KEY_LEN];
	char pub[4096];
	int r;

	if ((size_t)snprintf(pub, sizeof(pub), "%s.pub", path) >= sizeof(pub))
		return err_set(err, ENAMETOOLONG, "'%s': %m", path);
	if (access(pub, F_OK) == 0)
		return err_set(err, EEXIST, "'%s': %m", pub);
	r = escrow_keys_make(public_key, secret);
	if (r < 0)
		return err_set(err, r, "libsodium cannot be set up");
	r = write_key(path, 0600, ESCROW_SECRET_LINE, secret, err);
	if (r == 0)
		r = write_key(pub, 0644, ESCROW_PUBLIC_LINE, public_key, err);
	sodium_memzero(secret, sizeof(secret));
	return r;
}

static int parse_key(uint8_t ret[ESCROW_KEY_LEN], const char *path, const char *line,
		     struct str text, struct err *err)
{
	bool is_secret = !strcmp(line, ESCROW_SECRET_LINE);

	if (escrow_key_parse(ret, line, text) == 0)
		return 0;
	return err_set(err, EINVAL,
		       "key file '%s': it is no %s key of an escrow (warder redact keygen)", path,
		       is_secret ? "secret" : "public");
}

static int read_secret(uint8_t ret[ESCROW_KEY_LEN], const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "key file '%s': %m", path);
	r = fd_read_text(fd, KEY_FILE_MAX, &text, &n);
	if (r < 0)
		return err_set(err, r, "key file '%s': %m", path);
	r = parse_key(ret, path, ESCROW_SECRET_LINE, (struct str){ text, n }, err);
	sodium_memzero(text, n);
	if (r == 0 && st.st_mode & 077)
		r = err_set(
			err, EPERM,
			"key file '%s' must be for its owner alone (chmod 600): who has it undoes "
			"redactions",
			path);
	return r;
}

int redact_escrow_key_file(uint8_t ret[ESCROW_KEY_LEN], const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	/* Who can put his own key there reads what was taken out. */
	int r = file_read_trusted(path, KEY_FILE_MAX, &text, &n, "key file", err);

	if (r == 0)
		r = parse_key(ret, path, ESCROW_PUBLIC_LINE, (struct str){ text, n }, err);
	if (r == 0 && !escrow_key_works(ret))
		r = err_set(err, EINVAL,
			    "key file '%s': nothing can be sealed for that key (warder redact "
			    "keygen makes one)",
			    path);
	return r;
}

/* ---- reveal ---- */

/* Is [redacted:RULE:TAG] in the record? */
static bool has_mark(struct str rec, const struct redact_original *o)
{
	char mark[REDACT_MARK_MAX + 1], hex[2 * REDACT_TAG_LEN + 1];

	sodium_bin2hex(hex, sizeof(hex), (const unsigned char *)o->tag.p, REDACT_TAG_LEN);
	snprintf(mark, sizeof(mark), REDACT_MARK "%.*s:%s]", (int)o->rule.n, o->rule.p, hex);
	return memmem(rec.p, rec.n, mark, strlen(mark)) != NULL;
}

static void print_original(const struct redact_original *o)
{
	char hex[2 * REDACT_TAG_LEN + 1];
	auto_buf struct buf out = { 0 };
	struct json j;

	sodium_bin2hex(hex, sizeof(hex), (const unsigned char *)o->tag.p, REDACT_TAG_LEN);
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "rule");
	json_str(&j, o->rule);
	json_key(&j, "tag");
	json_strz(&j, hex);
	json_key(&j, "original");
	json_str(&j, o->text);
	json_object_end(&j);
	if (out.n) {
		fwrite(out.p, 1, out.n, stdout);
		putchar('\n');
		sodium_memzero(out.p, out.n);
	}
}

/* A copy of record `seq` in `ret`. */
static int read_record(int dirfd, uint64_t seq, struct buf *ret, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	struct str rec;
	uint64_t got;
	int r = journal_reader_open(&reader, dirfd, err);

	if (r == 0)
		r = journal_reader_seek(reader, seq - 1, err);
	if (r == 0)
		r = journal_reader_next(reader, &rec, &got, err);
	if (r < 0)
		return r;
	if (r == 0 || got != seq)
		return err_set(err, ENOENT, "there is no record %llu", (unsigned long long)seq);
	return buf_add(ret, rec.p, rec.n);
}

static int reveal_payload(struct str payload, const uint8_t *secret, struct str record,
			  struct err *err)
{
	auto_buf struct buf room = { 0 };
	struct redact_original o;
	struct escrow_reader er;
	int r = escrow_reader_init(&er, payload);

	while (r == 0 && (r = escrow_reader_next(&er, secret, &room, &o)) == 1) {
		if (!record.p || has_mark(record, &o))
			print_original(&o);
		sodium_memzero(room.p, room.n);
		r = 0;
	}
	if (r == -EKEYREJECTED)
		return err_set(err, r, "the originals are sealed for another key");
	return r < 0 ? err_set(err, r, "an original cannot be opened: %s", strerror(-r)) : 0;
}

static int check_intact(int dirfd, const char *word, struct err *err)
{
	struct verify_report rep;
	int r = store_verify(dirfd, &rep, NULL, NULL, err);

	if (r == 0 && rep.state == VERIFY_ALTERED)
		r = err_set(err, EBADMSG, "session '%s': %.300s", word, rep.text);
	return r;
}

int redact_reveal(const char *word, const char *key_path, uint64_t record, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	uint8_t secret[ESCROW_KEY_LEN];
	auto_buf struct buf wanted = { 0 };
	auto_close int fd = -1;
	struct str payload;
	bool any = false;
	int r;

	r = read_secret(secret, key_path, err);
	if (r == 0)
		r = bundle_open(&fd, word, "redact reveal", err);
	if (r == 0)
		r = check_intact(fd, word, err);
	if (r == 0 && record)
		r = read_record(fd, record, &wanted, err);
	if (r == 0)
		r = journal_reader_open(&reader, fd, err);
	while (r == 0 && (r = journal_reader_next_aside(reader, &payload, err)) == 1) {
		any = true;
		r = reveal_payload(payload, secret, (struct str){ wanted.p, wanted.n }, err);
	}
	sodium_memzero(secret, sizeof(secret));
	if (r == 0)
		r = bundle_check_end(fd, UINT64_MAX, err);
	if (r == 0 && !any)
		r = err_set(err, ENOENT, "session '%s': no originals are kept in it", word);
	return r;
}
