/* SPDX-License-Identifier: Apache-2.0 */
/* One thing that the kernel is to decide by itself. Made of rules by rules/push.c, put into the kernel's
 * maps by userspace/capture/enforce.c. */
#ifndef WARDER_EVENT_ENFORCE_ENTRY_H
#define WARDER_EVENT_ENFORCE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/abi/maps.h"
#include "bpf/abi/wire.h"

/* Kinds that an entry covers when it names none. */
#define ENFORCE_FILE_KINDS                                                 \
	(ENFORCE_KIND(WIRE_FILE_OPEN) | ENFORCE_KIND(WIRE_FILE_WRITE) |    \
	 ENFORCE_KIND(WIRE_FILE_RENAME) | ENFORCE_KIND(WIRE_FILE_DELETE) | \
	 ENFORCE_KIND(WIRE_FILE_LINK) | ENFORCE_KIND(WIRE_FILE_ATTR) |     \
	 ENFORCE_KIND(WIRE_FILE_MKDIR))
#define ENFORCE_NET_KINDS (ENFORCE_KIND(WIRE_NET_CONNECT) | ENFORCE_KIND(WIRE_NET_SEND))

struct enforce_entry {
	uint16_t id;	  /* the caller's, not 0: wire_hdr.enforced of what it decided */
	uint16_t verdict; /* enum enforce_verdict */
	uint16_t by;	  /* enum enforce_by: which member below counts */
	uint16_t class
		; /* 0: for all programs, or where names make classes, for those that are not known;
			     else for the class that names (ENFORCE_BY_NAME) make, which has no others */
	uint64_t
		kinds; /* ENFORCE_KIND bits. 0: paths all of files, executables exec, addresses connect
			  * and send; by kind it must be given */
	uint32_t escape; /* enum wire_escape_type */
	/* BY_NAME: the class of programs that were run by such a path, the longest decides; all paths have one. */
	struct {
		const char *path; /* absolute, as the sandbox sees it; with all that is below it */
		bool exact;	  /* only itself */
		bool bytes; /* as a plain prefix of bytes: "/etc/pass" covers /etc/passwd, "" all */
		bool cut;   /* decides for paths that were cut, too: their head is not known */
	} path;
	struct {
		uint32_t dev; /* kernel's: major << 20 | minor; 0 = any */
		uint64_t ino;
	} exe; /* WIRE_EXEC: that is to run; other kinds: that acts */
	struct {
		uint16_t family;	     /* AF_INET or AF_INET6; v4-mapped addresses are IPv4 */
		uint8_t bits;		     /* of the network */
		uint8_t ip[16];		     /* network order */
		uint16_t port_from, port_to; /* 0, 0 = all */
	} addr;
};

#endif
