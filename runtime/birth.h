/* SPDX-License-Identifier: Apache-2.0 */
/* How a sandbox comes to life, whatever runs in it: a set-up task in the cgroup and in namespaces of its own becomes a
 * program of ours (init, or the keeper of gVisor), which speaks in frames (init/frame.h). In ns.c. */
#ifndef WARDER_RUNTIME_BIRTH_H
#define WARDER_RUNTIME_BIRTH_H

#include "runtime/init/frame.h"
#include "runtime/sandbox_priv.h"
#include "runtime/setup.h"

struct birth {
	const char *program, *program_end;
	int memfd; /* of it; 0 = not made yet */
	const struct setup_step *steps;
	const char *workspace; /* the sandbox's own, below the root of its program */
	bool has_template;     /* the shared part of its root may come from one */
	/* What the program is told, into t->config. */
	int (*config)(struct sandbox *s, struct setup *t, struct err *err);
	/* Writes the maps of its user namespace. -errno. */
	int (*map)(struct sandbox *s);
	/* A frame of the start that is the backend's own; with `fd` or -1. As sandbox_follow. NULL: there is none. */
	int (*frame)(struct sandbox *s, const struct init_frame *f, int fd, struct err *err);
};

void birth_prepare(struct sandbox *s);
int birth_begin(struct sandbox *s, struct birth *b, const struct gvisor_setup *gvisor,
		const int stdio[3], struct err *err);
int birth_follow(struct sandbox *s, const struct birth *b, int timeout_ms, struct err *err);
int birth_dispatch(struct sandbox *s);
int birth_signal(struct sandbox *s, int sig);
/* `config` says what to run, in the program's own words. */
int birth_exec(struct sandbox *s, const struct sandbox_exec *x, int config, struct err *err);
int birth_exec_signal(struct sandbox *s, uint32_t id, int sig);
int birth_send(struct sandbox *s, uint32_t type, int sig, uint32_t id);
/* A frame that brings a descriptor. */
int birth_send_fd(struct sandbox *s, uint32_t type, int fd);
void birth_done(struct sandbox *s);

#endif
