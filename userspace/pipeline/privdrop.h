/* SPDX-License-Identifier: Apache-2.0 */
/* The engine decodes, judges and exports hostile bytes: it does so without privilege. */
#ifndef WARDER_PIPELINE_PRIVDROP_H
#define WARDER_PIPELINE_PRIVDROP_H

#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"

/* User that owns bundles and runs the engine: "warder" when that account exists, else a fixed id that
 * no distribution hands out, so that no other service shares it. */
void engine_ids(uid_t *ret_uid, gid_t *ret_gid);

/* Become that user: no groups, no capabilities, no way back, no core dumps, not traceable. */
int privdrop(uid_t uid, gid_t gid, struct err *err);
/* The same, but these capabilities (bits, below 32) stay. */
int privdrop_keep(uid_t uid, gid_t gid, uint32_t kept, struct err *err);

#endif
