/* SPDX-License-Identifier: Apache-2.0 */
/* What an exec told: one copy, shared by the process, its forked children and their ancestor lists.
 * argv is cut here: every later event of the process repeats it. */
#ifndef WARDER_ENRICH_IMAGE_H
#define WARDER_ENRICH_IMAGE_H

#include "userspace/event/event.h"

struct image {
	uint32_t refs;
	uint32_t size;	 /* of this block */
	uint32_t args_n; /* offsets into data: args_at[i] .. args_at[i + 1] - 1 */
	uint32_t data_n; /* bytes of argv, with a NUL behind each */
	bool args_cut;	 /* there was more */
	bool has_args;
	struct str exe, cwd; /* point behind argv in this block; p == NULL where unknown */
	uint32_t *args_at;   /* args_n + 1 offsets */
	char *data;
};

/* From the slots of an exec event. NULL: out of memory. */
struct image *image_new(const struct event *ev);
struct image *image_ref(struct image *image);
/* Returns the bytes that were freed, 0 when others still hold it. NULL is fine. */
size_t image_unref(struct image *image);
/* argv as a list in the arena. 0 or -ENOMEM. */
int image_args(const struct image *image, struct arena *arena, const struct str **ret_v,
	       size_t *ret_n);

#endif
