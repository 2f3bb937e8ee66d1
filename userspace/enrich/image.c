// SPDX-License-Identifier: Apache-2.0
#include "userspace/enrich/image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/sandbox.h"

struct image *image_new(const struct event *ev)
{
	struct str exe = event_str(ev, F_PROC_EXE), cwd = event_str(ev, F_PROC_CWD);
	bool has_args = event_has(ev, F_PROC_ARGS);
	const struct str *v = has_args ? ev->v[F_PROC_ARGS].list.v : NULL;
	size_t n = has_args ? ev->v[F_PROC_ARGS].list.n : 0, bytes = 0, kept = 0, size;
	struct image *image;
	char *at;

	while (kept < n && kept < IMAGE_ARGS_MAX && bytes < IMAGE_ARGS_BYTES)
		bytes += v[kept++].n + 1;
	bytes = MIN(bytes, (size_t)IMAGE_ARGS_BYTES);
	size = sizeof(*image) + (kept + 1) * sizeof(uint32_t) + bytes + exe.n + cwd.n + 2;
	image = malloc(size);
	if (!image)
		return NULL;
	*image = (struct image){
		.refs = 1,
		.size = (uint32_t)size,
		.args_n = (uint32_t)kept,
		.data_n = (uint32_t)bytes,
		.args_cut = kept < n || event_has(ev, F_PROC_ARGS_TRUNCATED),
		.has_args = has_args,
		.args_at = (uint32_t *)(image + 1),
	};
	image->data = (char *)(image->args_at + kept + 1);
	at = image->data;
	for (size_t i = 0; i < kept; i++) {
		size_t k = MIN(v[i].n, (size_t)(image->data + bytes - at) - 1);

		image->args_cut |= k < v[i].n;
		image->args_at[i] = (uint32_t)(at - image->data);
		memcpy(at, v[i].p, k);
		at += k;
		*at++ = 0;
	}
	image->args_at[kept] = (uint32_t)(at - image->data);
	at = image->data + bytes;
	if (exe.p) {
		image->exe = (struct str){ at, exe.n };
		memcpy(at, exe.p, exe.n);
		at += exe.n;
	}
	if (cwd.p) {
		image->cwd = (struct str){ at, cwd.n };
		memcpy(at, cwd.p, cwd.n);
	}
	return image;
}

struct image *image_ref(struct image *image)
{
	if (image)
		image->refs++;
	return image;
}

size_t image_unref(struct image *image)
{
	size_t size;

	if (!image || --image->refs)
		return 0;
	size = image->size;
	free(image);
	return size;
}

int image_args(const struct image *image, struct arena *arena, const struct str **ret_v,
	       size_t *ret_n)
{
	struct str *v = arena_alloc(arena, image->args_n * sizeof(*v) + image->data_n);
	char *data = (char *)(v + image->args_n);

	if (!v)
		return -ENOMEM;
	memcpy(data, image->data, image->data_n);
	for (uint32_t i = 0; i < image->args_n; i++)
		v[i] = (struct str){ data + image->args_at[i],
				     image->args_at[i + 1] - image->args_at[i] - 1 };
	*ret_v = v;
	*ret_n = image->args_n;
	return 0;
}
