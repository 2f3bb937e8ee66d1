/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that glibc has no wrapper for, or whose wrapper must not be used between clone and
 * exec: glibc's set*id wrappers signal every thread it believes to exist, and a clone3 child of a
 * threaded process inherits that belief. */
#ifndef WARDER_RUNTIME_SYS_H
#define WARDER_RUNTIME_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "userspace/base/openat2.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* 6.3 */
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020 /* 6.3 */
#endif

static inline pid_t sys_clone3(struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_execveat(int fd, const char *path, char *const *argv, char *const *envp,
			       int flags)
{
	return (int)syscall(SYS_execveat, fd, path, argv, envp, flags);
}

static inline int sys_setresuid(uid_t id)
{
	return (int)syscall(SYS_setresuid, id, id, id);
}

static inline int sys_setresgid(gid_t id)
{
	return (int)syscall(SYS_setresgid, id, id, id);
}

static inline int sys_setgroups_none(void)
{
	return (int)syscall(SYS_setgroups, 0, NULL);
}

/* open_tree(CLONE) with mount attributes set on the whole clone. -errno. */
static inline int sys_mount_attr(int fd, unsigned flags, uint64_t set, uint64_t clear)
{
	struct mount_attr attr = { .attr_set = set, .attr_clr = clear };

	return mount_setattr(fd, "", AT_EMPTY_PATH | flags, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

#endif
