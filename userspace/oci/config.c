// SPDX-License-Identifier: Apache-2.0
#include "userspace/oci/config.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/option.h"
#include "userspace/oci/parser.h"

#define ID_BYTES 128

/* Annotations that choose what a sandbox is: options of `warder run`. */
static const struct {
	const char *key, *option;
} chosen[] = {
	{ "warder.policy", "--policy" },   { "warder.rules", "--rules" },
	{ "warder.backend", "--backend" }, { "warder.tenant", "--tenant" },
	{ "warder.timeout", "--timeout" }, { "warder.export", "--export" },
	{ "warder.watch", "--watch" },
};

_Static_assert(2 * ARRAY_SIZE(chosen) <= OCI_WORDS_MAX, "an option and its value for each row");

static bool is_chosen(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(chosen); i++)
		if (!strcmp(key, chosen[i].key))
			return true;
	return false;
}

static int add_annotation(struct oci_parser *s, const struct json_node *m)
{
	struct oci_config *c = s->c;
	const char *key = arena_strndup(s->mem, m->key.p, m->key.n).p, *value = NULL;
	int r = key ? oci_text_of(s, m, &value) : oci_bad(s, m, ENOMEM, "out of memory");

	if (r < 0)
		return r;
	if (c->annotations_n == OCI_ANNOTATIONS_MAX)
		return oci_bad(s, m, E2BIG, "annotations: more than %d", OCI_ANNOTATIONS_MAX);
	if (!strncmp(key, "warder.", 7) && !is_chosen(key))
		return oci_bad(s, m, EINVAL, "annotation '%.80s': none of warder's", key);
	c->annotations[c->annotations_n].key = key;
	c->annotations[c->annotations_n++].value = value;
	return 0;
}

int oci_parse_annotations(struct oci_parser *s, const struct json_node *node)
{
	struct oci_config *c = s->c;
	int r = 0;

	for (const struct json_node *m = node->first; r == 0 && m; m = m->next)
		r = add_annotation(s, m);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(chosen); i++) {
		const char *value = NULL;

		r = oci_text(s, node, chosen[i].key, &value);
		if (r < 0 || !value)
			continue;
		c->words[c->words_n++] = chosen[i].option;
		c->words[c->words_n++] = value;
	}
	return r;
}

static int read_hooks(struct oci_parser *s, const struct json_node *root)
{
	const struct json_node *hooks = json_given(root, "hooks");

	for (const struct json_node *h = hooks ? hooks->first : NULL; h; h = h->next)
		if (h->first)
			return oci_bad(s, h, EOPNOTSUPP,
				       "hooks.%.*s: programs of the host are not run for a sandbox",
				       (int)MIN(h->key.n, (size_t)40), h->key.p);
	return 0;
}

static int read_root(struct oci_parser *s, const struct json_node *root)
{
	const struct json_node *m;
	int r = oci_member(s, root, "root", JSON_OBJECT, &m);

	if (r == 0 && !m)
		r = oci_bad(s, root, EINVAL, "root: there is none");
	if (r == 0)
		r = oci_text(s, m, "path", &s->c->root);
	if (r == 0 && (!s->c->root || !*s->c->root))
		r = oci_bad(s, m, EINVAL, "root.path: there is none");
	if (r == 0)
		r = oci_flag(s, m, "readonly", &s->c->container.readonly);
	if (r == 0 && !s->c->container.readonly)
		oci_note(s,
			 "root: what is written to it stays in memory and ends with the container");
	return r;
}

/* Of the first major version: others have other meanings. */
static int read_version(struct oci_parser *s, const struct json_node *root)
{
	const char *version;
	int r = oci_text(s, root, "ociVersion", &version);

	if (r == 0 && (!version || strncmp(version, "1.", 2)))
		r = oci_bad(s, root, EOPNOTSUPP, "ociVersion '%.20s': expected 1.x",
			    version ? version : "");
	return r;
}

