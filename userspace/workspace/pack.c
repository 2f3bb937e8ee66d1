// SPDX-License-Identifier: Apache-2.0
#include "userspace/workspace/archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/workspace/tree.h"

#define PIECE	   (256u << 10)
#define HOLES_MAX  4096 /* of one file */
#define PACK_NS	   (600 * NSEC_PER_SEC)
#define ZSTD_LEVEL "1" /* the sandbox stands still meanwhile */

static const struct workspace_limits limits = {
	.files = ARCHIVE_FILES_MAX,
	.depth = ARCHIVE_DEPTH_MAX,
	.time_ns = PACK_NS,
};

struct pack {
	struct archive *a;
	struct tree tree;
	struct archive_facts facts;
	crypto_hash_sha256_state hash;
	uint64_t max, logical;
	int out, write_error;
	struct entry **links; /* files by place and inode, to find those that are one */
	size_t links_n;
	char *piece;
};

static la_ssize_t take(struct archive *a, void *arg, const void *p, size_t n)
{
	struct pack *k = arg;
	int r = 0;

	(void)a;
	if (n > k->max - k->facts.stored)
		r = -EFBIG;
	if (r == 0)
		r = fd_write_all(k->out, p, n);
	if (r < 0) {
		k->write_error = r;
		return -1;
	}
	crypto_hash_sha256_update(&k->hash, p, n);
	k->facts.stored += n;
	return (la_ssize_t)n;
}

static int by_inode(const void *x, const void *y)
{
	const struct entry *a = *(struct entry *const *)x, *b = *(struct entry *const *)y;

	if (a->place != b->place)
		return a->place < b->place ? -1 : 1;
	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	return entry_compare(a, b);
}

static int index_links(struct pack *k)
{
	k->links = calloc(k->tree.n + 1, sizeof(*k->links));
	if (!k->links)
		return -ENOMEM;
	for (size_t i = 0; i < k->tree.n; i++)
		if (S_ISREG(k->tree.v[i]->mode))
			k->links[k->links_n++] = k->tree.v[i];
	if (k->links_n)
		qsort(k->links, k->links_n, sizeof(*k->links), by_inode);
	return 0;
}

/* The first name of the same file; NULL: this is it. */
static const struct entry *first_name(const struct pack *k, struct entry *e)
{
	struct entry **at = bsearch(&e, k->links, k->links_n, sizeof(*k->links), by_inode);

	if (!at)
		return NULL;
	while (at > k->links && at[-1]->place == e->place && at[-1]->ino == e->ino)
		at--;
	return *at == e ? NULL : *at;
}

static void path_of(const struct pack *k, const struct entry *e, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%.*s", k->tree.places[e->place].inside + 1, (int)e->path.n,
		 e->path.p);
}

static int failed(struct pack *k, const char *path, struct err *err)
{
	if (k->write_error == -EFBIG)
		return err_set(err, EFBIG, "snapshot: more than %llu MiB, compressed",
			       (unsigned long long)(k->max >> 20));
	if (k->write_error)
		return err_set(err, k->write_error, "snapshot: writing it: %m");
	return err_set(err, EIO, "snapshot: '%.200s': %s", path, archive_error_string(k->a));
}

/* Where there is data, as far as somebody has to read it. */
static int add_holes(struct pack *k, struct archive_entry *ae, int fd, uint64_t size)
{
	off_t at = 0, end;
	int n = 0;

	while ((uint64_t)at < size) {
		at = lseek(fd, at, SEEK_DATA);
		if (at < 0)
			break; /* a hole up to the end */
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0 || ++n > HOLES_MAX)
			return -E2BIG;
		archive_entry_sparse_add_entry(ae, at, MIN(end, (off_t)size) - at);
		at = end;
	}
	if (!n) /* nothing but hole */
		archive_entry_sparse_add_entry(ae, (la_int64_t)size, 0);
	(void)k;
	return 0;
}

static int copy_data(struct pack *k, int fd, uint64_t size, const char *path, struct err *err)
{
	off_t at = 0;

	while ((uint64_t)at < size) {
		off_t data = lseek(fd, at, SEEK_DATA);
		ssize_t n;

		if (data < 0 || data > at) { /* the writer leaves it out, but wants to be told */
			uint64_t gap = (uint64_t)(data < 0 ? (off_t)size : data) - (uint64_t)at;

			n = (ssize_t)MIN(gap, (uint64_t)PIECE);
			memset(k->piece, 0, (size_t)n);
		} else {
			n = pread(fd, k->piece, (size_t)MIN(size - (uint64_t)at, (uint64_t)PIECE),
				  at);
			if (n <= 0)
				return err_set(err, n ? errno : ESTALE, "snapshot: '%.200s': %m",
					       path);
			k->facts.bytes += (uint64_t)n;
			if (k->facts.bytes > k->max)
				return err_set(err, EFBIG, "snapshot: more than %llu MiB",
					       (unsigned long long)(k->max >> 20));
		}
		if (archive_write_data(k->a, k->piece, (size_t)n) < 0)
			return failed(k, path, err);
		at += n;
	}
	return 0;
}

