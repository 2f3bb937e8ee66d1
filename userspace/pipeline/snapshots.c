// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/snapshots.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "userspace/event/json_read.h"
#include "userspace/pipeline/run.h"

#define KIND	  "snapshots"
#define ARCHIVE	  "files.tar.zst"
#define PROCESSES "processes.img"
#define ABOUT	  "snapshot.json"
#define ABOUT_MAX 4096
#define NEW_OF	  ".new-" /* locked as long as somebody works on it */

static int check(const char *tenant, const char *name, struct err *err)
{
	int r = tenant_dir_check(KIND, tenant, err);

	if (r < 0)
		return r;
	if (name && !tenant_dir_name_is_good(name))
		return err_set(
			err, EINVAL,
			"snapshot '%.80s': a name of letters, digits, '.', '_' and '-', at most %d",
			name, SNAPSHOT_NAME_MAX);
	return 0;
}

static DIR *list(int dir)
{
	int copy = openat(dir, ".", TENANT_DIR_FLAGS);
	DIR *d = copy < 0 ? NULL : fdopendir(copy);

	if (!d && copy >= 0)
		close(copy);
	return d;
}

static void empty(int all, const char *name)
{
	auto_close int dir = openat(all, name, TENANT_DIR_FLAGS);

	if (dir >= 0) {
		auto_dir DIR *d = list(dir);
		struct dirent *de;

		while (d && (de = readdir(d)))
			unlinkat(dir, de->d_name, 0);
	}
	unlinkat(all, name, AT_REMOVEDIR);
}

/* What dead ones had begun. Returns how many there are that are whole. */
static size_t sweep(int all)
{
	auto_dir DIR *d = list(all);
	struct dirent *de;
	size_t n = 0;

	while (d && (de = readdir(d))) {
		auto_close int dir = -1;

		n += tenant_dir_name_is_good(de->d_name);
		if (strncmp(de->d_name, NEW_OF, strlen(NEW_OF)) != 0)
			continue;
		dir = openat(all, de->d_name, TENANT_DIR_FLAGS);
		if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0)
			empty(all, de->d_name);
	}
	return n;
}

