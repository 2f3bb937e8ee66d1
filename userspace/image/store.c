// SPDX-License-Identifier: Apache-2.0
#include "userspace/image/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/image/internal.h"

#define PATH_LEN  4096
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define LOCK	  "lock"

/* ---- names ---- */

int image_check_name(const char *name, struct err *err)
{
	size_t n = strlen(name);
	bool ok = n > 0 && n <= IMAGE_NAME_MAX && isalnum((unsigned char)name[0]) &&
		  strncmp(name, "sha256:", 7) != 0;

	for (const char *c = name; ok && *c; c++)
		ok = isalnum((unsigned char)*c) || strchr("._:/-", *c);
	return ok ? 0
		  : err_set(err, EINVAL,
			    "image name '%.140s': letters, digits, '.', '_', ':', '/' and '-', at "
			    "most %d, and not 'sha256:'",
			    name, IMAGE_NAME_MAX);
}

/* As a file: '%' is in no name. */
static void name_file(char ret[IMAGE_NAME_MAX * 3 + 1], const char *name)
{
	for (; *name; name++) {
		if (*name == '/') {
			memcpy(ret, "%2f", 3);
			ret += 3;
		} else {
			*ret++ = *name;
		}
	}
	*ret = 0;
}

static bool name_of_file(char ret[IMAGE_NAME_MAX + 1], const char *file)
{
	size_t n = 0;

	for (; *file && n < IMAGE_NAME_MAX; n++) {
		bool slash = !strncmp(file, "%2f", 3);

		ret[n] = slash ? '/' : *file;
		file += slash ? 3 : 1;
	}
	ret[n] = 0;
	return !*file && image_check_name(ret, NULL) == 0;
}

bool image_is_reference(const char *text)
{
	return !strncmp(text, "image:", 6) || !strncmp(text, "image@", 6);
}

/* ---- the directories ---- */

