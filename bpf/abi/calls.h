/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What the rows of calls.def.h are about: the kernel's side and that of a guest's kernel work by the same table. */
#ifndef WARDER_ABI_CALLS_H
#define WARDER_ABI_CALLS_H

#define CALLS_MAX 512 /* numbers of system calls */

enum slot {
	SLOT_NONE,
	SLOT_OPEN,
	SLOT_FILE,
	SLOT_NET,
	SLOT_ESCAPE,
	SLOT_FOREIGN,
	SLOT_EXEC,
	SLOT_LIMIT,
	SLOT_WRITE,
	SLOT_CLOSE,
	SLOT_MMAP,
	SLOT_SEND
};

#endif
