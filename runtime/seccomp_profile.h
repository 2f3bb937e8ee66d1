/* SPDX-License-Identifier: Apache-2.0 */
/* A system call filter of the operator's, as OCI's runtime-spec (linux.seccomp) and Docker write them. It can only take
 * more away: what warder's own filter denies stays denied. */
#ifndef WARDER_RUNTIME_SECCOMP_PROFILE_H
#define WARDER_RUNTIME_SECCOMP_PROFILE_H

#include <linux/filter.h>
#include <seccomp.h>
#include <stdint.h>

#include "userspace/base/arena.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define SECCOMP_PROFILE_BYTES (1u << 20)
#define SECCOMP_RULES_MAX     8192
#define SECCOMP_ARGS_MAX      6

struct seccomp_rule {
	const char *call;
	uint32_t action; /* as libseccomp has it */
	unsigned n;
	struct scmp_arg_cmp args[SECCOMP_ARGS_MAX]; /* all must hold */
};

struct seccomp_profile {
	char sha256[65]; /* of its text */
	uint32_t action; /* for what has no rule */
	struct seccomp_rule *rules;
	size_t n, left_out; /* rules for other machines, older kernels, or who has a capability */
	size_t unknown;	    /* names that no system call of this machine has */
};

/* `kernel`: "6.1.0-..." of uname, for minKernel. -EBADMSG with "name:line:col: message". Everything is in `mem`. */
int seccomp_profile_parse(struct seccomp_profile *ret, struct arena *mem, const char *name,
			  struct str text, const char *kernel, struct err *err);
/* In front of `own`, which has the say about what the profile allows. *ret is the caller's to free. */
int seccomp_profile_compile(const struct seccomp_profile *p, const struct sock_filter *own,
			    size_t own_n, struct sock_filter **ret, size_t *ret_n, struct err *err);

#endif
