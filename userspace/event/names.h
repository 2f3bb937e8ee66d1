/* SPDX-License-Identifier: Apache-2.0 */
/* Names of kernel numbers. Every returned string is static; NULL when a number has no name. */
#ifndef WARDER_EVENT_NAMES_H
#define WARDER_EVENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/arena.h"
#include "userspace/base/str.h"

/* System call by number in the build architecture's 64-bit table: probes translate others to it. */
const char *name_syscall(uint16_t nr);
/* "ENOENT"; also the kernel's internal restart codes. */
const char *name_errno(int err);
/* "SIGKILL", "SIGRTMIN+3". */
const char *name_signal(uint32_t sig);
/* "inet", "unix": address family without AF_. */
const char *name_family(uint32_t family);
const char *name_ptrace(uint64_t request);
const char *name_bpf_cmd(uint64_t cmd);
const char *name_keyctl(uint64_t op);

struct flag_name {
	uint64_t mask; /* the flag is on when all bits of it are; taken out before later rows */
	const char *name;
};

extern const struct flag_name clone_flag_names[]; /* namespaces only */
extern const struct flag_name mount_flag_names[];
extern const struct flag_name open_flag_names[]; /* without the access mode */
extern const struct flag_name personality_flag_names[];

/* "A|B|0x40": unnamed bits in hex, "0" for none. p == NULL when the arena is full. */
struct str flags_text(struct arena *a, const struct flag_name *names, uint64_t flags);
/* The names that are on, at most `max`; returns how many. Unnamed bits are left out. */
size_t flags_list(const struct flag_name *names, uint64_t flags, struct str *ret, size_t max);

#endif
