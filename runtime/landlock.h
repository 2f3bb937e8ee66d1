/* SPDX-License-Identifier: Apache-2.0 */
/* Landlock (kernel: Documentation/userspace-api/landlock.rst). The layer that stays if a mount is
 * wrong. Numbers are written out, since headers older than the running kernel are the normal case. */
#ifndef WARDER_RUNTIME_LANDLOCK_H
#define WARDER_RUNTIME_LANDLOCK_H

#include <stdint.h>

/* ABI of the running kernel; 0 = absent or switched off. */
int landlock_abi(void);

enum landlock_access {
	LANDLOCK_READ,	/* and execute */
	LANDLOCK_LOOK,	/* read only */
	LANDLOCK_WRITE, /* read, execute, make and remove, but no device nodes */
};

/* A set of rules by which nothing of the file system may be opened, no process outside be signalled or traced, and no
 * abstract socket outside be spoken to: its descriptor. */
int landlock_begin(int abi);
/* With what is below it. Of what is no directory, as much as makes sense there. */
int landlock_allow_fd(int set, int abi, int fd, enum landlock_access what);
int landlock_allow(int set, int abi, const char *path, enum landlock_access what);
/* In force, for this thread and its children. NO_NEW_PRIVS is on, or there is CAP_SYS_ADMIN. */
int landlock_end(int set);

#endif