/* One at a time makes, names and removes a tenant's. */
static int lock(int *ret_fd, int all, struct err *err)
{
	auto_close int fd = openat(all, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, errno, "snapshots: lock: %m");
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---- a new one ---- */

static int make(struct snapshots_new *n, struct err *err)
{
	auto_close int locked = -1;
	char id[ULID_LEN + 1];
	int r = lock(&locked, n->all, err);

	if (r < 0)
		return r;
	if (sweep(n->all) >= SNAPSHOTS_MAX)
		return err_set(err, EDQUOT, "tenant '%s' has %d snapshots: no more", n->row.tenant,
			       SNAPSHOTS_MAX);
	if (faccessat(n->all, n->row.name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(err, EEXIST, "a snapshot '%s' is there already", n->row.name);
	ulid_make(id, clock_real_ns());
	snprintf(n->tmp, sizeof(n->tmp), NEW_OF "%s", id);
	if (mkdirat(n->all, n->tmp, 0700) < 0)
		return err_set(err, errno, "snapshot '%s': %m", n->row.name);
	n->dir = openat(n->all, n->tmp, TENANT_DIR_FLAGS);
	if (n->dir < 0 || flock(n->dir, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno, "snapshot '%s': %m", n->row.name);
	n->file = openat(n->dir, ARCHIVE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return n->file < 0 ? err_set(err, errno, "snapshot '%s': %m", n->row.name) : 0;
}

int snapshots_begin(struct snapshots_new *ret, const char *tenant, const char *name,
		    struct err *err)
{
	int r = check(tenant, name, err);

	*ret = (struct snapshots_new){ .all = -1, .dir = -1, .file = -1, .processes = -1 };
	if (r < 0)
		return r;
	snprintf(ret->row.name, sizeof(ret->row.name), "%s", name);
	snprintf(ret->row.tenant, sizeof(ret->row.tenant), "%s", tenant);
	r = tenant_dir_open(&ret->all, KIND, tenant, true, err);
	if (r == 0)
		r = make(ret, err);
	if (r < 0)
		snapshots_done(ret);
	return r;
}

int snapshots_add_processes(struct snapshots_new *n, struct err *err)
{
	n->processes =
		openat(n->dir, PROCESSES, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return n->processes < 0 ? err_set(err, errno, "snapshot '%s': %m", n->row.name) : 0;
}

int snapshots_commit(struct snapshots_new *n, struct err *err)
{
	auto_buf struct buf text = { 0 };
	auto_close int locked = -1;
	struct json j;
	int r = 0;

	json_init(&j, &text);
	snapshots_json(&j, &n->row);
	if (text.failed)
		r = -ENOMEM;
	if (r == 0 && (fsync(n->file) < 0 || (n->processes >= 0 && fsync(n->processes) < 0)))
		r = -errno;
	if (r == 0)
		r = file_replace_at(n->dir, ABOUT, text.p, text.n, 0600);
	if (r < 0)
		return err_set(err, r, "snapshot '%s': %m", n->row.name);
	r = lock(&locked, n->all, err);
	if (r < 0)
		return r;
	/* Whoever was quicker has the name. */
	if (renameat2(n->all, n->tmp, n->all, n->row.name, RENAME_NOREPLACE) < 0)
		return err_set(err, errno, "snapshot '%s': %m", n->row.name);
	n->tmp[0] = 0;
	return fsync(n->all) < 0 ? err_set(err, errno, "snapshot '%s': %m", n->row.name) : 0;
}

void snapshots_done(struct snapshots_new *n)
{
	if (n->tmp[0] && n->all >= 0)
		empty(n->all, n->tmp);
	n->tmp[0] = 0;
	if (n->file >= 0)
		close(take_fd(n->file));
	if (n->processes >= 0)
		close(take_fd(n->processes));
	if (n->dir >= 0)
		close(take_fd(n->dir));
	if (n->all >= 0)
		close(take_fd(n->all));
}

/* ---- what is known of one ---- */

void snapshots_json(struct json *j, const struct snapshots_row *row)
{
	const struct {
		const char *key, *text;
	} texts[] = { { "snapshot", row->name },
		      { "tenant", row->tenant },
		      { "session", row->session },
		      { "sandbox", row->sandbox },
		      { "policy", row->policy } };
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = { { "files", row->files },
			{ "bytes", row->bytes },
			{ "stored", row->stored } };
	char when[RFC3339_NS_LEN + 1], hex[65];

	json_object_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		json_key(j, texts[i].key);
		json_strz(j, texts[i].text);
	}
	json_key(j, "created");
	rfc3339_ns(when, row->created_ns);
	json_strz(j, when);
	json_key(j, "created_ns");
	json_u64(j, row->created_ns);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(j, numbers[i].key);
		json_u64(j, numbers[i].v);
	}
	json_key(j, "sha256");
	sodium_bin2hex(hex, sizeof(hex), row->sha256, sizeof(row->sha256));
	json_strz(j, hex);
	json_key(j, "processes");
	json_u64(j, row->processes);
	if (row->processes) {
		json_key(j, "processes_sha256");
		sodium_bin2hex(hex, sizeof(hex), row->processes_sha256,
			       sizeof(row->processes_sha256));
		json_strz(j, hex);
		json_key(j, "runtime");
		json_strz(j, row->runtime);
	}
	json_object_end(j);
}

static bool take_text(struct str s, char *ret, size_t size)
{
	if (s.n >= size || memchr(s.p, 0, s.n))
		return false;
	memcpy(ret, s.p, s.n);
	ret[s.n] = 0;
	return true;
}

static bool read_digest(struct str s, uint8_t ret[32])
{
	size_t n;

	return sodium_hex2bin(ret, 32, s.p, s.n, NULL, &n, NULL) == 0 && n == 32;
}

static bool read_member(struct json_reader *r, struct str key, struct snapshots_row *row)
{
	const struct {
		const char *key;
		char *at;
		size_t size;
	} texts[] = { { "snapshot", row->name, sizeof(row->name) },
		      { "tenant", row->tenant, sizeof(row->tenant) },
		      { "session", row->session, sizeof(row->session) },
		      { "sandbox", row->sandbox, sizeof(row->sandbox) },
		      { "policy", row->policy, sizeof(row->policy) },
		      { "runtime", row->runtime, sizeof(row->runtime) } };
	const struct {
		const char *key;
		uint64_t *at;
	} numbers[] = { { "created_ns", &row->created_ns },
			{ "files", &row->files },
			{ "bytes", &row->bytes },
			{ "stored", &row->stored },
			{ "processes", &row->processes } };
	struct str s;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (str_eqz(key, texts[i].key))
			return json_read_string(r, &s) && take_text(s, texts[i].at, texts[i].size);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (str_eqz(key, numbers[i].key))
			return json_read_u64(r, numbers[i].at);
	if (!json_read_string(r, &s))
		return false;
	if (str_eqz(key, "sha256"))
		return read_digest(s, row->sha256);
	if (str_eqz(key, "processes_sha256"))
		return read_digest(s, row->processes_sha256);
	return str_eqz(key, "created");
}

static int read_about(struct snapshots_row *ret, int dir, const char *name)
{
	auto_free char *text = NULL;
	struct snapshots_row row = { 0 };
	struct arena arena;
	struct json_reader r;
	struct str key;
	bool good;
	size_t n;

	if (file_read_at(dir, ABOUT, ABOUT_MAX, &text, &n) < 0)
		return -EBADMSG;
	arena_init(&arena, 4 * ABOUT_MAX);
	good = json_reader_init(&r, &arena, (struct str){ text, n }) == 0 &&
	       json_expect(&r, '{', "expected an object");
	do {
		good = good && json_read_string(&r, &key) && json_take(&r, ':') &&
		       read_member(&r, key, &row);
	} while (good && json_take(&r, ','));
	good = good && json_take(&r, '}') && !json_peek(&r) && !strcmp(row.name, name);
	arena_done(&arena);
	if (!good)
		return -EBADMSG;
	*ret = row;
	return 0;
}

int snapshots_open(struct snapshots_row *ret, int *ret_fd, const char *tenant, const char *name,
		   struct err *err)
{
	auto_close int all = -1, dir = -1, fd = -1;
	int r = check(tenant, name, err);
	struct stat st;

	if (r < 0)
		return r;
	r = tenant_dir_open(&all, KIND, tenant, false, NULL);
	if (r == 0)
		dir = openat(all, name, TENANT_DIR_FLAGS);
	if (r == -ENOENT || (dir < 0 && errno == ENOENT))
		return err_set(err, ENOENT, "tenant '%s' has no snapshot '%s'", tenant, name);
	if (r == 0 && dir >= 0)
		fd = openat(dir, ARCHIVE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return err_set(err, r < 0 ? r : errno, "snapshot '%s': %m", name);
	if (read_about(ret, dir, name) < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size != ret->stored || strcmp(ret->tenant, tenant))
		return err_set(err, EBADMSG, "snapshot '%s' is damaged", name);
	*ret_fd = take_fd(fd);
	return 0;
}

static bool has_digest(int fd, const uint8_t sha256[32])
{
	crypto_hash_sha256_state st;
	uint8_t bytes[65536], sum[32];
	ssize_t n;

	crypto_hash_sha256_init(&st);
	while ((n = read(fd, bytes, sizeof(bytes))) > 0)
		crypto_hash_sha256_update(&st, bytes, (size_t)n);
	crypto_hash_sha256_final(&st, sum);
	return n == 0 && sodium_memcmp(sum, sha256, sizeof(sum)) == 0 &&
	       lseek(fd, 0, SEEK_SET) == 0;
}

int snapshots_open_processes(int *ret_fd, const struct snapshots_row *row, struct err *err)
{
	auto_close int all = -1, dir = -1, fd = -1;
	int r = tenant_dir_open(&all, KIND, row->tenant, false, NULL);
	struct stat st;

	if (!row->processes)
		return err_set(err, ENOENT, "snapshot '%s' has no processes", row->name);
	if (r == 0)
		dir = openat(all, row->name, TENANT_DIR_FLAGS);
	if (dir >= 0)
		fd = openat(dir, PROCESSES, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, r < 0 ? r : errno, "snapshot '%s': its processes: %m",
			       row->name);
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 ||
	    (uint64_t)st.st_size != row->processes || !has_digest(fd, row->processes_sha256))
		return err_set(err, EBADMSG,
			       "snapshot '%s' is damaged: its processes are not those "
			       "that were kept",
			       row->name);
	*ret_fd = take_fd(fd);
	return 0;
}

/* ---- all of them ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct snapshots_row *)a)->name,
		      ((const struct snapshots_row *)b)->name);
}

struct each {
	int (*fn)(void *arg, const struct snapshots_row *row);
	void *arg;
};

static int each_of(void *arg, const char *tenant, int all)
{
	const struct each *e = arg;
	auto_free struct snapshots_row *v = calloc(SNAPSHOTS_MAX, sizeof(*v));
	auto_dir DIR *d = list(all);
	struct dirent *de;
	size_t n = 0;
	int r = v ? 0 : -ENOMEM;

	(void)tenant;
	while (r == 0 && d && n < SNAPSHOTS_MAX && (de = readdir(d))) {
		auto_close int dir = -1;

		if (!tenant_dir_name_is_good(de->d_name))
			continue;
		dir = openat(all, de->d_name, TENANT_DIR_FLAGS);
		n += dir >= 0 && read_about(&v[n], dir, de->d_name) == 0;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_name);
	for (size_t i = 0; i < n && r == 0; i++)
		r = e->fn(e->arg, &v[i]);
	return r;
}

int snapshots_each(const char *tenant, int (*fn)(void *arg, const struct snapshots_row *row),
		   void *arg, struct err *err)
{
	struct each e = { fn, arg };
	int r = tenant ? check(tenant, NULL, err) : 0;

	return r < 0 ? r : tenant_dir_each(KIND, tenant, each_of, &e, err);
}

static int add_bytes(void *arg, const struct snapshots_row *row)
{
	*(uint64_t *)arg += row->stored + row->processes;
	return 0;
}

uint64_t snapshots_bytes(const char *tenant)
{
	uint64_t n = 0;

	snapshots_each(tenant, add_bytes, &n, NULL);
	return n;
}

int snapshots_remove(const char *tenant, const char *name, struct err *err)
{
	auto_close int all = -1, locked = -1;
	char tmp[ULID_LEN + 8], id[ULID_LEN + 1];
	int r = check(tenant, name, err);

	if (r < 0)
		return r;
	r = tenant_dir_open(&all, KIND, tenant, false, NULL);
	if (r == 0)
		r = lock(&locked, all, err);
	/* First it loses its name: nothing that is half there has one. */
	ulid_make(id, clock_real_ns());
	snprintf(tmp, sizeof(tmp), NEW_OF "%s", id);
	if (r == 0 && renameat(all, name, all, tmp) < 0)
		r = -errno;
	if (r == -ENOENT)
		return err_set(err, ENOENT, "tenant '%s' has no snapshot '%s'", tenant, name);
	if (r < 0)
		return err_set(err, r, "snapshot '%s': %m", name);
	empty(all, tmp);
	return fsync(all) < 0 ? err_set(err, errno, "snapshot '%s': %m", name) : 0;
}
