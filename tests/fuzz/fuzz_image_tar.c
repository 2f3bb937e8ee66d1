// SPDX-License-Identifier: Apache-2.0
/* A layer as a process without privilege unpacks it: into a directory of its own, beside a file that must stay as it is.
 * Twice, as two layers are. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/image/internal.h"

struct bytes {
	const uint8_t *p;
	size_t n;
};

static ssize_t read_bytes(void *arg, void *p, size_t n, struct err *err)
{
	struct bytes *b = arg;

	(void)err;
	n = n < b->n ? n : b->n;
	memcpy(p, b->p, n);
	b->p += n;
	b->n -= n;
	return (ssize_t)n;
}

static void layer(struct unpacker *u, const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct err err = { 0 };
	uint8_t packed[EVP_MAX_MD_SIZE], plain[EVP_MAX_MD_SIZE];
	struct stream s;

	if (stream_open(&s, read_bytes, &in, "fuzz", u->limits, &err) < 0)
		return;
	if (unpack_layer(u, &s, &err) == 0)
		(void)stream_finish(&s, packed, plain);
	else if (!err.code)
		abort(); /* a refusal says why */
	stream_done(&s);
}

/* Nothing is beside the root but the canary. */
static void check_outside(int dir)
{
	struct stat st;

	if (fstatat(dir, "canary", &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_size != 0 || st.st_nlink != 1 || fstat(dir, &st) < 0 || st.st_nlink != 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct image_limits limits = { .bytes = 1u << 20,
						    .entries = 64,
						    .ratio = 200 };
	char place[] = "/tmp/fuzz-image-XXXXXX", tree[IMAGE_DIGEST_LEN + 1];
	struct unpacker u = { .limits = &limits, .parent = -1 };
	struct image im;
	int dir, fd;

	if (!mkdtemp(place))
		return 0;
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir, "canary", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || mkdirat(dir, "rootfs", 0700) < 0)
		abort();
	close(fd);
	u.root = openat(dir, "rootfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	layer(&u, data, size / 2);
	layer(&u, data, size);
	check_outside(dir);
	if (tree_digest(u.root, tree, NULL) == 0 && !image_is_digest(tree))
		abort();
	image_init(&im);
	im.user = STR("app:app");
	image_find_user(&im, u.root);
	image_done(&im);
	unpack_done(&u);
	close(u.root);
	if (tree_remove(AT_FDCWD, place) < 0)
		abort(); /* what we have made we can remove */
	close(dir);
	return 0;
}
