// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/trail.h"
#include "userspace/store/files.h"
#include "userspace/store/keys.h"
#include "userspace/store/manifest.h"

#define BUNDLE_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define KEY_FILE_MAX (64u << 10)
#define MIN_PART     4 /* characters of an id that may stand for the whole */

static bool part_matches(const char *name, const char *word)
{
	size_t n = strlen(word), len = strlen(name);

	return n >= MIN_PART && n <= len &&
	       (!strncasecmp(name, word, n) || !strcasecmp(name + len - n, word));
}

static void keep_id(char ret[ULID_LEN + 1], const char *name)
{
	if (strlen(name) == ULID_LEN)
		memcpy(ret, name, ULID_LEN + 1);
}

static int find_by_part(int *ret_fd, char ret_id[ULID_LEN + 1], int sessions, const char *word,
			struct err *err)
{
	auto_dir DIR *dir = fdopendir(dup(sessions));
	char found[256] = "";
	struct dirent *de;

	if (!dir)
		return err_set(err, errno, "reading the sessions: %m");
	while ((de = readdir(dir))) {
		if (!part_matches(de->d_name, word))
			continue;
		if (found[0])
			return err_set(err, ENOTUNIQ, "'%s' could be %s or %s", word, found,
				       de->d_name);
		snprintf(found, sizeof(found), "%s", de->d_name);
	}
	if (!found[0])
		return err_set(err, ENOENT, "no session '%s' in %s/sessions, and no such directory",
			       word, state_dir());
	keep_id(ret_id, found);
	*ret_fd = openat(sessions, found, BUNDLE_FLAGS | O_NOFOLLOW);
	return *ret_fd < 0 ? err_set(err, errno, "session '%s': %m", found) : 0;
}

/* An empty record and no record must not look the same. */
static int check_record(int fd, const char *word, struct err *err)
{
	if (faccessat(fd, "events.0001.seg", F_OK, 0) == 0 ||
	    faccessat(fd, "manifest.json", F_OK, 0) == 0)
		return 0;
	return err_set(err, ENOENT,
		       "session '%s': no session bundle: neither events.0001.seg nor "
		       "manifest.json is there",
		       word);
}

/* The sessions of this host come first: a directory that a payload left where the operator happens to
 * be must not pass for the record. */
static int open_word(int *ret_fd, char ret_id[ULID_LEN + 1], const char *word, struct err *err)
{
	auto_close int sessions = -1;
	char path[4096];
	int fd, e;

	if (!*word)
		return err_set(err, EINVAL, "empty session name");
	if (strchr(word, '/') || !strcmp(word, ".") || !strcmp(word, "..")) {
		*ret_fd = open(word, BUNDLE_FLAGS);
		return *ret_fd < 0 ? err_set(err, errno, "session directory '%s': %m", word) : 0;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s/sessions", state_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	sessions = open(path, BUNDLE_FLAGS);
	e = errno;
	fd = sessions < 0 ? -1 : openat(sessions, word, BUNDLE_FLAGS | O_NOFOLLOW);
	if (fd >= 0)
		keep_id(ret_id, word);
	else
		fd = open(word, BUNDLE_FLAGS);
	if (fd >= 0) {
		*ret_fd = fd;
		return 0;
	}
	if (errno == EACCES)
		return err_set(err, errno, "session directory '%s': %m", word);
	if (sessions < 0)
		return err_set(err, e, "no directory '%s', and the sessions in %s: %m", word, path);
	return find_by_part(ret_fd, ret_id, sessions, word, err);
}

int bundle_open_id(int *ret_fd, char ret_id[ULID_LEN + 1], const char *word, struct err *err)
{
	auto_close int fd = -1;
	int r;

	ret_id[0] = 0;
	r = open_word(&fd, ret_id, word, err);
	if (r == 0)
		r = check_record(fd, word, err);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

int bundle_open_told(int *ret_fd, char ret_id[ULID_LEN + 1], const char *word, const char *command,
		     struct err *err)
{
	int r = bundle_open_id(ret_fd, ret_id, word, err);

	if (r == 0 && ret_id[0])
		trail_add_access(ret_id, command);
	return r;
}

int bundle_open(int *ret_fd, const char *word, const char *command, struct err *err)
{
	char id[ULID_LEN + 1];

	return bundle_open_told(ret_fd, id, word, command, err);
}

DEFINE_AUTO(journal_reader, journal_reader_free)

/* 1: the seal stands behind record `records`, and nothing behind it; 0: it is not there. */
static int has_seal(int fd, uint64_t records, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	uint64_t seq = 0;
	struct str rec;
	int r = journal_reader_open(&reader, fd, err);

	if (r == 0)
		r = journal_reader_seek(reader, records, err);
	if (r == 0)
		r = journal_reader_next(reader, &rec, &seq, err);
	if (r == 1)
		return err_set(err, EBADMSG, "there are more records than the %llu of its manifest",
			       (unsigned long long)records);
	return r < 0 ? r : journal_reader_at_end(reader);
}

int bundle_check_end(int fd, uint64_t last, struct err *err)
{
	auto_buf struct buf text = { 0 };
	struct manifest_info m;
	int r;

	buf_init(&text, MANIFEST_MAX);
	if (manifest_load(fd, &text) < 0 || manifest_parse((struct str){ text.p, text.n }, &m) < 0)
		return store_has_writer(fd)
			       ? 0
			       : err_set(err, EBADMSG,
					 "manifest.json is missing or not ours, so where the record "
					 "ends is not known; see `warder verify`");
	if (!m.sealed)
		return 0;
	r = has_seal(fd, m.records, err);
	if (r == 0 && store_has_writer(fd)) /* the manifest is written before the seal */
		return 0;
	if (r == 0) /* it may have come in between */
		r = has_seal(fd, m.records, err);
	if (r == 1)
		return store_check_sizes(fd, &m, true, err);
	if (r < 0)
		return r;
	if (last < m.records)
		return err_set(err, EBADMSG,
			       "the record ends at %llu of %llu: it was cut; see `warder verify`",
			       (unsigned long long)last, (unsigned long long)m.records);
	return err_set(err, EBADMSG,
		       "the end of the record is missing: it was cut; see `warder verify`");
}

/* One file: a key a line. Returns how many keys there are now. */
static int read_key_file(const char *path, uint8_t keys[][STORE_HASH_LEN], size_t n,
			 struct err *err)
{
	auto_free char *text = NULL;
	size_t size = 0, line = 0, before = n;
	int r = file_read_at(AT_FDCWD, path, KEY_FILE_MAX, &text, &size);

	if (r < 0)
		return err_set(err, r, "key file '%s': %s", path, strerror(-r));
	for (const char *p = text, *end; p < text + size; p = end + 1) {
		end = memchr(p, '\n', (size_t)(text + size - p));
		end = end ? end : text + size;
		line++;
		if (end == p)
			continue;
		if (n == BUNDLE_KEYS_MAX)
			return err_set(err, E2BIG, "more than %d keys", BUNDLE_KEYS_MAX);
		if (key_parse((struct str){ p, (size_t)(end - p) }, keys[n++]) < 0)
			return err_set(err, EINVAL,
				       "key file '%s', line %zu: no public key of a host", path,
				       line);
	}
	return n == before ? err_set(err, EINVAL, "key file '%s': it is empty", path) : (int)n;
}

int bundle_read_keys(const struct option_list *files, uint8_t keys[][STORE_HASH_LEN],
		     struct err *err)
{
	int n = 0;

	for (size_t i = 0; n >= 0 && i < files->n; i++)
		n = read_key_file(files->v[i], keys, (size_t)n, err);
	return n;
}
