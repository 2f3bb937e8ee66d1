/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of the processes that read hostile bytes: a list of what each kind of them makes. What is none of it
 * fails with EPERM; what none of them ever makes, whoever wrote the program, ends the process (SIGSYS), and who waits
 * for it tells. */
#ifndef WARDER_PIPELINE_CONFINE_CALLS_H
#define WARDER_PIPELINE_CONFINE_CALLS_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/err.h"

/* What a process does besides reading and writing what it has open. */
#define CONFINE_LOOK   (1u << 0) /* opens files, lists directories */
#define CONFINE_KEEP   (1u << 1) /* makes, renames, removes files */
#define CONFINE_TALK   (1u << 2) /* sockets that it was given, or pairs of its own */
#define CONFINE_DIAL   (1u << 3) /* sockets of its own: internet and unix */
#define CONFINE_THREAD (1u << 4)
#define CONFINE_ANSWER (1u << 5) /* the calls that a payload's filter asks about */
#define CONFINE_TTY    (1u << 6) /* the size of a terminal */

#define CONFINE_CALLS_MAX 1024 /* instructions */

/* For all threads, for good. No privilege may be left: PR_SET_NO_NEW_PRIVS is on. */
int confine_calls(uint32_t groups, struct err *err);
/* The program of it: how many instructions; -E2BIG. For tests, too. */
int confine_calls_program(uint32_t groups, uint32_t own_tgid,
			  struct sock_filter ret[CONFINE_CALLS_MAX]);
/* How a process that has ended came to its end, when it was by the list: in words; else NULL. */
const char *confine_calls_death(int wait_status);

#endif