static int put_file(struct pack *k, struct archive_entry *ae, struct entry *e, const char *path,
		    struct err *err)
{
	auto_close int fd = tree_open_regular(&k->tree, e);
	struct stat st;
	uint64_t size;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "snapshot: '%.200s': %m", path);
	size = (uint64_t)st.st_size;
	k->logical += size;
	if (size > ARCHIVE_LOGICAL_MAX || k->logical > ARCHIVE_LOGICAL_MAX)
		return err_set(err, EFBIG,
			       "snapshot: '%.200s': files of more than %llu GiB, holes "
			       "with them",
			       path, ARCHIVE_LOGICAL_MAX >> 30);
	archive_entry_set_size(ae, (la_int64_t)size);
	if ((uint64_t)st.st_blocks * 512 < size && add_holes(k, ae, fd, size) < 0)
		return err_set(err, E2BIG, "snapshot: '%.200s' has more than %d holes", path,
			       HOLES_MAX);
	if (archive_write_header(k->a, ae) != ARCHIVE_OK)
		return failed(k, path, err);
	return copy_data(k, fd, size, path, err);
}

static int put(struct pack *k, struct archive_entry *ae, struct entry *e, struct err *err)
{
	char path[WORKSPACE_PATH_MAX + 64], other[WORKSPACE_PATH_MAX + 64];
	const struct entry *first;

	if (!S_ISREG(e->mode) && !S_ISDIR(e->mode) && !S_ISLNK(e->mode) && !S_ISFIFO(e->mode))
		return 0;
	path_of(k, e, path, sizeof(path));
	archive_entry_clear(ae);
	archive_entry_set_pathname(ae, path);
	archive_entry_set_mode(ae, e->mode & (S_IFMT | 01777));
	archive_entry_set_mtime(ae, e->mtime / (int64_t)NSEC_PER_SEC,
				(long)(e->mtime % (int64_t)NSEC_PER_SEC));
	k->facts.files++;
	if (S_ISREG(e->mode)) {
		first = first_name(k, e);
		if (!first)
			return put_file(k, ae, e, path, err);
		path_of(k, first, other, sizeof(other));
		archive_entry_set_hardlink(ae, other);
	} else if (S_ISLNK(e->mode)) {
		snprintf(other, sizeof(other), "%.*s", (int)e->target.n,
			 e->target.p ? e->target.p : "");
		archive_entry_set_symlink(ae, other);
	}
	return archive_write_header(k->a, ae) == ARCHIVE_OK ? 0 : failed(k, path, err);
}

static int open_writer(struct pack *k, struct err *err)
{
	struct archive *a = k->a = archive_write_new();

	/* Names are bytes: no character set is taken for granted. */
	if (!a || archive_write_set_format_pax(a) != ARCHIVE_OK ||
	    archive_write_set_format_option(a, "pax", "hdrcharset", "BINARY") != ARCHIVE_OK ||
	    archive_write_add_filter_zstd(a) != ARCHIVE_OK ||
	    archive_write_set_filter_option(a, "zstd", "compression-level", ZSTD_LEVEL) !=
		    ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(a, 1) != ARCHIVE_OK ||
	    archive_write_open(a, k, NULL, take, NULL) != ARCHIVE_OK)
		return err_set(err, ENOMEM, "snapshot: %s",
			       a ? archive_error_string(a) : "out of memory");
	return 0;
}

static int put_all(struct pack *k, struct err *err)
{
	struct archive_entry *ae = archive_entry_new();
	int r = ae ? open_writer(k, err) : -ENOMEM;

	for (size_t i = 0; i < k->tree.n && r == 0; i++)
		r = tree_is_late(&k->tree) ? err_set(err, ETIMEDOUT, "snapshot: it took too long")
					   : put(k, ae, k->tree.v[i], err);
	if (r == 0 && archive_write_close(k->a) != ARCHIVE_OK)
		r = failed(k, "", err);
	archive_entry_free(ae);
	return r;
}

int archive_pack(struct archive_facts *ret, const struct workspace_place *places, size_t n,
		 uint64_t max, int out_fd, struct err *err)
{
	struct pack k = { .max = MIN(max, ARCHIVE_BYTES_MAX), .out = out_fd };
	int r;

	crypto_hash_sha256_init(&k.hash);
	k.piece = malloc(PIECE);
	r = tree_init(&k.tree, places, n, &limits);
	if (r == 0 && !k.piece)
		r = -ENOMEM;
	if (r == 0)
		r = tree_walk(&k.tree);
	if (r == 0 && k.tree.why_n)
		r = err_set(err, E2BIG, "snapshot: not all files can be kept, by a limit: %s",
			    k.tree.why[0]);
	if (r == 0)
		r = index_links(&k);
	if (r == 0)
		r = put_all(&k, err);
	if (r == 0) {
		crypto_hash_sha256_final(&k.hash, k.facts.sha256);
		*ret = k.facts;
	} else if (err && !err->code) {
		err_set(err, r, "snapshot: %m");
	}
	archive_write_free(k.a);
	tree_done(&k.tree);
	free(k.links);
	free(k.piece);
	return r;
}