static int open_sub(int *ret, int top, const char *name, bool make)
{
	if (make && mkdirat(top, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	*ret = openat(top, name, DIR_FLAGS);
	return *ret < 0 ? -errno : 0;
}

int image_store_open(struct image_store *s, const char *state, bool make, struct err *err)
{
	char path[PATH_LEN];
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/images", state) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	if (make)
		r = dir_make_all(state, 0711);
	if (r == 0 && make && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		s->top = open(path, DIR_FLAGS);
		r = s->top < 0 ? -errno : 0;
	}
	if (r == 0)
		r = open_sub(&s->images, s->top, "sha256", make);
	if (r == 0)
		r = open_sub(&s->names, s->top, "names", make);
	if (r == 0)
		r = open_sub(&s->tmp, s->top, "tmp", make);
	return r < 0 ? err_set(err, r, "'%s': %m", path) : 0;
}

void image_store_done(struct image_store *s)
{
	int *const all[] = { &s->top, &s->images, &s->names, &s->tmp };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (*all[i] >= 0)
			close(take_fd(*all[i]));
}

int image_store_name(struct image_store *s, const char *name, const char *digest, struct err *err)
{
	char file[IMAGE_NAME_MAX * 3 + 1], text[IMAGE_DIGEST_LEN + 2];
	int r;

	name_file(file, name);
	snprintf(text, sizeof(text), "%s\n", digest);
	r = file_replace_at(s->names, file, text, strlen(text), 0644);
	return r < 0 ? err_set(err, r, "image name '%s': %m", name) : 0;
}

/* -ENOENT; what is no digest is no name. */
static int read_name(const struct image_store *s, const char *file, char ret[IMAGE_DIGEST_LEN + 1])
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_read_at(s->names, file, 256, &text, &n);

	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = 0;
	if (!image_is_digest(text))
		return -EBADMSG;
	memcpy(ret, text, IMAGE_DIGEST_LEN + 1);
	return 0;
}

/* ---- what is being unpacked ---- */

static int lock_dir(int dir, int how)
{
	auto_close int fd = openat(dir, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, how | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return take_fd(fd);
}

int image_stage_new(struct image_stage *st, struct image_store *s, struct err *err)
{
	uint64_t word = 0;

	if (getrandom(&word, sizeof(word), 0) != sizeof(word))
		return err_set(err, errno, "image: %m");
	snprintf(st->name, sizeof(st->name), "%d-%016llx", (int)getpid(), (unsigned long long)word);
	/* Whoever sweeps tmp/ holds its lock, so this one is not seen before it has its own. */
	auto_close int all = lock_dir(s->tmp, LOCK_SH);

	if (all == -EBUSY) /* a sweep, which is short */
		all = openat(s->tmp, LOCK, O_RDWR | O_CLOEXEC);
	if (all < 0 || flock(all, LOCK_SH) < 0)
		return err_set(err, errno, "image: lock: %m");
	if (mkdirat(s->tmp, st->name, 0700) < 0)
		return err_set(err, errno, "image: %m");
	st->dir = openat(s->tmp, st->name, DIR_FLAGS);
	st->lock = st->dir < 0 ? -errno : lock_dir(st->dir, LOCK_EX);
	if (st->lock < 0 || mkdirat(st->dir, "work", 0700) < 0)
		return err_set(err, errno, "image: %m");
	st->work = openat(st->dir, "work", DIR_FLAGS);
	if (st->work < 0 || mkdirat(st->work, "rootfs", 0755) < 0 ||
	    fchmodat(st->work, "rootfs", 0755, 0) < 0 ||
	    fchownat(st->work, "rootfs", IMAGE_OWNER, IMAGE_OWNER, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchown(st->work, IMAGE_OWNER, IMAGE_OWNER) < 0)
		return err_set(err, errno, "image: %m");
	return 0;
}

/* What the process that unpacked leaves is the one directory; the rest of its place goes. */
int image_stage_take(struct image_stage *st, struct err *err)
{
	struct stat s;

	if (fstatat(st->work, "rootfs", &s, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(s.st_mode) ||
	    renameat(st->work, "rootfs", st->dir, "rootfs") < 0)
		return err_set(err, EIO, "image: its root is not there");
	return tree_remove(st->dir, "work") < 0 ? err_set(err, EIO, "image: cleaning up failed")
						: 0;
}

int image_stage_commit(struct image_stage *st, struct image_store *s, const char *digest,
		       bool *ret_known, struct err *err)
{
	const char *hex = digest + 7;
	bool known = false;
	int r = 0;

	if (renameat2(s->tmp, st->name, s->images, hex, RENAME_NOREPLACE) < 0) {
		r = errno == EEXIST || errno == ENOTEMPTY ? 0 : -errno;
		known = r == 0;
	} else {
		st->name[0] = 0;
		if (fsync(s->images) < 0)
			r = -errno;
	}
	if (r < 0)
		return err_set(err, r, "image '%s': %m", digest);
	*ret_known = known;
	return 0;
}

void image_stage_done(struct image_stage *st, struct image_store *s)
{
	if (st->name[0] && st->dir >= 0)
		(void)tree_remove(s->tmp, st->name);
	if (st->work >= 0)
		close(take_fd(st->work));
	if (st->dir >= 0)
		close(take_fd(st->dir));
	if (st->lock >= 0)
		close(take_fd(st->lock));
}

static int sweep(struct image_store *s)
{
	auto_close int all = lock_dir(s->tmp, LOCK_EX); /* nobody begins meanwhile */
	int copy = openat(s->tmp, ".", DIR_FLAGS), n = 0;
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!d && copy >= 0)
		close(copy);
	while (d && all >= 0 && (de = readdir(d))) {
		auto_close int dir = -1, lock = -1;

		if (de->d_name[0] == '.' || !strcmp(de->d_name, LOCK))
			continue;
		dir = openat(s->tmp, de->d_name, DIR_FLAGS);
		if (dir < 0)
			continue;
		lock = lock_dir(dir, LOCK_EX);
		n += lock >= 0 && tree_remove(s->tmp, de->d_name) == 0;
	}
	return n;
}

int image_sweep(const char *state)
{
	struct image_store s = IMAGE_STORE_INIT;
	int n = image_store_open(&s, state, false, NULL) == 0 ? sweep(&s) : 0;

	image_store_done(&s);
	return n;
}

/* ---- finding ---- */

static void near_name(const struct image_store *s, const char *word, char ret[IMAGE_NAME_MAX + 1])
{
	int copy = openat(s->names, ".", DIR_FLAGS);
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	char name[IMAGE_NAME_MAX + 1];
	struct dirent *de;

	ret[0] = 0;
	if (!d && copy >= 0)
		close(copy);
	/* The same but for its tag or its registry. */
	while (d && (de = readdir(d)))
		if (name_of_file(name, de->d_name) && strstr(name, word))
			memcpy(ret, name, sizeof(name));
}

static int resolve(const struct image_store *s, const char *word, char ret[IMAGE_DIGEST_LEN + 1],
		   bool *ret_named, struct err *err)
{
	char file[IMAGE_NAME_MAX * 3 + 1], near[IMAGE_NAME_MAX + 1];
	int r;

	*ret_named = false;
	if (image_is_reference(word))
		word += strlen("image:");
	if (image_is_digest(word)) {
		memcpy(ret, word, IMAGE_DIGEST_LEN + 1);
		return 0;
	}
	r = image_check_name(word, err);
	if (r < 0)
		return r;
	name_file(file, word);
	r = read_name(s, file, ret);
	*ret_named = r == 0;
	if (r != -ENOENT)
		return r < 0 ? err_set(err, r, "image '%s': %m", word) : 0;
	near_name(s, word, near);
	if (*near)
		return err_set(err, ENOENT, "no image '%s': did you mean '%s'?", word, near);
	return err_set(err, ENOENT, "no image '%s' (warder image list)", word);
}

void image_ref_done(struct image_ref *ref)
{
	if (ref->dir >= 0)
		close(take_fd(ref->dir));
	if (ref->lock >= 0)
		close(take_fd(ref->lock));
}

static int open_image(struct image_ref *ret, const struct image_store *s, const char *digest,
		      int how, struct err *err)
{
	ret->dir = openat(s->images, digest + 7, DIR_FLAGS);
	if (ret->dir < 0)
		return err_set(err, errno, "image '%s': %m", digest);
	ret->lock = lock_dir(ret->dir, how);
	if (ret->lock == -EBUSY)
		return err_set(err, EBUSY,
			       how == LOCK_EX ? "image '%s' is in use by a sandbox"
					      : "image '%s' is being removed",
			       digest);
	if (ret->lock < 0)
		return err_set(err, -ret->lock, "image '%s': lock: %m", digest);
	memcpy(ret->digest, digest, sizeof(ret->digest));
	return 0;
}

int image_find(struct image_ref *ret, const char *state, const char *word, struct err *err)
{
	struct image_store s = IMAGE_STORE_INIT;
	char digest[IMAGE_DIGEST_LEN + 1];
	bool named;
	int r = image_store_open(&s, state, false, NULL);

	*ret = (struct image_ref)IMAGE_REF_INIT;
	word += image_is_reference(word) ? strlen("image:") : 0;
	if (r < 0)
		r = err_set(err, r,
			    r == -ENOENT ? "no image '%s': none was imported (warder image "
					   "import)"
					 : "image '%s': %m",
			    word);
	if (r == 0)
		r = resolve(&s, word, digest, &named, err);
	if (r == 0)
		r = open_image(ret, &s, digest, LOCK_SH, err);
	image_store_done(&s);
	if (r < 0)
		image_ref_done(ret);
	return r;
}

int image_load(struct image *ret, const struct image_ref *ref, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_read_at(ref->dir, "meta.json", IMAGE_META_MAX, &text, &n);

	if (r < 0)
		return err_set(err, r, "image '%s': meta.json: %m", ref->digest);
	r = image_read(ret, ref->digest, (struct str){ text, n }, err);
	if (r == 0 && strcmp(ret->digest, ref->digest) != 0)
		r = err_set(err, EBADMSG, "image '%s': its description is of another one",
			    ref->digest);
	return r;
}

int image_verify(const struct image_ref *ref, const struct image *im, struct err *err)
{
	auto_close int root = openat(ref->dir, "rootfs", DIR_FLAGS);
	char is[IMAGE_DIGEST_LEN + 1];
	int r;

	if (root < 0)
		return err_set(err, errno, "image '%s': rootfs: %m", ref->digest);
	r = tree_digest(root, is, err);
	if (r < 0)
		return err_wrap(err, r, "image '%s'", ref->digest);
	if (strcmp(is, im->tree) != 0)
		return err_set(err, EBADMSG,
			       "image '%s': its files are not what was imported: %s, not %s",
			       ref->digest, is, im->tree);
	return 0;
}

int image_signature(const struct image_ref *ref, struct buf *ret)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r = file_read_at(ref->dir, "signature", 64 << 10, &text, &n);

	return r < 0 ? r : buf_add(ret, text, n);
}

int image_set_signature(const struct image_ref *ref, struct str text, struct err *err)
{
	int r = file_replace_at(ref->dir, "signature", text.p, text.n, 0644);

	return r < 0 ? err_set(err, r, "image '%s': signature: %m", ref->digest) : 0;
}

/* ---- all of them ---- */

struct named {
	char *name;
	char digest[IMAGE_DIGEST_LEN + 1];
};

struct named_list {
	struct named *v;
	size_t n, room;
};

static void named_done(struct named_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].name);
	free(l->v);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int read_names(const struct image_store *s, struct named_list *ret)
{
	int copy = openat(s->names, ".", DIR_FLAGS);
	auto_dir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	char name[IMAGE_NAME_MAX + 1];
	struct dirent *de;

	if (!d)
		return -errno;
	while ((de = readdir(d))) {
		struct named one = { 0 };

		if (!name_of_file(name, de->d_name) || read_name(s, de->d_name, one.digest) < 0)
			continue;
		if (ret->n == ret->room) {
			size_t room = ret->room ? ret->room * 2 : 32;
			struct named *v = realloc(ret->v, room * sizeof(*v));

			if (!v)
				return -ENOMEM;
			ret->v = v;
			ret->room = room;
		}
		one.name = strdup(name);
		if (!one.name)
			return -ENOMEM;
		ret->v[ret->n++] = one;
	}
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
	return 0;
}

static int each_one(const struct image_store *s, const char *hex, const struct named_list *all,
		    int (*fn)(void *, const struct image *, char *const *, size_t), void *arg,
		    struct err *err)
{
	auto_free char **names = calloc(all->n + 1, sizeof(*names));
	struct image_ref ref = IMAGE_REF_INIT;
	auto_image struct image im = { 0 };
	char digest[IMAGE_DIGEST_LEN + 1];
	size_t n = 0;
	int r;

	if (!names)
		return err_set(err, ENOMEM, "images: %m");
	if ((size_t)snprintf(digest, sizeof(digest), "sha256:%s", hex) >= sizeof(digest) ||
	    !image_is_digest(digest))
		return 0;
	image_init(&im);
	for (size_t i = 0; i < all->n; i++)
		if (!strcmp(all->v[i].digest, digest))
			names[n++] = all->v[i].name;
	r = open_image(&ref, s, digest, LOCK_SH, err);
	if (r == -EBUSY || r == -ENOENT) /* it goes just now */
		r = 1;
	if (r == 0)
		r = image_load(&im, &ref, err);
	if (r == 0)
		r = fn(arg, &im, names, n);
	image_ref_done(&ref);
	return r < 0 ? r : 0;
}

int image_each(const char *state,
	       int (*fn)(void *arg, const struct image *im, char *const *names, size_t names_n),
	       void *arg, struct err *err)
{
	__attribute__((cleanup(named_done))) struct named_list all = { 0 };
	struct image_store s = IMAGE_STORE_INIT;
	struct dirent **v = NULL;
	int r = image_store_open(&s, state, false, NULL), n = -1;

	if (r == 0)
		r = read_names(&s, &all);
	if (r == 0)
		n = scandirat(s.images, ".", &v, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (r == 0 && v[i]->d_name[0] != '.')
			r = each_one(&s, v[i]->d_name, &all, fn, arg, err);
		free(v[i]);
	}
	free(v);
	image_store_done(&s);
	return r == -ENOENT ? 0 : r;
}

int image_name(const char *state, const char *name, const char *digest, struct err *err)
{
	struct image_store s = IMAGE_STORE_INIT;
	int r = image_check_name(name, err);

	if (r == 0)
		r = image_store_open(&s, state, false, err);
	if (r == 0)
		r = image_store_name(&s, name, digest, err);
	image_store_done(&s);
	return r;
}

/* ---- removing ---- */

static bool has_name(const struct image_store *s, const char *digest)
{
	__attribute__((cleanup(named_done))) struct named_list all = { 0 };

	if (read_names(s, &all) < 0)
		return true;
	for (size_t i = 0; i < all.n; i++)
		if (!strcmp(all.v[i].digest, digest))
			return true;
	return false;
}

/* First out of sight, in one step, then bit by bit. */
static int remove_files(struct image_store *s, const char *digest, struct err *err)
{
	char moved[IMAGE_DIGEST_LEN + 8];

	snprintf(moved, sizeof(moved), "rm-%s", digest + 7);
	if (renameat(s->images, digest + 7, s->tmp, moved) < 0)
		return err_set(err, errno, "image '%s': %m", digest);
	(void)fsync(s->images);
	return tree_remove(s->tmp, moved) < 0 ? err_set(err, errno, "image '%s': %m", digest) : 0;
}

static int drop_names(struct image_store *s, const char *digest)
{
	__attribute__((cleanup(named_done))) struct named_list all = { 0 };
	char file[IMAGE_NAME_MAX * 3 + 1];
	int r = read_names(s, &all);

	for (size_t i = 0; r == 0 && i < all.n; i++) {
		if (strcmp(all.v[i].digest, digest) != 0)
			continue;
		name_file(file, all.v[i].name);
		r = unlinkat(s->names, file, 0) < 0 ? -errno : 0;
	}
	return r;
}

static int remove_one(struct image_store *s, const char *word, bool *ret_gone, struct err *err)
{
	char digest[IMAGE_DIGEST_LEN + 1], file[IMAGE_NAME_MAX * 3 + 1];
	struct image_ref ref = IMAGE_REF_INIT;
	bool named;
	int r = resolve(s, word, digest, &named, err);

	if (r == 0)
		r = open_image(&ref, s, digest, LOCK_EX, err);
	if (named && r == -ENOENT) /* a name of nothing */
		r = 0;
	if (r == 0 && named) {
		name_file(file, image_is_reference(word) ? word + 6 : word);
		r = unlinkat(s->names, file, 0) < 0 ? err_set(err, errno, "image '%s': %m", word)
						    : 0;
	} else if (r == 0) {
		r = drop_names(s, digest);
	}
	*ret_gone = r == 0 && !has_name(s, digest);
	if (*ret_gone && ref.dir >= 0)
		r = remove_files(s, digest, err);
	image_ref_done(&ref);
	return r;
}

int image_remove(const char *state, const char *word, bool *ret_gone, struct err *err)
{
	struct image_store s = IMAGE_STORE_INIT;
	int r = image_store_open(&s, state, false, err);

	if (r == 0)
		r = remove_one(&s, word, ret_gone, err);
	image_store_done(&s);
	return r;
}
