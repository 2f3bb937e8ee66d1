/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's terminal and the payload's, for `run --tty`: what is typed goes to the pty's master, the size
 * follows. What the payload writes is the relay's business. Its own thread: a payload that reads nothing stops
 * only what is typed. Nothing typed is looked at, but for what would interrupt a payload that cannot hear it. */
#ifndef WARDER_PIPELINE_CONSOLE_H
#define WARDER_PIPELINE_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"

#define CONSOLE_QUEUE_MAX \
	(1 << 20) /* typed and not yet taken by the pty; beyond, the terminal has to wait */

struct console_options {
	int in;		   /* the operator's terminal */
	int master;	   /* the payload's; non-blocking, borrowed */
	int copy;	   /* socket of the recorder; -1 = none; duplicated */
	bool record_input; /* what is typed while the payload's terminal echoes goes there, too */
};

struct console;

/* From here on the operator's terminal is raw. The first size is recorded before anything else can be. */
int console_start(struct console **ret, const struct console_options *opt, struct err *err);
/* Readable when console_event has something to say. */
int console_fd(const struct console *c);

enum console_event {
	CONSOLE_NOTHING,
	CONSOLE_INTERRUPT, /* the sandbox stands still, and its operator wants it to end */
	CONSOLE_GONE,	   /* the terminal was closed */
};
enum console_event console_event(struct console *c);

/* The operator's terminal has another size. */
void console_resize(struct console *c);
/* Nobody in the sandbox can hear a ^C. */
void console_frozen(struct console *c, bool frozen);
/* No process of the sandbox is left: nothing more is passed on, and the pty's output gets its end. */
void console_stop(struct console *c);
/* The operator's terminal is as it was; `killed`: as it is before a program used it, as far as we can. */
void console_free(struct console *c, bool killed);

#endif
