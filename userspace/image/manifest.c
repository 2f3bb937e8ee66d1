// SPDX-License-Identifier: Apache-2.0
/* The JSON of OCI layouts (image-spec: image-index, manifest, config) and of `docker save`. What it says is hostile: each
 * value is checked for its type, and a digest for being one. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/event/json_tree.h"
#include "userspace/image/internal.h"

#define REF_NAME  "org.opencontainers.image.ref.name"
#define FULL_NAME "io.containerd.image.name"
#define WORD_MAX  (128u << 10)

#if defined(__x86_64__)
#define HOST_ARCH "amd64"
#elif defined(__aarch64__)
#define HOST_ARCH "arm64"
#else
#define HOST_ARCH "unknown"
#endif

bool image_is_digest(const char *z)
{
	return !strncmp(z, "sha256:", 7) && strlen(z) == IMAGE_DIGEST_LEN &&
	       strspn(z + 7, "0123456789abcdef") == IMAGE_DIGEST_LEN - 7;
}

const char *manifest_blob(struct arena *mem, const char *digest)
{
	return arena_printf(mem, "blobs/sha256/%s", digest + 7).p;
}

static int parse(struct json_node **ret, struct arena *mem, const char *name, struct str text,
		 struct err *err)
{
	return json_tree_parse(ret, mem, name, text, err);
}

/* NULL: it is no text, or more than a word may have. */
static const char *plain_text(const struct json_node *node)
{
	return node && node->type == JSON_STRING && node->text.n <= WORD_MAX ? node->text.p : NULL;
}

static const char *digest_in(const struct json_node *row, const char *key)
{
	const char *z = plain_text(json_given(row, key));

	return z && image_is_digest(z) ? z : NULL;
}

/* ---- OCI ---- */

static bool is_named(const struct json_node *row, const char *ref)
{
	const struct json_node *notes = json_given(row, "annotations");
	const char *name = plain_text(json_given(notes, REF_NAME)),
		   *full = plain_text(json_given(notes, FULL_NAME));

	return (name && !strcmp(name, ref)) || (full && !strcmp(full, ref));
}

static bool is_for_us(const struct json_node *row)
{
	const struct json_node *platform = json_given(row, "platform");
	const char *os, *arch;

	if (!platform)
		return true;
	os = plain_text(json_given(platform, "os"));
	arch = plain_text(json_given(platform, "architecture"));
	return os && arch && !strcmp(os, "linux") && !strcmp(arch, HOST_ARCH);
}

static bool is_index(const struct json_node *row)
{
	const char *type = plain_text(json_given(row, "mediaType"));

	return type && (!strcmp(type, "application/vnd.oci.image.index.v1+json") ||
			!strcmp(type, "application/vnd.docker.distribution.manifest.list.v2+json"));
}

int manifest_choose(struct arena *mem, struct str index, const char *ref, const char **ret_digest,
		    uint64_t *ret_size, bool *ret_nested, struct err *err)
{
	const struct json_node *rows, *found = NULL;
	struct json_node *root;
	size_t fits = 0, named = 0;
	int r = parse(&root, mem, "index.json", index, err);

	if (r < 0)
		return r;
	rows = json_given(root, "manifests");
	if (!rows || rows->type != JSON_ARRAY)
		return err_set(err, EBADMSG, "index.json: no list 'manifests'");
	for (const struct json_node *row = rows->first; row; row = row->next) {
		const char *digest = digest_in(row, "digest");

		if (!digest)
			return err_set(err, EBADMSG,
				       "index.json: a manifest without a sha256 digest");
		if (ref && !is_named(row, ref))
			continue;
		named++;
		if (!is_for_us(row))
			continue;
		fits += !found || strcmp(digest, digest_in(found, "digest")) != 0;
		found = row;
	}
	if (!found && named)
		return err_set(err, ENOENT, "index.json: nothing for linux/" HOST_ARCH);
	if (!found)
		return err_set(err, ENOENT, "index.json: no image%s%.100s%s", ref ? " '" : "",
			       ref ? ref : "", ref ? "'" : "");
	if (fits > 1)
		return err_set(err, EINVAL, "index.json: %zu images: say which by --ref", fits);
	*ret_digest = digest_in(found, "digest");
	*ret_nested = is_index(found);
	if (!json_u64_of(json_given(found, "size"), ret_size))
		*ret_size = UINT64_MAX;
	return 0;
}

