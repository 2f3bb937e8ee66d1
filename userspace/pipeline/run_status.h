/* SPDX-License-Identifier: Apache-2.0 */
/* What runs now, for `warder status`. A session has a directory <run>/sessions/<session>, that of the
 * engine's user, and each part keeps one JSON object in it: <part>.json becomes member <part> of the
 * session in `warder status --json`. Nobody parses what another part wrote but the status command. */
#ifndef WARDER_PIPELINE_RUN_STATUS_H
#define WARDER_PIPELINE_RUN_STATUS_H

#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define RUN_STATUS_PART_MAX (256 * 1024) /* bytes of one part */

/* WARDER_RUN or /run/warder. */
const char *run_dir(void);
/* Make the session's directory. It is locked (flock) as long as *ret_fd or a fork's copy is open: what
 * is not locked is left over. */
int run_status_open(int *ret_fd, const char *session, uid_t uid, gid_t gid, struct err *err);
/* Replace a part, whole or not at all. `dirfd` < 0: nothing to do. */
int run_status_write(int dirfd, const char *part, struct str json);
/* The session has ended: remove its directory. */
void run_status_remove(int dirfd, const char *session);
/* Remove what warders that were killed left. Returns how many. */
int run_status_sweep(void);

#endif
