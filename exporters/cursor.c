// SPDX-License-Identifier: Apache-2.0
#include "exporters/cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/ulid.h"

#define CURSOR_MAGIC	"warder-cursor 2"
#define CURSOR_SUFFIX	".cursor"
#define CURSOR_FILE_MAX 512
#define REQUIRED	"required"
#define OPTIONAL	"optional"

static uint64_t fnv64(const char *p, size_t n)
{
	uint64_t h = 14695981039346656037ull;

	for (; n; n--, p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ull;
	return h;
}

/* Names become file names: nothing that leaves the directory. */
static int state_file_name(char ret[NAME_MAX + 1], const char *session, const char *sink,
			   const char *suffix)
{
	if (!*session || *session == '.' || strchr(session, '/') || strchr(sink, '/'))
		return -EINVAL;
	if (snprintf(ret, NAME_MAX + 1, "%s.%s.%s", session, sink, suffix) > NAME_MAX - 5)
		return -ENAMETOOLONG; /* file_replace_at adds ".tmp" and a dot */
	return 0;
}

/* The line without its checksum. */
static int cursor_body(char *ret, size_t size, const char *session, const char *sink, uint64_t seq,
		       bool required)
{
	int n = snprintf(ret, size, CURSOR_MAGIC " %s %s %llu %s ", session, sink,
			 (unsigned long long)seq, required ? REQUIRED : OPTIONAL);

	return (size_t)n < size ? n : -ENAMETOOLONG;
}

static int cursor_line(char *ret, size_t size, const char *session, const char *sink, uint64_t seq,
		       bool required)
{
	int n = cursor_body(ret, size, session, sink, seq, required), k;

	if (n < 0)
		return n;
	k = snprintf(ret + n, size - (size_t)n, "%016llx\n",
		     (unsigned long long)fnv64(ret, (size_t)n));
	return (size_t)(n + k) < size ? n + k : -ENAMETOOLONG;
}

static int load(int dirfd, const char *session, const char *sink, uint64_t *ret_seq,
		bool *ret_required)
{
	char name[NAME_MAX + 1], want[CURSOR_FILE_MAX], prefix[CURSOR_FILE_MAX];
	auto_free char *text = NULL;
	unsigned long long seq;
	bool required;
	size_t n;
	char *end;
	int r;

	r = state_file_name(name, session, sink, "cursor");
	if (r < 0)
		return r;
	r = file_read_at(dirfd, name, CURSOR_FILE_MAX, &text, &n);
	if (r == -ENOENT) {
		*ret_seq = 0;
		*ret_required = false;
		return 0;
	}
	if (r < 0)
		return r == -EFBIG ? -EBADMSG : r;
	r = snprintf(prefix, sizeof(prefix), CURSOR_MAGIC " %s %s ", session, sink);
	if ((size_t)r >= sizeof(prefix) || strncmp(text, prefix, (size_t)r))
		return -EBADMSG;
	seq = strtoull(text + r, &end, 10);
	required = !strncmp(end, " " REQUIRED, sizeof(" " REQUIRED) - 1);
	r = cursor_line(want, sizeof(want), session, sink, seq, required);
	if (r < 0 || (size_t)r != n || memcmp(text, want, n))
		return -EBADMSG;
	*ret_seq = seq;
	*ret_required = required;
	return 0;
}

int cursor_load(int dirfd, const char *session, const char *sink, uint64_t *ret_seq)
{
	bool required;

	return load(dirfd, session, sink, ret_seq, &required);
}

static int open_files(DIR **ret, int dirfd)
{
	int copy = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	*ret = copy < 0 ? NULL : fdopendir(copy);
	if (*ret)
		return 0;
	r = -errno;
	if (copy >= 0)
		close(copy);
	return r;
}

static bool is_ours(const char *file)
{
	return str_ends(str_from(file), STR(CURSOR_SUFFIX)) ||
	       str_ends(str_from(file), STR(".dlq.jsonl"));
}

int cursor_forget(int dirfd, const char *session)
{
	auto_dir DIR *dir = NULL;
	size_t len = strlen(session);
	struct dirent *de;
	int r = open_files(&dir, dirfd), n = 0;

	if (r < 0)
		return r;
	while ((errno = 0, de = readdir(dir))) {
		if (strncmp(de->d_name, session, len) || de->d_name[len] != '.' ||
		    !is_ours(de->d_name))
			continue;
		if (unlinkat(dirfd, de->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
		n++;
	}
	return errno ? -errno : n;
}

/* The newest of the session's files decides. */
static bool touched_since(int dirfd, const char *session, time_t then)
{
	auto_dir DIR *dir = NULL;
	size_t len = strlen(session);
	struct dirent *de;
	struct stat st;

	if (open_files(&dir, dirfd) < 0)
		return true;
	while ((de = readdir(dir)))
		if (!strncmp(de->d_name, session, len) &&
		    fstatat(dirfd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    st.st_mtime >= then)
			return true;
	return false;
}

int cursor_sweep(int dirfd, uint64_t age_s, bool (*is_there)(void *arg, const char *session),
		 void *arg)
{
	time_t now = (time_t)(clock_real_ns() / NSEC_PER_SEC);
	time_t then = age_s < (uint64_t)now ? now - (time_t)age_s : 0;
	auto_dir DIR *dir = NULL;
	char session[ULID_LEN + 1];
	struct dirent *de;
	int r = open_files(&dir, dirfd), n = 0;

	if (r < 0)
		return r;
	while ((errno = 0, de = readdir(dir))) {
		if (strlen(de->d_name) <= ULID_LEN || de->d_name[ULID_LEN] != '.' ||
		    !is_ours(de->d_name))
			continue;
		memcpy(session, de->d_name, ULID_LEN);
		session[ULID_LEN] = 0;
		if (!ulid_is_valid(session) || is_there(arg, session) ||
		    touched_since(dirfd, session, then))
			continue;
		r = cursor_forget(dirfd, session);
		if (r < 0)
			return r;
		n += r;
	}
	return errno ? -errno : n;
}

/* "<session>.<sink>.cursor" -> sink */
static bool sink_of_file(const char *file, const char *session, char ret[CURSOR_SINK_MAX])
{
	size_t n = strlen(session), len = strlen(file), suffix = sizeof(CURSOR_SUFFIX) - 1;

	if (len <= n + 1 + suffix || strncmp(file, session, n) || file[n] != '.' ||
	    strcmp(file + len - suffix, CURSOR_SUFFIX))
		return false;
	len -= n + 1 + suffix;
	if (len >= CURSOR_SINK_MAX)
		return false;
	memcpy(ret, file + n + 1, len);
	ret[len] = 0;
	return true;
}

int cursor_floor(int dirfd, const char *session, uint64_t *ret_seq, char *ret_sink)
{
	char sink[CURSOR_SINK_MAX], behind[CURSOR_SINK_MAX] = "";
	uint64_t seq, floor = UINT64_MAX;
	auto_dir DIR *dir = NULL;
	struct dirent *de;
	int got = open_files(&dir, dirfd);

	if (got < 0)
		return got;
	while ((errno = 0, de = readdir(dir))) {
		bool required;
		int r;

		if (!sink_of_file(de->d_name, session, sink))
			continue;
		r = load(dirfd, session, sink, &seq, &required);
		if (r == -EBADMSG) {
			seq = 0;
			required = true;
		} else if (r < 0) {
			return r;
		}
		if (!required || seq >= floor)
			continue;
		floor = seq;
		memcpy(behind, sink, sizeof(behind));
	}
	if (errno)
		return -errno;
	*ret_seq = floor;
	memcpy(ret_sink, behind, sizeof(behind));
	return 0;
}

int cursor_store(int dirfd, const char *session, const char *sink, uint64_t seq, bool required)
{
	char name[NAME_MAX + 1], line[CURSOR_FILE_MAX];
	int n, r;

	r = state_file_name(name, session, sink, "cursor");
	if (r < 0)
		return r;
	n = cursor_line(line, sizeof(line), session, sink, seq, required);
	if (n < 0)
		return n;
	return file_replace_at(dirfd, name, line, (size_t)n, 0600);
}

static int dead_letter_line(struct buf *b, const char *sink, uint64_t seq, struct str record,
			    bool is_json, const char *why)
{
	char when[RFC3339_NS_LEN + 1];
	struct json j;

	rfc3339_ns(when, clock_real_ns());
	json_init(&j, b);
	json_object_begin(&j);
	json_key(&j, "seq");
	json_u64(&j, seq);
	json_key(&j, "time");
	json_strz(&j, when);
	json_key(&j, "sink");
	json_strz(&j, sink);
	json_key(&j, "why");
	json_strz(&j, why);
	json_key(&j, "record");
	if (is_json)
		json_raw(&j, record);
	else
		json_str(&j, record);
	json_object_end(&j);
	buf_addc(b, '\n');
	return b->failed ? -ENOMEM : 0;
}

int dead_letter_append(int dirfd, const char *session, const char *sink, uint64_t seq,
		       struct str record, bool is_json, const char *why)
{
	char name[NAME_MAX + 1];
	auto_close int fd = -1;
	auto_buf struct buf line = { 0 };
	struct stat st;
	int r;

	buf_init(&line, 0);
	r = state_file_name(name, session, sink, "dlq.jsonl");
	if (r < 0)
		return r;
	r = dead_letter_line(&line, sink, seq, record, is_json, why);
	if (r < 0)
		return r;
	fd = openat(dirfd, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size + (off_t)line.n > DEAD_LETTER_MAX)
		return -EFBIG;
	r = fd_write_all(fd, line.p, line.n);
	if (r < 0) {
		if (ftruncate(fd, st.st_size) < 0) /* no half line; if this fails, too, so be it */
			return r;
		return r;
	}
	return fdatasync(fd) < 0 ? -errno : 0;
}
