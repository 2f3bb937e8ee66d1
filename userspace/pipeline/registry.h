/* SPDX-License-Identifier: Apache-2.0 */
/* The sandboxes that keepers hold for an agent: a directory <run>/keepers/<session> each, root's alone, locked as long
 * as its keeper lives. This is all that an agent knows: one that starts again finds what its predecessor left. */
#ifndef WARDER_PIPELINE_REGISTRY_H
#define WARDER_PIPELINE_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"
#include "userspace/base/ulid.h"

#define REGISTRY_MAX  4096 /* sandboxes of one host */
#define REGISTRY_NAME 64
#define REGISTRY_META 2048
#define REGISTRY_HUB  "hub"

/* What quotas and lookups need. */
struct registry_entry {
	char session[ULID_LEN + 1];
	char name[REGISTRY_NAME], tenant[REGISTRY_NAME], workspace[REGISTRY_NAME];
	uint64_t memory, pids, cpu_milli, disk;
	uint64_t created_ns; /* CLOCK_REALTIME */
	uint64_t ttl_ns;     /* 0 = none */
	uint32_t uid;	     /* who asked for it */
	bool tty, has_command;
	char metadata[REGISTRY_META]; /* what who made it says of it: a JSON object of texts; "" */
};

/* Make the entry's directory, and in it the hub's socket. Locked as long as *ret_lock or a copy is open. */
int registry_add(int *ret_lock, int *ret_hub, const struct registry_entry *e, struct err *err);
void registry_remove(const char *session);
/* All that live, oldest first, at most `max`: the number. */
int registry_list(struct registry_entry *ret, size_t max, struct err *err);
/* The one that `word` names: by id, at least four characters of its start or end, or name. -ENOENT, -ENOTUNIQ. */
int registry_find(struct registry_entry *ret, const char *word, const char *tenant,
		  struct err *err);
/* Hand a client and its request to the hub. */
int registry_pass(const char *session, struct str request, int client, struct err *err);
/* One at a time on this host decides on new entries: held as long as *ret_fd is open. */
int registry_lock(int *ret_fd, struct err *err);
/* Remove what dead keepers left. Returns how many. */
int registry_sweep(void);

#endif
