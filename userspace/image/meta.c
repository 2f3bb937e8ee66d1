// SPDX-License-Identifier: Apache-2.0
/* An image as JSON: meta.json of the store, and what the importing process says. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/json.h"
#include "userspace/event/json_tree.h"
#include "userspace/image/internal.h"

#define ARENA_MAX (32u << 20)

void image_init(struct image *im)
{
	*im = (struct image){
		.arch = STR(""), .created = STR(""), .workdir = STR(""), .user = STR("")
	};
	arena_init(&im->mem, ARENA_MAX);
}

void image_done(struct image *im)
{
	arena_done(&im->mem);
	*im = (struct image){ 0 };
}

static void put_list(struct json *j, const char *key, char *const *v, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_strz(j, v[i]);
	json_array_end(j);
}

static void put_text(struct json *j, const char *key, struct str s)
{
	json_key(j, key);
	if (s.n)
		json_str(j, s);
	else
		json_null(j);
}

static void put_number(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void put_layers(struct json *j, const struct image *im)
{
	json_key(j, "layers");
	json_array_begin(j);
	for (size_t i = 0; i < im->layers_n; i++) {
		json_object_begin(j);
		put_text(j, "digest", str_from(im->layers[i].digest));
		put_text(j, "diff_id", str_from(im->layers[i].diff_id));
		put_number(j, "size", im->layers[i].size);
		json_object_end(j);
	}
	json_array_end(j);
}

int image_write(const struct image *im, struct buf *out)
{
	struct json j;

	json_init(&j, out);
	json_object_begin(&j);
	put_text(&j, "digest", str_from(im->digest));
	put_text(&j, "kind", str_from(im->kind));
	put_text(&j, "tree", str_from(im->tree));
	put_text(&j, "config", str_from(im->config));
	put_text(&j, "architecture", im->arch);
	put_text(&j, "created", im->created);
	put_text(&j, "user", im->user);
	if (im->has_ids) {
		put_number(&j, "uid", im->uid);
		put_number(&j, "gid", im->gid);
	}
	put_text(&j, "workdir", im->workdir);
	put_list(&j, "env", im->env, im->env_n);
	put_list(&j, "entrypoint", im->entrypoint, im->entrypoint_n);
	put_list(&j, "cmd", im->cmd, im->cmd_n);
	put_layers(&j, im);
	put_number(&j, "bytes", im->bytes);
	put_number(&j, "entries", im->entries);
	put_number(&j, "imported_ns", im->imported_ns);
	put_number(&j, "left_out", im->left_out);
	put_number(&j, "stripped", im->stripped);
	put_number(&j, "attributes", im->attributes);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}

struct reading {
	struct image *im;
	const struct json_node *root;
	bool bad;
};

static void get_digest(struct reading *r, const struct json_node *at, const char *key,
		       char ret[IMAGE_DIGEST_LEN + 1], bool optional)
{
	struct str s;

	if (!json_text_of(at, key, &s) || (!s.n && !optional) ||
	    (s.n && (s.n != IMAGE_DIGEST_LEN || !image_is_digest(s.p)))) {
		r->bad = true;
		return;
	}
	memcpy(ret, s.p, s.n);
	ret[s.n] = 0;
}

static void get_text(struct reading *r, const char *key, struct str *ret)
{
	if (!json_text_of(r->root, key, ret)) {
		r->bad = true;
		*ret = STR("");
	}
}

static void get_number(struct reading *r, const char *key, uint64_t *ret)
{
	r->bad |= !json_u64_of(json_member(r->root, key), ret);
}

static void get_list(struct reading *r, const char *key, size_t max, char ***ret, size_t *ret_n)
{
	const struct json_node *list = json_member(r->root, key);
	size_t n = 0;

	if (!list || list->type != JSON_ARRAY || list->n > max) {
		r->bad = true;
		return;
	}
	*ret = arena_zalloc(&r->im->mem, (list->n + 1) * sizeof(**ret));
	for (const struct json_node *c = list->first; c && *ret; c = c->next) {
		if (c->type != JSON_STRING) {
			r->bad = true;
			return;
		}
		(*ret)[n++] = (char *)(uintptr_t)c->text.p;
	}
	*ret_n = n;
	r->bad |= !*ret;
}

static void get_layers(struct reading *r)
{
	const struct json_node *list = json_member(r->root, "layers");
	struct image *im = r->im;

	if (!list || list->type != JSON_ARRAY || list->n > IMAGE_LAYERS_MAX) {
		r->bad = true;
		return;
	}
	im->layers = arena_zalloc(&im->mem, (list->n + 1) * sizeof(*im->layers));
	for (const struct json_node *c = list->first; c && im->layers; c = c->next) {
		struct image_layer *l = &im->layers[im->layers_n++];

		get_digest(r, c, "digest", l->digest, false);
		get_digest(r, c, "diff_id", l->diff_id, false);
		r->bad |= !json_u64_of(json_member(c, "size"), &l->size);
	}
	r->bad |= !im->layers;
}

static void get_ids(struct reading *r)
{
	uint64_t uid = 0, gid = 0;

	if (!json_member(r->root, "uid"))
		return;
	get_number(r, "uid", &uid);
	get_number(r, "gid", &gid);
	r->bad |= uid > UINT16_MAX || gid > UINT16_MAX;
	r->im->has_ids = true;
	r->im->uid = (uint32_t)uid;
	r->im->gid = (uint32_t)gid;
}

int image_read(struct image *im, const char *name, struct str text, struct err *err)
{
	struct reading r = { .im = im };
	struct json_node *root;
	struct str kind = STR("");
	int k = json_tree_parse(&root, &im->mem, name, text, err);

	if (k < 0)
		return k;
	r.root = root;
	get_digest(&r, root, "digest", im->digest, false);
	get_digest(&r, root, "tree", im->tree, false);
	get_digest(&r, root, "config", im->config, true);
	get_text(&r, "kind", &kind);
	r.bad |= !kind.n || kind.n >= sizeof(im->kind);
	if (!r.bad)
		memcpy(im->kind, kind.p, kind.n + 1);
	get_text(&r, "architecture", &im->arch);
	get_text(&r, "created", &im->created);
	get_text(&r, "user", &im->user);
	get_text(&r, "workdir", &im->workdir);
	get_ids(&r);
	get_list(&r, "env", IMAGE_ENV_MAX, &im->env, &im->env_n);
	get_list(&r, "entrypoint", IMAGE_WORDS_MAX, &im->entrypoint, &im->entrypoint_n);
	get_list(&r, "cmd", IMAGE_WORDS_MAX, &im->cmd, &im->cmd_n);
	get_layers(&r);
	get_number(&r, "bytes", &im->bytes);
	get_number(&r, "entries", &im->entries);
	get_number(&r, "imported_ns", &im->imported_ns);
	get_number(&r, "left_out", &im->left_out);
	get_number(&r, "stripped", &im->stripped);
	get_number(&r, "attributes", &im->attributes);
	return r.bad ? err_set(err, EBADMSG, "%s: not the description of an image", name) : 0;
}
