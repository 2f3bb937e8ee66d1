/* SPDX-License-Identifier: Apache-2.0 */
/* The payload's system call filter, made with libseccomp and kept for the life of the process. */
#ifndef WARDER_RUNTIME_SECCOMP_H
#define WARDER_RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include "userspace/base/err.h"

struct sandbox_plan;

/* Which of the calls that are never legitimate are told to a listener (seccomp_unotify(2)) while they wait for their
 * answer, the same error. The others the filter answers itself: the kernel's hooks see them, with the strings they
 * point to, and can kill before the call is over. */
enum seccomp_notify {
	SECCOMP_NOTIFY_NONE,  /* the kernel has no such thing */
	SECCOMP_NOTIFY_BLIND, /* those that no hook looks at */
	SECCOMP_NOTIFY_CALLS, /* the hooks do not see which of these a filter refuses; of sockets they do */
	SECCOMP_NOTIFY_ALL, /* nor of those */
	SECCOMP_NOTIFY_COUNT
};

#define SECCOMP_PROFILES_MAX 64 /* of the operator's, in the life of a process */

/* The number of a call on this machine; negative: there is none. */
int seccomp_call(const char *name);
/* Calls that are denied whatever their arguments: is it one, and each of them; NULL behind the last. */
bool seccomp_is_denied(const char *name);
const char *seccomp_denied(size_t i);
/* What is denied by an argument, as "ioctl(TIOCSTI)", and from which on it is notified; NULL behind the last. */
const char *seccomp_by_argument(size_t i, enum seccomp_notify *ret_from);
/* Of those that are always denied, is it notified; and all that are, with those by an argument. */
bool seccomp_is_notified(const char *name, enum seccomp_notify how);
void seccomp_notified_each(enum seccomp_notify how, void (*fn)(void *arg, const char *name),
			   void *arg);
/* A libseccomp filter as a program, with `room` for as many instructions in front. *ret is the caller's to free. */
int seccomp_export(void *ctx, size_t room, struct sock_filter **ret, size_t *ret_n);

/* The filter for this plan. Not the caller's to free. */
int seccomp_get(const struct sandbox_plan *p, enum seccomp_notify how,
		const struct sock_filter **ret, size_t *ret_n, struct err *err);
/* "default", "default+nosuid" where host directories are writable; "profile+..." with one of the operator's in front. */
const char *seccomp_profile_name(const struct sandbox_plan *p);

#endif
