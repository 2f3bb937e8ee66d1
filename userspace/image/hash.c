// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/image/internal.h"

#define READ_BYTES (256u << 10)

void digest_text(char ret[IMAGE_DIGEST_LEN + 1], const uint8_t hash[HASH_LEN])
{
	static const char hex[] = "0123456789abcdef";
	char *d = ret + 7;

	memcpy(ret, "sha256:", 7);
	for (int i = 0; i < HASH_LEN; i++) {
		*d++ = hex[hash[i] >> 4];
		*d++ = hex[hash[i] & 15];
	}
	*d = 0;
}

int digest_of(char ret[IMAGE_DIGEST_LEN + 1], const void *p, size_t n)
{
	uint8_t hash[EVP_MAX_MD_SIZE];

	if (EVP_Digest(p, n, hash, NULL, EVP_sha256(), NULL) != 1)
		return -EIO;
	digest_text(ret, hash);
	return 0;
}

struct walk {
	EVP_MD_CTX *ctx, *file;
	uint8_t *buffer;
	struct err *err;
	char path[IMAGE_PATH_MAX + 1];
	size_t path_n;
	unsigned depth;
};

static int fail(struct walk *w, int code)
{
	return err_set(w->err, code, "'/%s': %m", w->path);
}

static int file_hash(struct walk *w, int dir, const char *name, uint8_t ret[HASH_LEN])
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t n;

	if (fd < 0 || EVP_DigestInit_ex(w->file, EVP_sha256(), NULL) != 1)
		return fail(w, fd < 0 ? errno : EIO);
	while ((n = read(fd, w->buffer, READ_BYTES)) > 0)
		EVP_DigestUpdate(w->file, w->buffer, (size_t)n);
	if (n < 0 || EVP_DigestFinal_ex(w->file, ret, NULL) != 1)
		return fail(w, n < 0 ? errno : EIO);
	return 0;
}

static int walk_dir(struct walk *w, int dir);

/* One line a file: kind, mode, size or length, path, what is in it; each part's end is clear. */
static int walk_one(struct walk *w, int dir, const char *name)
{
	char line[64], target[IMAGE_PATH_MAX + 1];
	uint8_t hash[HASH_LEN];
	struct stat st;
	ssize_t n = 0;
	int r = 0;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(w, errno);
	if (S_ISREG(st.st_mode))
		r = file_hash(w, dir, name, hash);
	else if (S_ISLNK(st.st_mode) && (n = readlinkat(dir, name, target, sizeof(target))) < 0)
		r = fail(w, errno);
	if (r < 0)
		return r;
	snprintf(line, sizeof(line), "%o %llu %zu ", st.st_mode,
		 S_ISREG(st.st_mode) ? (unsigned long long)st.st_size : (unsigned long long)n,
		 w->path_n);
	EVP_DigestUpdate(w->ctx, line, strlen(line));
	EVP_DigestUpdate(w->ctx, w->path, w->path_n);
	if (S_ISREG(st.st_mode))
		EVP_DigestUpdate(w->ctx, hash, sizeof(hash));
	else if (S_ISLNK(st.st_mode))
		EVP_DigestUpdate(w->ctx, target, (size_t)n);
	if (S_ISDIR(st.st_mode)) {
		auto_close int sub =
			openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		r = sub < 0 ? fail(w, errno) : walk_dir(w, sub);
	}
	return r;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **v;
	size_t n, room;
};

static void names_done(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
}

static int names_add(struct names *s, const char *name)
{
	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 64;
		char **v = realloc(s->v, room * sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->room = room;
	}
	s->v[s->n] = strdup(name);
	return s->v[s->n] ? (s->n++, 0) : -ENOMEM;
}

static int list(int dir, struct names *ret)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d)
		return -errno;
	while (r == 0 && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			r = names_add(ret, de->d_name);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return r;
}

static int walk_dir(struct walk *w, int dir)
{
	__attribute__((cleanup(names_done))) struct names names = { 0 };
	size_t n = w->path_n;
	int r = list(dir, &names);

	if (r < 0)
		return fail(w, -r);
	if (++w->depth > IMAGE_DEPTH_MAX + 1)
		return fail(w, ELOOP);
	for (size_t i = 0; r == 0 && i < names.n; i++) {
		int k = snprintf(w->path + n, sizeof(w->path) - n, "%s%s", n ? "/" : "",
				 names.v[i]);

		if (k < 0 || (size_t)k >= sizeof(w->path) - n)
			return fail(w, ENAMETOOLONG);
		w->path_n = n + (size_t)k;
		r = walk_one(w, dir, names.v[i]);
		w->path_n = n;
		if (r == 0)
			w->path[n] = 0;
	}
	w->depth--;
	return r;
}

int tree_digest(int dir, char ret[IMAGE_DIGEST_LEN + 1], struct err *err)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));
	auto_free uint8_t *buffer = malloc(READ_BYTES);
	uint8_t hash[EVP_MAX_MD_SIZE];
	int r = -ENOMEM;

	if (!w || !buffer)
		return err_set(err, ENOMEM, "tree: %m");
	w->buffer = buffer;
	w->err = err;
	w->ctx = EVP_MD_CTX_new();
	w->file = EVP_MD_CTX_new();
	if (w->ctx && w->file && EVP_DigestInit_ex(w->ctx, EVP_sha256(), NULL) == 1)
		r = walk_dir(w, dir);
	else
		err_set(err, ENOMEM, "tree: %m");
	if (r == 0 && EVP_DigestFinal_ex(w->ctx, hash, NULL) != 1)
		r = err_set(err, EIO, "tree: %m");
	EVP_MD_CTX_free(w->ctx);
	EVP_MD_CTX_free(w->file);
	if (r == 0)
		digest_text(ret, hash);
	return r;
}
