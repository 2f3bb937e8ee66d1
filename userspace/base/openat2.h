/* SPDX-License-Identifier: Apache-2.0 */
/* openat2(2), for which glibc has no wrapper. */
#ifndef WARDER_BASE_OPENAT2_H
#define WARDER_BASE_OPENAT2_H

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* O_CLOEXEC in any case; -1 with errno. */
static inline int sys_openat2(int dirfd, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = resolve };

	return (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
}

/* No way out of `dirfd`: by no link, of any kind. */
#define RESOLVE_INSIDE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

#endif
