/* SPDX-License-Identifier: Apache-2.0 */
/* Process 1 of a sandbox under gVisor, seen from the host: it runs runsc, asks the sentry what it must, and speaks with
 * the launcher as init does. It has root in a user namespace that owns nothing but this sandbox, a root directory with
 * nothing else in it, and ends with its launcher; all of gVisor ends with it. Static, without a C library, like init. */
#ifndef WARDER_RUNTIME_GVISOR_KEEPER_H
#define WARDER_RUNTIME_GVISOR_KEEPER_H

#include <linux/time_types.h>

#include "runtime/gvisor/keeper/config.h"
#include "runtime/init/frame.h"
#include "runtime/init/process1.h"
#include "runtime/init/sys.h"

#define TEXT_MAX  65536 /* of a file or an answer that is read */
#define ANSWER_MS 20000 /* what the start waits for; the launcher waits no longer */
#define SIGNAL_MS 1000
#define MANAGER	  "containerManager."

struct words {
	const struct gvisor_config *head;
	char *const *create, *const *exec;
	const char *id, *cwd;
};

/* keeper.c */
int text_find(const char *text, size_t n, const char *word, size_t *ret_after);

/* runsc.c: run it */
/* Starts `argv` with these descriptors at 0 to 2 and, where not -1, at GVISOR_EXEC_FD and GVISOR_BEGUN_FD. */
long runsc_spawn(char *const *argv, const int *stdio, int process, int begun);
/* The errno that runsc's last error speaks of, EIO when it is none of those that a command can cause; its text. */
int runsc_error(const char *text, size_t n);
/* Copies the last message of runsc's log, what a person can read of it. */
size_t runsc_last_words(char *to, size_t max);
/* A whole small file; -errno or the count, NUL behind it. */
long file_text(const char *path, char *to, size_t max);

/* sentry.c: ask the sentry, by the socket that runsc itself uses (gVisor: pkg/urpc, runsc/boot/controller.go) */
struct sentry {
	char name[128]; /* sun_path */
	size_t name_n;
};
int sentry_find(struct sentry *s, const char *id);
/* A connection, or -errno. Whoever answers it may be in the hands of the guest. */
int sentry_dial(const struct sentry *s);
/* Sends a call, with a descriptor where it is not -1. `arg` is JSON. */
int sentry_ask(int fd, const char *method, const char *arg, int pass);
/* One answer into `to`: the count, 0 when the sentry is gone, -errno; -EAGAIN after timeout_ms. */
long sentry_answer(int fd, char *to, size_t max, int timeout_ms);
/* 0 and what is behind "result":, or -EPROTO when the call failed. */
int sentry_result(const char *text, size_t n, size_t *ret_at);
/* Copies one answer to a file, whatever its size: the count, -EMSGSIZE beyond `max`, -EPROTO when the call failed. */
long sentry_copy(int fd, int to, size_t max, int timeout_ms);
/* To a process of the guest, 0 being the first one; all: to each one that there is. */
void sentry_signal(const struct sentry *s, const char *id, long pid, int sig, int all);

/* checkpoint.c: processes that are written down, and go on */

/* All of them stop, and begin to be written to `to`. Returns a connection with the answer to come, or -errno. */
int checkpoint_begin(const struct sentry *s, const char *id, int to);
/* It has come. 0 or -errno, and why. */
long checkpoint_end(int fd, char *why, size_t max);
void checkpoint_go_on(const struct sentry *s, const char *id);
/* They are there again, and stand still. 0 or -errno, and why. */
long checkpoint_restore(const struct sentry *s, int from, char *why, size_t max);
/* What they are, as the sentry tells it, in a memfd; or -errno. */
int checkpoint_processes(const struct sentry *s);

#endif
