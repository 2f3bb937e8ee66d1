/* SPDX-License-Identifier: Apache-2.0 */
/* --root, --user and --seccomp of a run: where the files come from, and what an image says where the command line says nothing. */
#ifndef WARDER_CLI_RUN_ROOT_H
#define WARDER_CLI_RUN_ROOT_H

#include "runtime/sandbox.h"
#include "userspace/base/option.h"
#include "userspace/image/image.h"

struct root_args {
	const char *root, *user, *seccomp;
	struct option_list keys;
};

struct run_root {
	struct image_ref ref;
	struct image image;
	bool is_image;
	char *seccomp; /* text of the profile */
	char path[4096];
	char workdir[4096];
	char *argv[2 * IMAGE_WORDS_MAX + 1];
};
#define SECCOMP_DEFAULT "default" /* no file: warder's own filter only */
#define RUN_ROOT_INIT                 \
	{                             \
		.ref = IMAGE_REF_INIT \
	}

int root_check(const char *text, struct err *err);
int user_check(const char *text, struct err *err);

/* Into the spec. With an image: its lock is held until run_root_done; its Env, WorkingDir and User are taken where the spec
 * and the options have none, and with `wants_command` its Entrypoint and Cmd where spec->argv is empty. */
int run_root_open(struct run_root *r, struct sandbox_spec *spec, const struct root_args *a,
		  bool wants_command, struct err *err);
void run_root_done(struct run_root *r);

#endif
