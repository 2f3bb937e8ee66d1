// SPDX-License-Identifier: Apache-2.0
/* What the kernel's side can do, as bpf/enforce.bpf.c, prevent.bpf.c and the hooks at the end of calls do
 * it. Change both together. */
#include "rules/push.h"

#define K(kind)	    ENFORCE_KIND(WIRE_##kind)
#define E(type)	    (1ull << WIRE_ESCAPE_##type)
#define FILE_NAMES  (K(FILE_OPEN) | K(FILE_RENAME) | K(FILE_DELETE) | K(FILE_LINK) | K(FILE_MKDIR))
#define FILE_OTHERS (K(FILE_WRITE) | K(FILE_MKNOD) | K(FILE_MMAP))
#define NET	    (K(NET_CONNECT) | K(NET_SEND))
#define KILLED	    (FILE_NAMES | K(FILE_ATTR) | FILE_OTHERS | K(EXEC) | NET)

/* Nodes of devices by the device program of the cgroup. Of the others: raw sockets of the internet
 * families, disks and memory by their numbers, what lies below /proc/sys. */
#define DENY_ESCAPES E(MKNOD)
#define DENY_SOME    (E(SOCKET_FAMILY) | E(DEVICE) | E(KERNEL_FILE))

const struct push_means *push_means(bool full)
{
	static const struct push_means means[] = {
		{ "portable", KILLED, NET, DENY_ESCAPES, DENY_SOME },
		{ "full", KILLED, NET | FILE_NAMES | K(FILE_ATTR) | K(FILE_MMAP) | K(EXEC),
		  DENY_ESCAPES | E(SOCKET_FAMILY), DENY_SOME & ~E(SOCKET_FAMILY) },
	};

	return &means[full];
}