static int count_layers(const struct json_node *list, const char *name, struct err *err)
{
	if (!list || list->type != JSON_ARRAY)
		return err_set(err, EBADMSG, "%s: no list of layers", name);
	if (list->n > IMAGE_LAYERS_MAX)
		return err_set(err, E2BIG, "%s: %zu layers, at most %d", name, list->n,
			       IMAGE_LAYERS_MAX);
	return 0;
}

int manifest_oci(struct arena *mem, struct str text, struct manifest *ret, struct err *err)
{
	const struct json_node *config, *layers;
	struct json_node *root;
	size_t i = 0;
	int r = parse(&root, mem, "manifest", text, err);

	if (r < 0)
		return r;
	config = json_given(root, "config");
	ret->config_digest = digest_in(config, "digest");
	if (!ret->config_digest)
		return err_set(err, EBADMSG, "manifest: no config with a sha256 digest");
	ret->config = manifest_blob(mem, ret->config_digest);
	if (!json_u64_of(json_given(config, "size"), &ret->config_size))
		ret->config_size = UINT64_MAX;
	layers = json_given(root, "layers");
	r = count_layers(layers, "manifest", err);
	if (r < 0)
		return r;
	ret->layers = arena_zalloc(mem, (layers->n + 1) * sizeof(*ret->layers));
	if (!ret->layers || !ret->config)
		return err_set(err, ENOMEM, "manifest: %m");
	for (const struct json_node *row = layers->first; row; row = row->next, i++) {
		struct layer_ref *l = &ret->layers[i];

		l->digest = digest_in(row, "digest");
		if (!l->digest)
			return err_set(err, EBADMSG, "manifest: layer %zu has no sha256 digest",
				       i + 1);
		l->name = manifest_blob(mem, l->digest);
		if (!l->name)
			return err_set(err, ENOMEM, "manifest: %m");
		if (!json_u64_of(json_given(row, "size"), &l->size))
			l->size = UINT64_MAX;
	}
	ret->layers_n = layers->n;
	return 0;
}

/* ---- docker save ---- */

static bool is_tagged(const struct json_node *row, const char *ref)
{
	const struct json_node *tags = json_given(row, "RepoTags");

	for (const struct json_node *t = tags ? tags->first : NULL; t; t = t->next) {
		const char *z = plain_text(t);

		if (z && !strcmp(z, ref))
			return true;
	}
	return false;
}

/* Where the file's name is its hash, that must be so. */
static const char *digest_of_name(struct arena *mem, const char *name)
{
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	size_t n = strspn(base, "0123456789abcdef");

	if (n != 64 || (base[n] && strcmp(base + n, ".json") != 0))
		return "";
	return arena_printf(mem, "sha256:%.64s", base).p;
}

int manifest_docker(struct arena *mem, struct str text, const char *ref, struct manifest *ret,
		    struct err *err)
{
	const struct json_node *row = NULL, *layers;
	struct json_node *root;
	size_t i = 0, fits = 0;
	int r = parse(&root, mem, "manifest.json", text, err);

	if (r < 0)
		return r;
	if (root->type != JSON_ARRAY)
		return err_set(err, EBADMSG, "manifest.json: not a list of images");
	for (const struct json_node *c = root->first; c; c = c->next)
		if (!ref || is_tagged(c, ref)) {
			row = c;
			fits++;
		}
	if (fits != 1)
		return err_set(err, fits ? EINVAL : ENOENT, "manifest.json: %s",
			       fits  ? "several images: say which by --ref NAME:TAG"
			       : ref ? "no image of this name"
				     : "no image");
	ret->config = plain_text(json_given(row, "Config"));
	if (!ret->config)
		return err_set(err, EBADMSG, "manifest.json: an image without 'Config'");
	ret->config_digest = digest_of_name(mem, ret->config);
	ret->config_size = UINT64_MAX;
	layers = json_given(row, "Layers");
	r = count_layers(layers, "manifest.json", err);
	if (r < 0)
		return r;
	ret->layers = arena_zalloc(mem, (layers->n + 1) * sizeof(*ret->layers));
	if (!ret->layers || !ret->config_digest)
		return err_set(err, ENOMEM, "manifest.json: %m");
	for (const struct json_node *c = layers->first; c; c = c->next, i++) {
		struct layer_ref *l = &ret->layers[i];

		*l = (struct layer_ref){ .name = plain_text(c), .digest = "", .size = UINT64_MAX };
		if (!l->name)
			return err_set(err, EBADMSG, "manifest.json: layer %zu has no name", i + 1);
	}
	ret->layers_n = layers->n;
	return 0;
}

