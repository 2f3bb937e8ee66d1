/* SPDX-License-Identifier: Apache-2.0 */
/* <state>/images: sha256/<hex>/ an image each, names/<name> a file with a digest each, tmp/ what is being unpacked. */
#ifndef WARDER_IMAGE_STORE_H
#define WARDER_IMAGE_STORE_H

#include "userspace/image/image.h"

struct image_store {
	int top, images, names, tmp;
};
#define IMAGE_STORE_INIT       \
	{                      \
		-1, -1, -1, -1 \
	}

/* -ENOENT without `make` when there is none. */
int image_store_open(struct image_store *s, const char *state, bool make, struct err *err);
void image_store_done(struct image_store *s);
int image_store_name(struct image_store *s, const char *name, const char *digest, struct err *err);

/* A directory that is not an image yet: while its lock is held, it is being worked on; else it is swept. */
struct image_stage {
	char name[40];
	int dir, lock;
	int work; /* in it, the place of the process that unpacks */
};
#define IMAGE_STAGE_INIT                          \
	{                                         \
		.dir = -1, .lock = -1, .work = -1 \
	}
int image_stage_new(struct image_stage *st, struct image_store *s, struct err *err);
int image_stage_take(struct image_stage *st, struct err *err);
int image_stage_commit(struct image_stage *st, struct image_store *s, const char *digest,
		       bool *ret_known, struct err *err);
void image_stage_done(struct image_stage *st, struct image_store *s);

#endif
