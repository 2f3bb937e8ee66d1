/* SPDX-License-Identifier: Apache-2.0 */
/* Root file systems that were imported: <state>/images/sha256/<hex>/{meta.json,rootfs,lock,signature}, names beside them.
 * What is in a file to import is hostile; what is in the store was checked and written by us. */
#ifndef WARDER_IMAGE_IMAGE_H
#define WARDER_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

/* Owner of all files of an image on disk: an id that no account has. A sandbox maps it to the payload's. */
#define IMAGE_OWNER 0x6fffffe0u

#define IMAGE_DIGEST_LEN 71 /* "sha256:" and 64 hex digits */
#define IMAGE_NAME_MAX	 128
#define IMAGE_ENV_MAX	 160
#define IMAGE_WORDS_MAX	 256
#define IMAGE_LAYERS_MAX 256
#define IMAGE_META_MAX	 (4u << 20)

struct image_layer {
	char digest[IMAGE_DIGEST_LEN + 1];  /* of the blob as it was packed */
	char diff_id[IMAGE_DIGEST_LEN + 1]; /* of the tar in it */
	uint64_t size;			    /* of the blob */
};

struct image {
	struct arena mem;
	char digest[IMAGE_DIGEST_LEN +
		    1]; /* what it is pinned by: manifest, or image id, or the tar's own */
	char kind[16];	/* oci, docker, rootfs */
	char tree[IMAGE_DIGEST_LEN + 1];   /* of the files as they lie in the store: image verify */
	char config[IMAGE_DIGEST_LEN + 1]; /* "" = a plain tar */
	struct str arch, created, workdir, user;
	bool has_ids; /* uid and gid are what `user` is in the image's own passwd */
	uint32_t uid, gid;
	char **env, **entrypoint, **cmd; /* NULL-terminated */
	size_t env_n, entrypoint_n, cmd_n;
	struct image_layer *layers;
	size_t layers_n;
	uint64_t bytes, entries; /* in the store */
	uint64_t imported_ns;	 /* CLOCK_REALTIME */
	/* Left out or changed on purpose: device nodes, pipes and sockets; setuid bits and the like; extended attributes. */
	uint64_t left_out, stripped, attributes;
};

void image_init(struct image *im);
void image_done(struct image *im);
#define auto_image __attribute__((cleanup(image_done)))

int image_write(const struct image *im, struct buf *out);
/* meta.json, or what the importing process says. -EBADMSG. */
int image_read(struct image *ret, const char *name, struct str text, struct err *err);

/* ---- import ---- */

struct image_limits {
	uint64_t bytes;	  /* of all files, as large as they say they are */
	uint64_t entries; /* of all archives together */
	uint64_t ratio;	  /* unpacked by packed, from IMAGE_RATIO_FROM on */
};
#define IMAGE_BYTES	 (16ull << 30)
#define IMAGE_ENTRIES	 1000000
#define IMAGE_RATIO	 200
#define IMAGE_RATIO_FROM (64ull << 20)
#define IMAGE_PATH_MAX	 4095
#define IMAGE_PART_MAX	 255
#define IMAGE_DEPTH_MAX	 128

struct image_import {
	const char *source; /* file, directory with an OCI layout, "-" */
	const char *name;   /* NULL: none */
	const char *ref;    /* which of several; NULL: the only one for this machine */
	struct image_limits limits;
	/* Become this user, for good, with these capabilities (bits). NULL: stay. */
	int (*drop)(uid_t uid, gid_t gid, uint32_t kept, struct err *err);
};

/* Unpacks in a process of its own, without privilege, and takes the result into the store. Nothing is there unless it is
 * there as a whole. *ret_known: it was there before. */
int image_import(struct image *ret, bool *ret_known, const char *state,
		 const struct image_import *what, struct err *err);

/* ---- store ---- */

/* "image:NAME" or "image@sha256:HEX", which `run --root` takes. */
bool image_is_reference(const char *text);
bool image_is_digest(const char *text);
int image_check_name(const char *name, struct err *err);

struct image_ref {
	char digest[IMAGE_DIGEST_LEN + 1];
	int dir;  /* O_PATH on its directory; -1 */
	int lock; /* shared: it is not removed; -1 */
};
#define IMAGE_REF_INIT                \
	{                             \
		.dir = -1, .lock = -1 \
	}
void image_ref_done(struct image_ref *ref);

/* By name, digest, or either as a reference. Takes part in its lock. -ENOENT with the nearest name. */
int image_find(struct image_ref *ret, const char *state, const char *word, struct err *err);
int image_load(struct image *ret, const struct image_ref *ref, struct err *err);
/* Each image, by digest; `names` are its names, in order. Stops when fn returns less than 0. */
int image_each(const char *state,
	       int (*fn)(void *arg, const struct image *im, char *const *names, size_t names_n),
	       void *arg, struct err *err);
int image_name(const char *state, const char *name, const char *digest, struct err *err);
/* A name only loses its image when it was the last one: *ret_gone. -EBUSY: a sandbox uses it. */
int image_remove(const char *state, const char *word, bool *ret_gone, struct err *err);
/* Are the files what was imported? -EBADMSG with what differs. */
int image_verify(const struct image_ref *ref, const struct image *im, struct err *err);

/* The signature file's text. -ENOENT. */
int image_signature(const struct image_ref *ref, struct buf *ret);
int image_set_signature(const struct image_ref *ref, struct str text, struct err *err);

/* What is left of imports that were killed. Returns how many. */
int image_sweep(const char *state);

#endif
