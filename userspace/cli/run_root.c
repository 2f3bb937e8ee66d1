// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_root.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/trust.h"
#include "userspace/cli/image_sign.h"
#include "userspace/pipeline/run.h"

#define HOST	      "host"
#define USER_MAX      65535
#define SECCOMP_BYTES (1u << 20)

int root_check(const char *text, struct err *err)
{
	if (!*text)
		return err_set(err, EINVAL,
			       "expected image:NAME, image@sha256:DIGEST, a directory "
			       "or host");
	if (!strncmp(text, "image@", 6) && !image_is_digest(text + 6))
		return err_set(err, EINVAL, "'%.100s': expected image@sha256: and 64 hex digits",
			       text);
	if (!strncmp(text, "image:", 6) && !image_is_digest(text + 6))
		return image_check_name(text + 6, err);
	return 0;
}

static int user_parse(const char *text, uint32_t *uid, uint32_t *gid, struct err *err)
{
	const char *colon = strchr(text, ':');
	char number[8];
	uint64_t u, g;
	size_t n = colon ? (size_t)(colon - text) : strlen(text);

	if (!strcmp(text, "root"))
		text = "0", n = 1, colon = NULL;
	if (n == 0 || n >= sizeof(number))
		return err_set(err, EINVAL, "'%.64s' is not UID or UID:GID", text);
	memcpy(number, text, n);
	number[n] = 0;
	if (parse_u64(number, &u) < 0 || (colon && parse_u64(colon + 1, &g) < 0))
		return err_set(err, EINVAL, "'%.64s' is not UID or UID:GID", text);
	g = colon ? g : u;
	if (u > USER_MAX || g > USER_MAX)
		return err_set(err, EINVAL, "'%.64s': at most %d", text, USER_MAX);
	*uid = (uint32_t)u;
	*gid = (uint32_t)g;
	return 0;
}

int user_check(const char *text, struct err *err)
{
	uint32_t uid, gid;

	return user_parse(text, &uid, &gid, err);
}

static bool holds(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* Our own keys and records are nothing to be looked at, not even by who may read them. */
static int use_dir(struct run_root *r, const char *dir, struct err *err)
{
	auto_free char *state = realpath(state_dir(), NULL);

	if (!realpath(dir, r->path))
		return err_set(err, errno, "option '--root': '%s': %m", dir);
	if (state && (holds(r->path, state) || holds(state, r->path)))
		return err_set(err, EPERM, "option '--root': '%s' holds '%s', or is in it", dir,
			       state);
	return 0;
}

static int use_image(struct run_root *r, const struct root_args *a, struct err *err)
{
	int k = image_find(&r->ref, state_dir(), a->root, err);

	if (k == 0)
		k = image_load(&r->image, &r->ref, err);
	if (k == 0 && a->keys.n)
		k = image_check_signed(&r->ref, &a->keys, NULL, err);
	if (k < 0)
		return k;
	if ((size_t)snprintf(r->path, sizeof(r->path), "%s/images/sha256/%s/rootfs", state_dir(),
			     r->image.digest + 7) >= sizeof(r->path))
		return err_set(err, ENAMETOOLONG, "image '%s': path too long", r->image.digest);
	return 0;
}

/* The image's first: what the operator says takes the place of it. */
static int add_env(struct sandbox_spec *spec, const struct image *im, struct err *err)
{
	if (spec->env_n + im->env_n > SANDBOX_ENV_MAX)
		return err_set(err, E2BIG,
			       "environment: %zu variables of the image and %zu given, "
			       "at most %d",
			       im->env_n, spec->env_n, SANDBOX_ENV_MAX);
	memmove(spec->env + im->env_n, spec->env, spec->env_n * sizeof(*spec->env));
	for (size_t i = 0; i < im->env_n; i++)
		spec->env[i] = im->env[i];
	spec->env_n += im->env_n;
	return 0;
}

static int add_workdir(struct run_root *r, struct sandbox_spec *spec, struct err *err)
{
	size_t n = r->image.workdir.n;

	if (spec->cwd || !n)
		return 0;
	while (n > 1 && r->image.workdir.p[n - 1] == '/')
		n--;
	if (n >= sizeof(r->workdir))
		return err_set(err, ENAMETOOLONG, "WorkingDir of the image: %m");
	memcpy(r->workdir, r->image.workdir.p, n);
	r->workdir[n] = 0;
	spec->cwd = r->workdir;
	return 0;
}

static int add_command(struct run_root *r, struct sandbox_spec *spec, struct err *err)
{
	const struct image *im = &r->image;
	size_t n = 0;

	if (spec->argv && spec->argv[0])
		return 0;
	for (size_t i = 0; i < im->entrypoint_n; i++)
		r->argv[n++] = im->entrypoint[i];
	for (size_t i = 0; i < im->cmd_n; i++)
		r->argv[n++] = im->cmd[i];
	if (!n)
		return err_set(err, EINVAL, "no command given, and the image has none");
	spec->argv = r->argv;
	return 0;
}

static int add_defaults(struct run_root *r, struct sandbox_spec *spec, const struct root_args *a,
			bool wants_command, struct err *err)
{
	const struct image *im = &r->image;
	int k = add_env(spec, im, err);

	if (k == 0)
		k = add_workdir(r, spec, err);
	if (k == 0 && !a->user && im->user.n && !im->has_ids)
		k = err_set(err, EINVAL,
			    "user '%.64s' of the image is not in its /etc/passwd: say --user UID",
			    im->user.p);
	if (k == 0 && im->has_ids) {
		spec->uid = im->uid;
		spec->gid = im->gid;
	}
	return k == 0 && wants_command ? add_command(r, spec, err) : k;
}

int run_root_open(struct run_root *r, struct sandbox_spec *spec, const struct root_args *a,
		  bool wants_command, struct err *err)
{
	int k = 0;

	image_init(&r->image);
	r->is_image = a->root && image_is_reference(a->root);
	if (a->root && !r->is_image && strcmp(a->root, HOST)) {
		if (a->keys.n)
			return err_set(
				err, EPERM,
				"option '--root': '%s' is a directory, and images have to be "
				"signed (image.keys)",
				a->root);
		k = use_dir(r, a->root, err);
		spec->root = r->path;
	}
	if (r->is_image) {
		k = use_image(r, a, err);
		spec->root = r->path;
		spec->image = r->image.digest;
		if (k == 0)
			k = add_defaults(r, spec, a, wants_command, err);
	}
	if (k == 0 && a->seccomp && strcmp(a->seccomp, SECCOMP_DEFAULT)) {
		k = file_read_trusted(a->seccomp, SECCOMP_BYTES, &r->seccomp, &spec->seccomp_n,
				      "seccomp profile", err);
		spec->seccomp = r->seccomp;
		spec->seccomp_name = a->seccomp;
	}
	if (k == 0 && a->user)
		k = user_parse(a->user, &spec->uid, &spec->gid, err);
	return k;
}

void run_root_done(struct run_root *r)
{
	free(r->seccomp);
	image_ref_done(&r->ref);
	image_done(&r->image);
}
