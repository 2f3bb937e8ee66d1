// SPDX-License-Identifier: Apache-2.0
/* The order of the work: which image, its configuration, its layers from the lowest on, and a hash of what came of it.
 * Each digest that is said anywhere is checked against the bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/image/internal.h"

#define NESTED_MAX 3

struct work {
	struct image *im;
	const struct image_import *what;
	struct source src;
	struct manifest m;
	struct unpacker u;
	struct err *err;
};

static void set_digest(char *ret, const char *digest)
{
	memcpy(ret, digest, IMAGE_DIGEST_LEN + 1);
}

/* A blob of JSON whose digest and size somebody said. */
static int read_blob(struct work *w, const char *name, const char *digest, uint64_t size,
		     struct str *ret)
{
	char is[IMAGE_DIGEST_LEN + 1];
	int r = blob_text(&w->src, name, ret, &w->im->mem, w->err);

	if (r < 0)
		return r;
	if (digest_of(is, ret->p, ret->n) < 0)
		return err_set(w->err, EIO, "'%.200s': cannot be hashed", name);
	if (digest && *digest && strcmp(is, digest) != 0)
		return err_set(w->err, EBADMSG, "'%.200s' is not what its digest says: it is %s",
			       name, is);
	if (size != UINT64_MAX && size != ret->n)
		return err_set(w->err, EBADMSG, "'%.200s': %zu bytes, and should be %llu", name,
			       ret->n, (unsigned long long)size);
	return 0;
}

static int choose_oci(struct work *w, struct str *ret)
{
	const char *digest = "", *ref = w->what->ref;
	uint64_t size = UINT64_MAX;
	bool nested = false;
	int r = read_blob(w, "index.json", NULL, UINT64_MAX, ret);

	for (int i = 0; r == 0 && i <= NESTED_MAX; i++) {
		r = manifest_choose(&w->im->mem, *ret, ref, &digest, &size, &nested, w->err);
		if (r == 0)
			r = read_blob(w, manifest_blob(&w->im->mem, digest), digest, size, ret);
		if (r < 0 || !nested)
			break;
		ref = NULL; /* a row inside has no name of its own */
	}
	if (r == 0 && nested)
		r = err_set(w->err, EBADMSG, "index.json: an index in an index in an index");
	if (r == 0)
		set_digest(w->im->digest, digest);
	return r;
}

static int read_config(struct work *w)
{
	struct str text;
	int r = read_blob(w, w->m.config, w->m.config_digest, w->m.config_size, &text);

	if (r < 0)
		return r;
	if (digest_of(w->im->config, text.p, text.n) < 0)
		return err_set(w->err, EIO, "image config: cannot be hashed");
	if (!w->im->digest[0]) /* what docker calls the image's id; it names all layers */
		set_digest(w->im->digest, w->im->config);
	return manifest_config(w->im, text, &w->m, w->err);
}

static int read_manifest(struct work *w)
{
	struct str text;
	int r;

	if (w->src.kind == SOURCE_OCI) {
		r = choose_oci(w, &text);
		if (r == 0)
			r = manifest_oci(&w->im->mem, text, &w->m, w->err);
	} else {
		r = read_blob(w, "manifest.json", NULL, UINT64_MAX, &text);
		if (r == 0)
			r = manifest_docker(&w->im->mem, text, w->what->ref, &w->m, w->err);
	}
	return r < 0 ? r : read_config(w);
}

/* Unpacks, and compares both hashes with what was said; *ret is what they are. */
static int do_layer(struct work *w, stream_read_fn read, void *arg, const char *name,
		    const struct layer_ref *said, struct image_layer *ret)
{
	uint8_t packed[EVP_MAX_MD_SIZE], plain[EVP_MAX_MD_SIZE];
	struct stream s;
	int r = stream_open(&s, read, arg, name, &w->what->limits, w->err);

	if (r < 0)
		return r;
	r = unpack_layer(&w->u, &s, w->err);
	if (r == 0)
		r = stream_finish(&s, packed, plain);
	ret->size = s.packed_n;
	stream_done(&s);
	if (r < 0)
		return r;
	digest_text(ret->digest, packed);
	digest_text(ret->diff_id, plain);
	if (said && *said->digest && strcmp(said->digest, ret->digest) != 0)
		return err_set(w->err, EBADMSG, "%s is not what its digest says: it is %s", name,
			       ret->digest);
	if (said && said->size != UINT64_MAX && said->size != ret->size)
		return err_set(w->err, EBADMSG, "%s: %llu bytes, and should be %llu", name,
			       (unsigned long long)ret->size, (unsigned long long)said->size);
	if (said && strcmp(said->diff_id, ret->diff_id) != 0)
		return err_set(w->err, EBADMSG,
			       "%s unpacks to something else than its diff_id says: %s", name,
			       ret->diff_id);
	return 0;
}

static int all_layers(struct work *w)
{
	for (size_t i = 0; i < w->m.layers_n; i++) {
		const struct layer_ref *l = &w->m.layers[i];
		char name[64];
		struct blob b;
		int r;

		snprintf(name, sizeof(name), "layer %zu of %zu", i + 1, w->m.layers_n);
		r = blob_open(&b, &w->src, l->name, w->err);
		if (r < 0)
			return err_wrap(w->err, r, "%s", name);
		r = do_layer(w, blob_read, &b, name, l, &w->im->layers[i]);
		blob_done(&b);
		if (r < 0)
			return r;
		w->im->layers_n++;
	}
	return 0;
}

static int plain_root(struct work *w)
{
	int r = do_layer(w, source_read, &w->src, "archive", NULL, &w->im->layers[0]);

	if (r < 0)
		return r;
	if (!w->u.seen)
		return err_set(w->err, EBADMSG, "archive: nothing is in it");
	w->im->layers_n = 1;
	set_digest(w->im->digest, w->im->layers[0].diff_id); /* however it was packed */
	return 0;
}

static int do_work(struct work *w)
{
	struct image *im = w->im;
	bool plain = w->src.kind == SOURCE_ROOTFS;
	int r = plain ? 0 : read_manifest(w);

	if (r < 0)
		return r;
	im->layers = arena_zalloc(&im->mem, (w->m.layers_n + 1) * sizeof(*im->layers));
	if (!im->layers)
		return err_set(w->err, ENOMEM, "image: %m");
	snprintf(im->kind, sizeof(im->kind), "%s", source_kind_names[w->src.kind]);
	r = plain ? plain_root(w) : all_layers(w);
	if (r < 0)
		return r;
	im->bytes = w->u.bytes;
	im->entries = w->u.seen;
	im->left_out = w->u.left_out;
	im->stripped = w->u.stripped;
	im->attributes = w->u.attributes;
	image_find_user(im, w->u.root);
	return tree_digest(w->u.root, im->tree, w->err);
}

int image_work(struct image *im, int in, int stage, const struct image_import *what,
	       struct err *err)
{
	auto_free struct work *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_set(err, ENOMEM, "image: %m");
	w->im = im;
	w->what = what;
	w->err = err;
	w->u.limits = &what->limits;
	w->u.parent = -1;
	w->u.root = openat(stage, "rootfs", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (w->u.root < 0)
		return err_set(err, errno, "rootfs: %m");
	r = source_open(&w->src, in, stage, &what->limits, err);
	if (r == 0)
		r = do_work(w);
	unpack_done(&w->u);
	close(w->u.root);
	source_done(&w->src);
	return r;
}
