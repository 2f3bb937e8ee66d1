/* SPDX-License-Identifier: Apache-2.0 */
/* --secret NAME=FILE[,ttl=TIME]: read by us, a file of the sandbox's own, known to redaction. */
#ifndef WARDER_CLI_RUN_SECRET_H
#define WARDER_CLI_RUN_SECRET_H

#include "runtime/sandbox.h"
#include "userspace/base/option.h"
#include "userspace/base/str.h"

struct run_secrets {
	char *value[SANDBOX_SECRETS_MAX]; /* what spec->secrets points to; zeroed by the end */
	size_t n[SANDBOX_SECRETS_MAX];
	char *name[SANDBOX_SECRETS_MAX];
};

/* What this process knows gets into no core file, whoever would write it. */
int secrets_no_core(struct err *err);
/* Is it NAME=FILE[,ttl=TIME]? Looks at no file. */
int secret_check(const char *text, struct err *err);
/* Reads the files into `ret` and the spec. */
int secrets_read(struct run_secrets *ret, struct sandbox_spec *spec, const struct option_list *list,
		 struct err *err);
/* What of it is looked for in the record: without the line ends that editors put behind it. */
struct str secret_text(const struct sandbox_secret *x);
/* The one line of such a file, without its end, from malloc; `name` is for errors. */
int secret_file(const char *name, const char *path, char **ret, struct err *err);
void secrets_forget(struct run_secrets *s);

#endif
