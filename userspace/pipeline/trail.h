/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of this host's log (store/hostlog.h), signed by the host's key when it has one. */
#ifndef WARDER_PIPELINE_TRAIL_H
#define WARDER_PIPELINE_TRAIL_H

#include "userspace/base/err.h"
#include "userspace/base/str.h"

/* <state>/host.log. `session` may be NULL, `data` empty or a JSON object. Needs root. -errno. */
int trail_add(const char *kind, const char *session, struct str data, struct err *err);
/* A session begins; its bundle lies at `path`. */
int trail_add_start(const char *session, const char *path, struct err *err);
/* A session has ended: what its bundle, open in `bundle_fd`, says of itself. `path`: where it lies. */
int trail_add_session(int bundle_fd, const char *session, const char *path, const char *reason,
		      struct err *err);
/* Somebody reads the record of a session of this host: "events", "report" ... Without the right to write the
 * log nothing is done; any other trouble is a warning. */
void trail_add_access(const char *session, const char *what);
/* The state directory, for hostlog_walk. */
int trail_open(int *ret_fd, struct err *err);

#endif
