// SPDX-License-Identifier: Apache-2.0
/* The JSON of image layouts, names in archives, and our own description of an image, which a process that has read hostile
 * bytes writes. What is accepted must be within its limits, and written and read again be the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/image/internal.h"

#define ARENA_MAX (8u << 20)

static void check(bool ok)
{
	if (!ok)
		abort();
}

static void layouts(struct str text)
{
	struct arena mem;
	struct manifest m = { 0 };
	struct image im;
	const char *digest;
	uint64_t size;
	bool nested;

	arena_init(&mem, ARENA_MAX);
	if (manifest_choose(&mem, text, NULL, &digest, &size, &nested, NULL) == 0)
		check(image_is_digest(digest));
	(void)manifest_choose(&mem, text, "latest", &digest, &size, &nested, NULL);
	if (manifest_docker(&mem, text, "a:b", &m, NULL) == 0)
		check(m.layers_n <= IMAGE_LAYERS_MAX && m.config);
	m = (struct manifest){ 0 };
	if (manifest_oci(&mem, text, &m, NULL) == 0)
		for (size_t i = 0; i < m.layers_n; i++)
			check(image_is_digest(m.layers[i].digest));
	m = (struct manifest){ 0 };
	image_init(&im);
	if (manifest_config(&im, text, &m, NULL) == 0)
		check(im.env_n <= IMAGE_ENV_MAX && im.cmd_n <= IMAGE_WORDS_MAX);
	image_done(&im);
	arena_done(&mem);
}

static void description(struct str text)
{
	auto_buf struct buf once = { 0 }, twice = { 0 };
	struct image a, b;

	image_init(&a);
	image_init(&b);
	if (image_read(&a, "fuzz", text, NULL) == 0) {
		check(image_write(&a, &once) == 0);
		check(image_read(&b, "again", (struct str){ once.p, once.n }, NULL) == 0);
		check(image_write(&b, &twice) == 0);
		check(once.n == twice.n && !memcmp(once.p, twice.p, once.n));
	}
	image_done(&a);
	image_done(&b);
}

static void names(const uint8_t *data, size_t size)
{
	char *path = malloc(size + 1);
	const char *problem, *name;

	if (!path)
		return;
	memcpy(path, data, size);
	path[size] = 0;
	if (path_clean(path, &problem) == 0) {
		check(path[0] != '/' && strlen(path) <= IMAGE_PATH_MAX);
		check(strncmp(path, "../", 3) != 0 && !strstr(path, "/../") &&
		      strcmp(path, "..") != 0);
		if (whiteout_kind(path, &name) == WHITEOUT_NAME)
			check(strcmp(name, "..") != 0 && strcmp(name, ".") != 0);
	}
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct str text = { (const char *)data, size };

	if (size > SOURCE_BLOB_MAX)
		return 0;
	layouts(text);
	description(text);
	names(data, size);
	return 0;
}
