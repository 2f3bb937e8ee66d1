/* SPDX-License-Identifier: Apache-2.0 */
/* Between the people and one sandbox: an unprivileged process that holds the outer ends of what its commands read
 * and write, and speaks with the clients (agent_frame.h). It outlives any client and any agent: who is attached can
 * come and go, what nobody reads is dropped, and is in the record all the same. Clients are passed to it, each with
 * its request, through a datagram socket that only root can reach. */
#ifndef WARDER_PIPELINE_HUB_H
#define WARDER_PIPELINE_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"

#define HUB_CLIENTS_MAX 64
#define HUB_WORDS_MAX	(48 * 1024) /* bytes of a command with its environment */

enum hub_msg_type {
	/* to the keeper, which believes none of it */
	HUB_EXEC = 1, /* words: argv, env, directory */
	HUB_SIGNAL,   /* id 0 = the first command */
	HUB_CLOSED,   /* nobody reads this command's output any more */
	HUB_GONE,     /* whom the first command ran for has gone: end it */
	HUB_CLIENTS,  /* code = how many are there now */
	HUB_SNAPSHOT, /* words: name, bytes it may have, for whom; code 1: with what runs */
	/* to the hub */
	HUB_OPENED, /* three of them, each with a descriptor: code 0 = stdin, 1 = stdout, 2 = stderr; tty: only 0, 1 */
	HUB_STARTED,
	HUB_FAILED,   /* code = exit code, signal = errno or 0, words = why */
	HUB_LINE,     /* words: JSON, for who asked; HUB_DONE follows */
	HUB_DONE,     /* code, signal */
	HUB_FINISHED, /* the sandbox has ended: code; words = its result */
};

struct hub_msg {
	uint32_t type, id;
	int32_t code, signal;
	uint16_t rows, cols;
	uint32_t tty, argc, envc;
	uint32_t n; /* bytes of words */
	char words[HUB_WORDS_MAX];
};
#define HUB_MSG_HEAD ((size_t) __builtin_offsetof(struct hub_msg, words))

struct hub_options {
	int listen; /* the datagram socket */
	int in, out,
		err; /* outer ends of the first command's; tty: in is out is the master; -1 = none */
	bool tty;
	int client;	 /* whom the first command runs for; -1 = nobody */
	bool let_go;	 /* and it only waits for the start */
	bool attachable; /* there is a first command */
	uid_t uid;
	gid_t gid;
};

/* Forks it. *ret_fd is the keeper's end. The options' descriptors are the child's from here on. */
int hub_start(pid_t *ret_pid, int *ret_fd, const struct hub_options *opt, struct err *err);
int hub_send(int fd, const struct hub_msg *m, int pass_fd);
/* 1; 0: there is none; -EPIPE: the other side has gone. *ret_fd: -1 or what came with it. What is none of ours has
 * type 0. */
int hub_recv(int fd, struct hub_msg *m, int *ret_fd);

/* The child's part, for tests: until the keeper has gone or the sandbox has ended. */
void hub_run(const struct hub_options *opt, int keeper);

#endif
