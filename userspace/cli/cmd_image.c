// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/image_sign.h"
#include "userspace/cli/util.h"
#include "userspace/image/image.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run.h"

struct image_args {
	const char *name, *ref, *signature;
	uint64_t max_size, max_files;
	struct option_list keys;
	bool json, help;
};

#define AT(member) offsetof(struct image_args, member)

static const struct option_def OPTIONS[] = {
	{ "name", 0, OPT_STR, AT(name), "NAME", "import: call it so, as in run --root image:NAME" },
	{ "ref", 0, OPT_STR, AT(ref), "REF", "import: which one, where a file holds several" },
	{ "max-size", 0, OPT_SIZE, AT(max_size), "SIZE",
	  "import: most bytes that it may unpack to (default: 16G)" },
	{ "max-files", 0, OPT_U64, AT(max_files), "N",
	  "import: most entries of all its archives (default: 1000000)" },
	{ "signature", 0, OPT_STR, AT(signature), "FILE",
	  "import: its signature, kept with it; with --key it must be good" },
	{ "key", 0, OPT_STRLIST, AT(keys), "FILE",
	  "verify, import: must be signed by one of the keys in FILE (warder keys public); repeatable" },
	{ "json", 0, OPT_FLAG, AT(json), NULL, "as JSON, an object a line" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Root file systems for `run --root`, pinned by digest. Nothing is fetched: what is imported\n"
	"is a file or directory, unpacked by a process without privileges, with each digest checked.\n\n"
	"  import FILE|DIR|-  an OCI layout (directory or tar), a `docker save` archive, or the tar\n"
	"                     of a root; plain or packed by gzip or zstd. Devices, setuid bits and\n"
	"                     file capabilities stay out, symbolic links are not followed\n"
	"  list               what there is\n"
	"  show IMAGE         one of them: configuration, layers\n"
	"  verify IMAGE...    are its files as they were imported? With --key also who signed it\n"
	"  sign IMAGE         by this host's key (warder keys init): kept with it, and printed\n"
	"  rm IMAGE...        a name, and the image with its last one; by digest, all of it\n\n"
	"IMAGE is a name, sha256:DIGEST, image:NAME or image@sha256:DIGEST. The digest is that of an\n"
	"OCI manifest, a docker image's id, or the SHA-256 of a root's tar, unpacked.\n"
	"Exit code: 0; 1 when verify finds a difference; 125 for errors.";

static void size_text(char ret[32], uint64_t n)
{
	if (n >= 10u << 20)
		snprintf(ret, 32, "%llu MiB", (unsigned long long)(n >> 20));
	else
		snprintf(ret, 32, "%llu KiB", (unsigned long long)((n + 1023) >> 10));
}

/* What comes out of an image is not for a terminal as it is. */
static void put(const char *z)
{
	for (; *z; z++)
		putchar((unsigned char)*z < 0x20 || *z == 0x7f ? '?' : *z);
}

static int print_json(const struct image *im, char *const *names, size_t names_n)
{
	auto_buf struct buf meta = { 0 }, out = { 0 };
	struct json j;

	if (image_write(im, &meta) < 0)
		return -ENOMEM;
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "names");
	json_array_begin(&j);
	for (size_t i = 0; i < names_n; i++)
		json_strz(&j, names[i]);
	json_array_end(&j);
	json_object_end(&j);
	/* {"names":[...]} and the members of the image. */
	printf("%.*s,%.*s\n", (int)out.n - 1, out.p, (int)meta.n - 1, meta.p + 1);
	return 0;
}

static int print_row(void *arg, const struct image *im, char *const *names, size_t names_n)
{
	char size[32], when[RFC3339_NS_LEN + 1];

	if (((const struct image_args *)arg)->json)
		return print_json(im, names, names_n);
	size_text(size, im->bytes);
	rfc3339_ns(when, im->imported_ns);
	for (size_t i = 0; i < names_n || i == 0; i++)
		printf("%-28s  %.19s  %-6s  %10s  %.19s\n", names_n ? names[i] : "-", im->digest,
		       im->kind, size, when);
	return 0;
}

static void print_words(const char *what, char *const *v, size_t n)
{
	if (!n)
		return;
	printf("%-12s", what);
	for (size_t i = 0; i < n; i++) {
		putchar(' ');
		put(v[i]);
	}
	putchar('\n');
}

static void print_text(const char *what, const char *z)
{
	if (!*z)
		return;
	printf("%-12s ", what);
	put(z);
	putchar('\n');
}

static void print_image(const struct image *im)
{
	print_text("digest", im->digest);
	print_text("kind", im->kind);
	print_text("created", im->created.p);
	print_text("for", im->arch.p);
	print_text("user", im->user.p);
	if (im->has_ids)
		printf("%-12s %u:%u\n", "ids", im->uid, im->gid);
	print_text("workdir", im->workdir.p);
	print_words("entrypoint", im->entrypoint, im->entrypoint_n);
	print_words("cmd", im->cmd, im->cmd_n);
	for (size_t i = 0; i < im->env_n; i++)
		print_text("env", im->env[i]);
	for (size_t i = 0; i < im->layers_n; i++)
		print_text("layer", im->layers[i].digest);
	printf("%-12s %llu bytes in %llu entries\n", "files", (unsigned long long)im->bytes,
	       (unsigned long long)im->entries);
	if (im->left_out)
		printf("%-12s %llu devices, pipes and sockets\n", "left out",
		       (unsigned long long)im->left_out);
	if (im->stripped)
		printf("%-12s setuid or setgid bits of %llu files\n", "left out",
		       (unsigned long long)im->stripped);
	if (im->attributes)
		printf("%-12s extended attributes of %llu files\n", "left out",
		       (unsigned long long)im->attributes);
	print_text("tree", im->tree);
}

/* ---- the actions ---- */

static int read_signature(const struct image_args *a, struct buf *ret, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r;

	if (!a->signature)
		return a->keys.n ? err_set(err, EINVAL,
					   "option '--key': an import is checked with --signature")
				 : 0;
	r = file_read_at(AT_FDCWD, a->signature, 64 << 10, &text, &n);
	if (r < 0)
		return err_set(err, r, "signature '%s': %m", a->signature);
	return buf_add(ret, text, n);
}

/* A signature that is not good makes no name. */
static int import(const struct image_args *a, const char *source, struct err *err)
{
	struct image_import what = { .source = source,
				     .ref = a->ref,
				     .limits = { a->max_size, a->max_files, IMAGE_RATIO },
				     .drop = privdrop_keep };
	struct image_ref ref = IMAGE_REF_INIT;
	auto_buf struct buf signature = { 0 };
	auto_image struct image im = { 0 };
	bool known = false, gone;
	int r = read_signature(a, &signature, err);

	image_init(&im);
	what.name = signature.n ? NULL : a->name;
	if (r == 0 && a->name)
		r = image_check_name(a->name, err);
	if (r == 0)
		r = image_import(&im, &known, state_dir(), &what, err);
	if (r == 0 && signature.n) {
		const struct str text = { signature.p, signature.n };

		r = a->keys.n ? image_sign_check(text, im.digest, &a->keys, NULL, err) : 0;
		if (r < 0 && !known)
			(void)image_remove(state_dir(), im.digest, &gone, NULL);
		if (r == 0)
			r = image_find(&ref, state_dir(), im.digest, err);
		if (r == 0)
			r = image_set_signature(&ref, text, err);
		if (r == 0 && a->name)
			r = image_name(state_dir(), a->name, im.digest, err);
		image_ref_done(&ref);
	}
	if (r < 0)
		return r;
	if (a->json)
		return print_json(&im, (char *const *)&a->name, a->name != NULL);
	printf("%s%s\n", im.digest, known ? " (was there)" : "");
	return 0;
}

static int load(struct image_ref *ref, struct image *im, const char *word, struct err *err)
{
	int r = image_find(ref, state_dir(), word, err);

	return r < 0 ? r : image_load(im, ref, err);
}

static int show(const char *word, bool json, struct err *err)
{
	struct image_ref ref = IMAGE_REF_INIT;
	auto_image struct image im = { 0 };
	int r;

	image_init(&im);
	r = load(&ref, &im, word, err);
	if (r == 0 && json)
		r = print_json(&im, NULL, 0);
	else if (r == 0)
		print_image(&im);
	image_ref_done(&ref);
	return r;
}

static void print_verdict(const char *digest, const char *key, const struct err *err, bool json)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	if (!json) {
		if (err->code)
			cli_fail(err);
		else
			printf("%s: intact%s%s\n", digest, *key ? ", signed by " : "", key);
		return;
	}
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "digest");
	json_strz(&j, digest);
	json_key(&j, "ok");
	json_bool(&j, !err->code);
	json_key(&j, "signed_by");
	if (*key)
		json_strz(&j, key);
	else
		json_null(&j);
	json_key(&j, "error");
	if (err->code)
		json_strz(&j, err_text(err));
	else
		json_null(&j);
	json_object_end(&j);
	cli_print_line(&out);
}

