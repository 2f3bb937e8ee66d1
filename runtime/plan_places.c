// SPDX-License-Identifier: Apache-2.0
/* Which part of the host a path inside the sandbox is. */
#include "runtime/plan.h"

size_t sandbox_plan_places(const struct sandbox_plan *p, struct sandbox_place *rows, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < p->root_n && n < max; i++) {
		const struct root_op *op = &p->root[i];

		if (op->kind == ROOT_DIR ||
		    op->kind == ROOT_LINK) /* of the root, which is private */
			continue;
		rows[n++] = (struct sandbox_place){
			.inside = op->target,
			/* A root's files may have been written anew in its upper layer. */
			.host = op->kind == ROOT_BIND ? op->source : NULL,
			.is_shared = op->kind == ROOT_BIND && op->foreign && op->writable,
		};
	}
	return n;
}
