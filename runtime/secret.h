/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets: files below SECRET_DIR on a file system of their own, that the payload can read and nothing else. The
 * launcher keeps them open, so that it can take them away while the sandbox runs. */
#ifndef WARDER_RUNTIME_SECRET_H
#define WARDER_RUNTIME_SECRET_H

#include <stdint.h>

#include "runtime/sandbox.h"

struct sandbox_plan;

struct secrets {
	int mount; /* until it is hung into the sandbox; -1 */
	int dir;   /* -1 */
	int file[SANDBOX_SECRETS_MAX];
	uint64_t end[SANDBOX_SECRETS_MAX]; /* CLOCK_MONOTONIC; 0 = not begun, or it stays */
	size_t size[SANDBOX_SECRETS_MAX];
	const struct sandbox_plan *plan;
};

/* Checks the spec's and adds the step that shows them. */
int plan_secrets(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err);

void secrets_init(struct secrets *s);
/* The file system with all of the plan's in it, readable by `host_id` alone. */
int secrets_make(struct secrets *s, const struct sandbox_plan *p, uint32_t host_id,
		 struct err *err);
/* Zeroes and removes those whose time is over, and tells of each (`tell` may be NULL). Their time begins with the first
 * call. When the next one's is over; 0 = never. */
uint64_t secrets_expire(struct secrets *s, uint64_t now, sandbox_secret_fn *tell, void *arg);
/* Zeroes and removes what is left, and lets go. */
void secrets_done(struct secrets *s);

#endif
