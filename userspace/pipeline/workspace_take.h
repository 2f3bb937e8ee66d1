/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's side: what was found becomes records, kept texts become files of the bundle. */
#ifndef WARDER_PIPELINE_WORKSPACE_TAKE_H
#define WARDER_PIPELINE_WORKSPACE_TAKE_H

#include "userspace/pipeline/pipeline.h"

#define WORKSPACE_BLOBS_MAX (32ull << 20) /* bytes of texts that a bundle keeps */

struct redact;

struct workspace_texts {
	struct redact *redact; /* NULL = they are kept with their secrets */
	int bundle_fd;
	uint64_t bytes; /* kept so far */
};

/* Takes the descriptor. Half of what was found is taken when the rest cannot be read: then no scan ends it. */
void workspace_take(struct workspace_texts *t, struct pipeline *p, uint32_t sandbox_id,
		    int items_fd);

#endif
