/* SPDX-License-Identifier: Apache-2.0 */
/* The socket by which an operator speaks to a running session: <run>/sessions/<session>/control.sock. Made by
 * the root part, in a directory that only the engine's user may enter; served by the engine, which has no
 * privilege, so what comes in can at most do what the engine may. One request and one answer a connection. */
#ifndef WARDER_PIPELINE_CONTROL_H
#define WARDER_PIPELINE_CONTROL_H

#include <poll.h>
#include <sys/types.h>
#include "userspace/base/err.h"

#define CONTROL_SOCKET	"control.sock"
#define CONTROL_CLIENTS 4 /* at a time; more wait */
#define CONTROL_TEXT	256

/* A request is a word and maybe an argument: "approve 0T3K9XQZ-2", "thaw". */
struct control_answer {
	int32_t result; /* 0 or -errno */
	char text[CONTROL_TEXT];
};

struct control {
	int listen_fd;
	int client[CONTROL_CLIENTS];
	uid_t uid; /* besides root, who may ask */
};

/* Root part. `dirfd`: the session's directory. */
int control_listen(int *ret_fd, int dirfd, uid_t uid, gid_t gid, struct err *err);

void control_init(struct control *c, int listen_fd, uid_t uid);
void control_done(struct control *c);
#define CONTROL_FDS (1 + CONTROL_CLIENTS)
void control_poll(const struct control *c, struct pollfd *ret);
/* `who` names the peer as the kernel knows it ("uid 0, login uid 1000, pid 7"). */
typedef void (*control_fn)(void *arg, const char *word, const char *argument, const char *who,
			   struct control_answer *ret);
void control_serve(struct control *c, const struct pollfd *fds, control_fn fn, void *arg);

/* Command: ask the session in `dirfd`. -ECONNREFUSED, -ENOENT: nobody is there. */
int control_ask(int dirfd, const char *request, struct control_answer *ret);

#endif
