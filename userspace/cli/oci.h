/* SPDX-License-Identifier: Apache-2.0 */
/* `warder oci`, in pieces: a sandbox as an OCI runtime's container (runtime-spec, runtime.md; runc's command line). What
 * is known of a container lies in <root>/<id>, root's alone, locked as long as its keeper lives; the keeper is a
 * `warder run` of its own, whose exit code is the container's. */
#ifndef WARDER_CLI_OCI_H
#define WARDER_CLI_OCI_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/base/option.h"
#include "userspace/base/str.h"
#include "userspace/base/ulid.h"
#include "userspace/oci/config.h"

#define OCI_TEXT 1024 /* of an answer by the door */

struct oci_args {
	/* before the command */
	const char *root, *log, *log_format;
	bool systemd_cgroup, debug, version;
	/* behind it */
	const char *bundle, *pid_file, *console_socket, *process, *format, *cwd, *user, *resources;
	struct option_list env;
	uint64_t preserve_fds;
	bool no_pivot, no_new_keyring, force, all, detach, tty, help;
};

/* ---- oci_log.c: to --log, as text or JSON, and errors to stderr too ---- */

void oci_log_set(const struct oci_args *a);
void oci_say(const char *level, const char *text);
/* Says the error; returns an exit code. */
int oci_fail(const struct err *err);

/* ---- oci_state.c ---- */

enum oci_status { OCI_CREATING, OCI_CREATED, OCI_RUNNING, OCI_PAUSED, OCI_STOPPED };
extern const char *const oci_status_names[];

struct oci_state {
	int dir;
	char *text; /* as it was written: JSON */
	size_t n;
	char session[ULID_LEN + 1];
	pid_t keeper; /* 0: there is none yet */
	uint64_t uid, gid;
	enum oci_status status;
};

/* A new one's directory; -EEXIST. It lives from here on, as long as the lock or a copy is open. */
int oci_state_make(int *ret_dir, int *ret_lock, const char *root, const char *id, struct err *err);
/* With `keeper` 0: what is known before there is one. */
int oci_state_write(int dir, const char *id, const char *session, const char *bundle,
		    const struct oci_config *c, pid_t keeper, struct err *err);
/* All is there but the payload; the payload runs, too. */
void oci_state_created(int dir);
void oci_state_started(int dir);
/* -ENOENT; -EAGAIN: it is just being made. The caller calls oci_state_done. */
int oci_state_open(struct oci_state *ret, const char *root, const char *id, struct err *err);
void oci_state_done(struct oci_state *s);
bool oci_state_lives(const struct oci_state *s);
/* False: it still lives after so long. */
bool oci_state_wait(const struct oci_state *s, int timeout_ms);
/* What lies in `dir`, and the directory of that name when it is empty then: it may be another one's by now. */
void oci_state_remove(const char *root, const char *id, int dir);
/* What a session leaves whose keeper was killed. */
void oci_sweep(const char *session);
/* A file of the sandbox's control group. */
int oci_cgroup_file(const char *session, const char *file, char **ret_text);
/* The last error in its log; empty. */
void oci_state_error(int dir, char ret[OCI_TEXT]);

/* ---- oci_door.c: from a command to the keeper ---- */

int oci_door_listen(int *ret_fd, int dir);
/* Its answer: 0, or what it says went wrong. */
int oci_door_ask(int dir, const char *request, struct err *err);
void oci_door_answer(int fd, int code, const char *text);
/* One that knocks: its request in `ret`; -1: nobody. */
int oci_door_accept(int listen, char ret[OCI_TEXT]);

/* ---- oci_keep.c, oci_exec.c ---- */

int oci_create(const struct oci_args *a, const char *root, const char *id);
int oci_exec(const struct oci_args *a, const char *root, const char *id, char **command);
/* A terminal of the host's own, whose master goes to the console socket: ours are 0 and 1. */
int oci_console(const char *path, uint16_t rows, uint16_t cols, struct err *err);
int oci_write_pid(const char *path, pid_t pid, struct err *err);
int oci_read_file(const char *path, char **ret_text, size_t *ret_n, struct err *err);

#endif
