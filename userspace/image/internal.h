/* SPDX-License-Identifier: Apache-2.0 */
/* The importing process, from the inside. */
#ifndef WARDER_IMAGE_INTERNAL_H
#define WARDER_IMAGE_INTERNAL_H

#include <openssl/evp.h>
#include <zlib.h>
#include <zstd.h>

#include "userspace/image/image.h"

#define HASH_LEN 32

struct archive;
struct archive_entry;

/* ---- hash.c ---- */

void digest_text(char ret[IMAGE_DIGEST_LEN + 1], const uint8_t hash[HASH_LEN]);
int digest_of(char ret[IMAGE_DIGEST_LEN + 1], const void *p, size_t n);
/* Of the files below `dir`: names, kinds, modes, contents, links; not times and owners. */
int tree_digest(int dir, char ret[IMAGE_DIGEST_LEN + 1], struct err *err);

/* ---- stream.c: bytes, unpacked and hashed on both sides, within limits ---- */

#define STREAM_IN  (64u << 10)
#define STREAM_OUT (256u << 10)

/* Up to n bytes, 0 at the end, -errno with err set. */
typedef ssize_t (*stream_read_fn)(void *arg, void *p, size_t n, struct err *err);

enum packing { PACKED_NOT, PACKED_GZIP, PACKED_ZSTD };

struct stream {
	stream_read_fn read;
	void *arg;
	const char *name; /* for messages */
	enum packing packing;
	z_stream z;
	ZSTD_DStream *zstd;
	EVP_MD_CTX *packed, *plain;
	uint8_t *in, *out;
	size_t in_at, in_n;
	bool eof, ended, begun;
	uint64_t packed_n, plain_n, max, ratio;
	struct err *err; /* where a failure is told */
	int failed;
};

int stream_open(struct stream *s, stream_read_fn read, void *arg, const char *name,
		const struct image_limits *limits, struct err *err);
/* The next piece; 0 at the end; -errno with err set. */
ssize_t stream_next(struct stream *s, const void **ret);
/* Reads what is left. Then the hashes are of all of it. */
int stream_finish(struct stream *s, uint8_t packed[HASH_LEN], uint8_t plain[HASH_LEN]);
void stream_done(struct stream *s);

/* ---- tar.c: libarchive over a stream ---- */

/* NULL when there is no memory. Only tar, only what the stream gives. */
struct archive *tar_open(struct stream *s);
/* 1: an entry; 0: the end; -EBADMSG. */
int tar_next(struct archive *a, struct archive_entry **ret, struct stream *s, struct err *err);

/* ---- path.c ---- */

/* A path of an archive without "." and leading slashes, in place; "" is the root itself. Refuses "..", what is too long or
 * too deep. */
int path_clean(char *path, const char **ret_problem);
/* The directory that holds `path`, without following a link anywhere: openat2. Missing ones are made with `make`.
 * `*ret_base` is the last part. */
int path_parent(int root, const char *path, bool make, const char **ret_base);

/* ---- unpack.c: a layer onto the root ---- */

struct inodes { /* what this layer has touched: whiteouts are about the layers below */
	uint64_t *v;
	size_t n, room;
};

struct unpacker {
	int root; /* O_PATH is not enough: it is listed */
	const struct image_limits *limits;
	uint64_t bytes, seen; /* of all layers so far */
	uint64_t left_out, stripped, attributes;
	struct inodes touched;
	char parent_path[IMAGE_PATH_MAX + 1];
	int parent; /* of parent_path; -1 */
};

int unpack_layer(struct unpacker *u, struct stream *s, struct err *err);
void unpack_done(struct unpacker *u);
/* Everything below a name. -errno. */
int tree_remove(int dir, const char *name);

/* ---- whiteout.c ---- */

enum whiteout { WHITEOUT_NO, WHITEOUT_NAME, WHITEOUT_OPAQUE, WHITEOUT_IGNORE, WHITEOUT_BAD };
/* What the last part of a path means; *ret_name is what it hides. */
enum whiteout whiteout_kind(const char *base, const char **ret_name);
bool whiteout_in_path(const char *path);
int inodes_add(struct inodes *s, uint64_t ino);
bool inodes_have(const struct inodes *s, uint64_t ino);
/* Removes `name` but what this layer has put there. */
int whiteout_apply(const struct inodes *touched, int dir, const char *name);
int whiteout_opaque(const struct inodes *touched, int dir);

/* ---- source.c: a layout, as a directory or in a tar ---- */

#define SOURCE_FILES_MAX 20000
#define SOURCE_NAME_MAX	 255
#define SOURCE_BLOB_MAX	 (4u << 20) /* of JSON */

enum source_kind { SOURCE_OCI, SOURCE_DOCKER, SOURCE_ROOTFS };
extern const char *const source_kind_names[];

struct source_file {
	char *name;
	char *link; /* NULL: a regular file */
	uint64_t at, size;
};

struct source {
	enum source_kind kind;
	int dir; /* an OCI layout; -1 */
	int fd;	 /* a file, seekable; -1 */
	const struct image_limits *limits;
	struct source_file *files;
	size_t files_n, files_room;
	int spool_dir; /* where bytes are kept that can be read only once */
};

/* Of `fd`: a directory or anything that can be read. The descriptor becomes the source's. */
int source_open(struct source *s, int fd, int spool_dir, const struct image_limits *limits,
		struct err *err);
void source_done(struct source *s);

struct blob {
	int fd; /* of a directory's file; -1 */
	struct source *source;
	struct archive *tar;
	struct stream outer;
	struct err *err;
	int64_t size;
};
/* One file of the layout. -ENOENT. Not to be moved while it is open. */
int blob_open(struct blob *b, struct source *s, const char *name, struct err *err);
ssize_t blob_read(void *b, void *p, size_t n, struct err *err);
void blob_done(struct blob *b);
/* A small one, whole, with a NUL behind it. */
int blob_text(struct source *s, const char *name, struct str *ret, struct arena *mem,
	      struct err *err);
/* The source's own bytes, from the start: a plain root. */
ssize_t source_read(void *source, void *p, size_t n, struct err *err);

/* ---- manifest.c: what a layout says; parses hostile text ---- */

struct layer_ref {
	const char *name;   /* of its blob in the layout */
	const char *digest; /* "" = not said */
	const char *diff_id;
	uint64_t size; /* UINT64_MAX = not said */
};

struct manifest {
	const char *digest; /* of the image, once it is known; "" */
	const char *config; /* name of its blob */
	const char *config_digest;
	uint64_t config_size;
	struct layer_ref *layers;
	size_t layers_n;
};

/* One row of an OCI index that fits; *ret_nested: it is an index again. */
int manifest_choose(struct arena *mem, struct str index, const char *ref, const char **ret_digest,
		    uint64_t *ret_size, bool *ret_nested, struct err *err);
int manifest_oci(struct arena *mem, struct str text, struct manifest *ret, struct err *err);
int manifest_docker(struct arena *mem, struct str text, const char *ref, struct manifest *ret,
		    struct err *err);
/* Fills the image from its configuration, and the layers' diff_ids. */
int manifest_config(struct image *im, struct str text, struct manifest *m, struct err *err);
/* "blobs/sha256/<hex>" of "sha256:<hex>". */
const char *manifest_blob(struct arena *mem, const char *digest);

/* ---- user.c ---- */

/* What the image's user is, by its own passwd and group files. */
void image_find_user(struct image *im, int root);

/* ---- worker.c ---- */

/* In the process that unpacks: `in` is read, `stage` is where to; fills the image. */
int image_work(struct image *im, int in, int stage, const struct image_import *what,
	       struct err *err);

#endif