/* ---- the configuration ---- */

static int words(struct image *im, const struct json_node *list, const char *name, size_t max,
		 char ***ret, size_t *ret_n, struct err *err)
{
	size_t i = 0;

	if (!list) {
		*ret = NULL;
		*ret_n = 0;
		return 0;
	}
	if (list->type != JSON_ARRAY || list->n > max)
		return err_set(err, EBADMSG,
			       "image config: '%s' is not a list of at most %zu texts", name, max);
	*ret = arena_zalloc(&im->mem, (list->n + 1) * sizeof(**ret));
	if (!*ret)
		return err_set(err, ENOMEM, "image config: %m");
	for (const struct json_node *c = list->first; c; c = c->next, i++) {
		const char *z = plain_text(c);

		if (!z)
			return err_set(err, EBADMSG,
				       "image config: '%s' holds something else than "
				       "texts",
				       name);
		(*ret)[i] = (char *)(uintptr_t)z;
	}
	*ret_n = list->n;
	return 0;
}

static int text_of(const struct json_node *node, const char *key, struct str *ret, struct err *err)
{
	const struct json_node *m = json_given(node, key);

	*ret = STR("");
	if (!m)
		return 0;
	if (!plain_text(m))
		return err_set(err, EBADMSG, "image config: '%s' is not a text", key);
	*ret = m->text;
	return 0;
}

static int diff_ids(const struct json_node *root, struct manifest *m, struct err *err)
{
	const struct json_node *ids = json_given(json_given(root, "rootfs"), "diff_ids");
	size_t i = 0;

	if (!ids || ids->type != JSON_ARRAY || ids->n != m->layers_n)
		return err_set(err, EBADMSG, "image config: %zu layers, and diff_ids for %zu",
			       m->layers_n, ids ? ids->n : 0);
	for (const struct json_node *c = ids->first; c; c = c->next, i++) {
		const char *z = plain_text(c);

		if (!z || !image_is_digest(z))
			return err_set(err, EBADMSG,
				       "image config: diff_id %zu is no sha256 digest", i + 1);
		m->layers[i].diff_id = z;
	}
	return 0;
}

static int check_env(const struct image *im, struct err *err)
{
	for (size_t i = 0; i < im->env_n; i++)
		if (im->env[i][0] == '=' || !strchr(im->env[i], '='))
			return err_set(err, EBADMSG, "image config: Env '%.64s' is not NAME=VALUE",
				       im->env[i]);
	return 0;
}

int manifest_config(struct image *im, struct str text, struct manifest *m, struct err *err)
{
	const struct json_node *config;
	struct json_node *root;
	struct str os;
	int r = parse(&root, &im->mem, "image config", text, err);

	if (r < 0)
		return r;
	r = text_of(root, "architecture", &im->arch, err);
	if (r == 0)
		r = text_of(root, "os", &os, err);
	if (r < 0)
		return r;
	if ((os.n && !str_eqz(os, "linux")) || (im->arch.n && !str_eqz(im->arch, HOST_ARCH)))
		return err_set(err, EINVAL,
			       "the image is for %.40s/%.40s, not for linux/" HOST_ARCH, os.p,
			       im->arch.p);
	config = json_given(root, "config");
	r = text_of(root, "created", &im->created, err);
	if (r == 0)
		r = text_of(config, "User", &im->user, err);
	if (r == 0)
		r = text_of(config, "WorkingDir", &im->workdir, err);
	if (r == 0)
		r = words(im, json_given(config, "Env"), "Env", IMAGE_ENV_MAX, &im->env, &im->env_n,
			  err);
	if (r == 0)
		r = check_env(im, err);
	if (r == 0)
		r = words(im, json_given(config, "Entrypoint"), "Entrypoint", IMAGE_WORDS_MAX,
			  &im->entrypoint, &im->entrypoint_n, err);
	if (r == 0)
		r = words(im, json_given(config, "Cmd"), "Cmd", IMAGE_WORDS_MAX, &im->cmd,
			  &im->cmd_n, err);
	return r < 0 ? r : diff_ids(root, m, err);
}
