/* SPDX-License-Identifier: Apache-2.0 */
/* What runs the payload. A backend is one file with one row in backend.c; cgroups, limits, killing
 * and accounting are common to all and live in sandbox.c. */
#ifndef WARDER_RUNTIME_BACKEND_H
#define WARDER_RUNTIME_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "userspace/base/err.h"

struct sandbox;
struct sandbox_exec;
struct sandbox_limits;
struct sandbox_plan;
struct sandbox_runtime;

struct backend {
	const char *name;
	const char *what; /* one line for a person */
	bool holds;	  /* see sandbox_plan_holds */
	/* Where the payload's root is in that of the process that was begun; "": it is that. */
	const char *root;
	/* See sandbox_plan_mirrors. NULL: they do not. */
	bool (*mirrors)(const struct sandbox_plan *p);
	/* What the control group is limited to, for a payload that is limited to `l`. NULL: the same. */
	struct sandbox_limits (*limits)(const struct sandbox_limits *l);
	/* The cgroup exists and something else may be done before the start: begin what takes long.
	 * May be NULL. */
	void (*prepare)(struct sandbox *s);
	/* See sandbox_begin and sandbox_follow; s->cgroup exists. Killing after a failure is the caller's. */
	int (*begin)(struct sandbox *s, const int stdio[3], struct err *err);
	int (*follow)(struct sandbox *s, int timeout_ms, struct err *err);
	/* See sandbox_dispatch, sandbox_signal. */
	int (*dispatch)(struct sandbox *s);
	int (*signal)(struct sandbox *s, int sig);
	/* See sandbox_exec. NULL: it cannot run further commands. */
	int (*exec)(struct sandbox *s, const struct sandbox_exec *x, struct err *err);
	int (*exec_signal)(struct sandbox *s, uint32_t id, int sig);
	/* See sandbox_plan_keeps and sandbox_checkpoint. NULL: it cannot keep processes. */
	int (*keeps)(const struct sandbox_plan *p, struct sandbox_runtime *ret, struct err *err);
	int (*checkpoint)(struct sandbox *s, int fd, struct err *err);
	int (*go_on)(struct sandbox *s);
	/* The cgroup is empty: reap and release. */
	void (*done)(struct sandbox *s);
};

extern const struct backend backend_ns, backend_gvisor;

/* NULL and an error that lists what exists, when there is none of that name. */
const struct backend *backend_find(const char *name, struct err *err);

#endif