static int read_all(struct oci_parser *s, const struct json_node *root)
{
	static const struct oci_key keys[] = {
		{ .key = "ociVersion" }, { .key = "root" },
		{ .key = "mounts" },	 { .key = "process" },
		{ .key = "hostname" },	 { .key = "domainname", .noted = true },
		{ .key = "hooks" },	 { .key = "annotations" },
		{ .key = "linux" },	 { .key = "solaris" },
		{ .key = "windows" },	 { .key = "vm" },
		{ .key = "zos" },
	};
	const struct json_node *m;
	int r = root->type == JSON_OBJECT ? 0 : oci_bad(s, root, EBADMSG, "expected an object");

	if (r == 0)
		r = read_version(s, root);
	if (r == 0)
		r = read_root(s, root);
	if (r == 0)
		r = oci_member(s, root, "process", JSON_OBJECT, &m);
	if (r == 0 && !m)
		r = oci_bad(s, root, EINVAL, "process: there is none");
	if (r == 0)
		r = oci_parse_process(s, m, &s->c->process);
	if (r == 0)
		r = oci_text(s, root, "hostname", &s->c->container.hostname);
	if (r == 0)
		r = oci_member(s, root, "linux", JSON_OBJECT, &m);
	if (r == 0 && !m)
		r = oci_bad(s, root, EINVAL, "linux: there is none");
	if (r == 0)
		r = oci_parse_linux(s, m);
	if (r == 0)
		r = oci_member(s, root, "mounts", JSON_ARRAY, &m);
	if (r == 0 && m)
		r = oci_parse_mounts(s, m);
	if (r == 0)
		r = read_hooks(s, root);
	if (r == 0)
		r = oci_member(s, root, "annotations", JSON_OBJECT, &m);
	if (r == 0 && m)
		r = oci_parse_annotations(s, m);
	if (r == 0)
		r = oci_check_keys(s, root, "", keys, ARRAY_SIZE(keys));
	return r;
}

int oci_config_parse(struct oci_config *ret, struct arena *mem, const char *name, struct str text,
		     struct err *err)
{
	struct oci_parser s = { ret, mem, name, text, err };
	struct json_node *root;
	int r;

	*ret = (struct oci_config){ .container = { .netns_fd = -1 } };
	if (text.n > OCI_CONFIG_BYTES)
		return err_set(err, EFBIG, "%s: more than %u bytes", name, OCI_CONFIG_BYTES);
	r = json_tree_parse(&root, mem, name, text, err);
	if (r == 0)
		r = read_all(&s, root);
	ret->container.umask = ret->process.umask;
	return r;
}

int oci_process_parse(struct oci_process *ret, struct arena *mem, const char *name, struct str text,
		      struct err *err)
{
	struct oci_parser s = { NULL, mem, name, text, err };
	struct json_node *root;
	int r;

	*ret = (struct oci_process){ 0 };
	if (text.n > OCI_CONFIG_BYTES)
		return err_set(err, EFBIG, "%s: more than %u bytes", name, OCI_CONFIG_BYTES);
	r = json_tree_parse(&root, mem, name, text, err);
	return r < 0 ? r : oci_parse_process(&s, root, ret);
}

bool oci_id_is_good(const char *id)
{
	size_t n = strlen(id);

	if (!n || n > ID_BYTES || id[0] == '.')
		return false;
	for (; *id; id++)
		if (!isalnum((unsigned char)*id) && !strchr("_+.-", *id))
			return false;
	return true;
}

int oci_signal(const char *word)
{
	uint64_t n;

	if (parse_u64(word, &n) == 0)
		return n < NSIG ? (int)n : 0;
	if (!strncmp(word, "SIG", 3))
		word += 3;
	for (int sig = 1; sig < NSIG; sig++) {
		const char *name = sigabbrev_np(sig);

		if (name && !strcmp(name, word))
			return sig;
	}
	return 0;
}