/* 1: it is not what it should be. */
static int verify(const struct image_args *a, const char *word, struct err *err)
{
	struct image_ref ref = IMAGE_REF_INIT;
	auto_image struct image im = { 0 };
	struct err found = { 0 };
	char key[65] = "";
	int r;

	image_init(&im);
	r = load(&ref, &im, word, err);
	if (r < 0) {
		image_ref_done(&ref);
		return r;
	}
	r = image_verify(&ref, &im, &found);
	if (r == 0 && a->keys.n)
		r = image_check_signed(&ref, &a->keys, key, &found);
	image_ref_done(&ref);
	print_verdict(im.digest, key, &found, a->json);
	return r < 0;
}

static int sign(const char *word, struct err *err)
{
	struct image_ref ref = IMAGE_REF_INIT;
	auto_buf struct buf text = { 0 };
	int r = image_find(&ref, state_dir(), word, err);

	if (r == 0)
		r = image_sign(&text, ref.digest, err);
	if (r == 0)
		r = image_set_signature(&ref, (struct str){ text.p, text.n }, err);
	image_ref_done(&ref);
	if (r == 0)
		cli_print(&text);
	return r;
}

static int act(const struct image_args *a, char **argv, int n, struct err *err)
{
	const char *what = argv[1];
	bool gone;
	int r = 0, code = 0;

	image_sweep(state_dir());
	if (!strcmp(what, "import") && n == 2)
		return import(a, argv[2], err);
	if (!strcmp(what, "list") && n == 1)
		return image_each(state_dir(), print_row, (void *)(uintptr_t)a, err);
	if (!strcmp(what, "show") && n == 2)
		return show(argv[2], a->json, err);
	if (!strcmp(what, "sign") && n == 2)
		return sign(argv[2], err);
	for (int i = 2; r >= 0 && i <= n; i++) {
		r = !strcmp(what, "rm") ? image_remove(state_dir(), argv[i], &gone, err)
					: verify(a, argv[i], err);
		code |= r > 0;
	}
	return r < 0 ? r : code;
}

