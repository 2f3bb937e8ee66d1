/* SPDX-License-Identifier: Apache-2.0 */
/* The payload's system call filter, made with libseccomp and kept for the life of the process. */
#ifndef WARDER_RUNTIME_SECCOMP_H
#define WARDER_RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <stddef.h>

#include "userspace/base/err.h"

struct sandbox_plan;

/* The filter for this plan. Not the caller's to free. */
int seccomp_get(const struct sandbox_plan *p, const struct sock_filter **ret, size_t *ret_n,
		struct err *err);
/* "default", or "default+nosuid" where host directories are writable. */
const char *seccomp_profile_name(const struct sandbox_plan *p);

#endif
