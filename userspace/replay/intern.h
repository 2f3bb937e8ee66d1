/* SPDX-License-Identifier: Apache-2.0 */
/* Strings numbered in the order of their first appearance, each kept once. */
#ifndef WARDER_REPLAY_INTERN_H
#define WARDER_REPLAY_INTERN_H

#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/str.h"

struct intern {
	struct arena arena;
	struct str *v;
	uint32_t n, cap;
	uint32_t *slots; /* number + 1; 0 = free */
	uint32_t slots_n;
};

int intern_init(struct intern *in, size_t max_bytes);
void intern_done(struct intern *in);
/* The number of `s`, new or known. -ENOMEM. */
int intern_add(struct intern *in, struct str s, uint32_t *ret);

#endif