static bool is_usage(char **argv, int n)
{
	static const struct {
		const char *name;
		int min, max;
	} ACTIONS[] = { { "import", 2, 2 }, { "list", 1, 1 },	    { "show", 2, 2 },
			{ "sign", 2, 2 },   { "rm", 2, INT32_MAX }, { "verify", 2, INT32_MAX } };

	for (size_t i = 0; n >= 1 && i < ARRAY_SIZE(ACTIONS); i++)
		if (!strcmp(argv[1], ACTIONS[i].name))
			return n >= ACTIONS[i].min && n <= ACTIONS[i].max;
	return false;
}

int cmd_image(int argc, char **argv)
{
	struct image_args args = { .max_size = IMAGE_BYTES, .max_files = IMAGE_ENTRIES };
	struct err err = { 0 };
	int n, r;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("image", &err);
	if (args.help) {
		cli_usage("image import FILE|DIR|- | list | show IMAGE | verify IMAGE... | sign "
			  "IMAGE | rm IMAGE...",
			  PURPOSE, OPTIONS);
		return 0;
	}
	if (!is_usage(argv, n)) {
		err_set(&err, EINVAL,
			"expected import FILE|DIR|-, list, or show, verify, sign or rm and an image");
		return cli_bad_usage("image", &err);
	}
	if (!args.max_size || !args.max_files || args.max_size > 1ull << 50) {
		err_set(&err, EINVAL, "option '--max-%s': there must be a limit",
			args.max_files ? "size" : "files");
		return cli_bad_usage("image", &err);
	}
	if (geteuid() != 0) {
		err_set(&err, EPERM, "images are root's (try sudo)");
		return cli_fail(&err);
	}
	r = act(&args, argv, n, &err);
	return r < 0 ? cli_fail(&err) : cli_finish_output(r);
}
