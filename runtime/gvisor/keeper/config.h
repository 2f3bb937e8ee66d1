/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper is told at its start, in a sealed memfd at INIT_CONFIG_FD, and the places of its small root. The talk
 * with the launcher is that of init (runtime/init/frame.h). */
#ifndef WARDER_RUNTIME_GVISOR_CONFIG_H
#define WARDER_RUNTIME_GVISOR_CONFIG_H

#include <stdint.h>

/* The root of the keeper and of all of gVisor; the sandbox's own root is a tree in it. */
#define GVISOR_RUNSC   "/runsc"
#define GVISOR_TREE    "/tree"
#define GVISOR_BUNDLE  "/bundle"
#define GVISOR_STATE   "/state" /* --root: it goes with the mount namespace, whoever is killed */
#define GVISOR_LOG     "/state/log"
#define GVISOR_PIDFILE "/state/pid"
#define GVISOR_CONSOLE "/state/console"
/* For who gets a terminal; left out for others. */
#define GVISOR_CONSOLE_ARG "--console-socket=" GVISOR_CONSOLE
#define GVISOR_ARGS_MAX	   64 /* of one command line of runsc */

/* Besides INIT_CONTROL_FD and INIT_CONFIG_FD, in the keeper and where it says so in its children. */
#define GVISOR_EXEC_FD	4 /* a child's: process.json of a further command */
#define GVISOR_BEGUN_FD 5 /* a child's: written to when the command runs */

#define GVISOR_CONFIG_MAGIC 0x5743474bu
#define GVISOR_CONFIG_MAX   (8u << 20)

/* Strings: create_n + exec_n of them, NUL-terminated, one behind the other, from strings_off on: the command lines that
 * make the sandbox and run one more command in it. Then the sandbox's id, and the directory that its command starts in. */
struct gvisor_config {
	uint32_t magic;
	uint32_t size;
	uint32_t strings_off;
	uint16_t create_n, exec_n;
	uint16_t tty, tty_rows, tty_cols;
	uint16_t gate;	   /* 1: FRAME_MADE is sent, and FRAME_GO waited for */
	uint16_t loopback; /* 1: the sentry's own network gets one */
	uint16_t restores; /* 1: no command begins; FRAME_GO brings the processes that go on */
};

#endif
