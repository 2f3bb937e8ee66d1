/* SPDX-License-Identifier: Apache-2.0 */
/* The block that init finds in a sealed memfd: what to run, and how (init/frame.h). */
#ifndef WARDER_RUNTIME_INIT_CONFIG_H
#define WARDER_RUNTIME_INIT_CONFIG_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/init/frame.h"
#include "userspace/base/err.h"

struct init_words {
	char *const *argv;
	size_t argc;
	char *const *env;
	size_t env_n;
	const char *cwd;
	const struct sock_filter *filter;
	size_t filter_n;
	enum init_notify notify; /* with `filter` */
	bool tty, serve;
	uint16_t rows, cols;
};

int init_config_memfd(const struct init_words *w, int *ret_fd, struct err *err);

#endif
