/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a sandbox as one pax archive (POSIX.1-2001) in a zstd frame (RFC 8878), which `tar --zstd` reads too:
 * each path below the name of its place ("workspace/a", "tmp/b"). Directories, files with their holes, symbolic and
 * hard links and FIFOs, with permission bits and times; no owners (all belongs to the payload), setuid bits,
 * extended attributes, sockets or devices.
 *
 * Both ways a hostile tree or file is handled: each in a process of its own, without privileges. */
#ifndef WARDER_WORKSPACE_ARCHIVE_H
#define WARDER_WORKSPACE_ARCHIVE_H

#include "userspace/workspace/workspace.h"

#define ARCHIVE_FILES_MAX   200000
#define ARCHIVE_BYTES_MAX   (4ull << 30) /* of data, both as it lies in the places and compressed */
#define ARCHIVE_LOGICAL_MAX (64ull << 30) /* of the files' sizes, holes with them */
#define ARCHIVE_DEPTH_MAX   128

struct archive_facts {
	uint64_t files, bytes; /* entries; data in them */
	uint64_t stored;       /* bytes of the archive */
	uint8_t sha256[32];    /* of the archive */
};

/* Nothing may change meanwhile. `max`: bytes of the archive, and of the data. -EFBIG, -E2BIG: more than the limits
 * above; nothing is left out silently, but for what the archive cannot hold. */
int archive_pack(struct archive_facts *ret, const struct workspace_place *places, size_t n,
		 uint64_t max, int out_fd, struct err *err);

/* Into places that are empty; what is made belongs to the caller. -EBADMSG: it is none of ours, or not the one whose
 * SHA-256 that is; then what was made so far is not to be used. */
int archive_unpack(struct archive_facts *ret, const struct workspace_place *places, size_t n,
		   const uint8_t sha256[32], int in_fd, struct err *err);

#endif
