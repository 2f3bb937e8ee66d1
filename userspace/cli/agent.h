/* SPDX-License-Identifier: Apache-2.0 */
/* `warder agent`, in pieces. The daemon accepts and forks; a worker hears one request, and ends; a keeper is a
 * `warder run` of its own for one sandbox, and lives whatever becomes of the agent. Nobody keeps in memory what is
 * not on disk: see userspace/pipeline/registry.h. */
#ifndef WARDER_CLI_AGENT_H
#define WARDER_CLI_AGENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "userspace/base/err.h"
#include "userspace/base/option.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/registry.h"
#include "userspace/pipeline/run.h"

/* ---- agent_config.c: <config>/agent.yaml ---- */

#define AGENT_TENANTS_MAX 64
#define AGENT_NAMES_MAX	  32

struct agent_names {
	char v[AGENT_NAMES_MAX][REGISTRY_NAME];
	size_t n;
};

/* Of all a tenant's live sandboxes together, disk with what stays of them: named workspaces and snapshots; 0 = no
 * limit. */
struct agent_quota {
	uint64_t sandboxes, memory, cpu_milli, disk;
};

struct agent_tenant {
	char name[REGISTRY_NAME];
	struct agent_names users, groups;
	struct agent_quota quota;
};

struct agent_config {
	struct agent_names groups;   /* who may speak with the agent, besides root */
	struct agent_names policies; /* that those may name; none listed: the shipped ones */
	uint64_t queue, queue_wait_ns;
	uint64_t parked;	  /* keepers made ahead */
	struct agent_quota quota; /* of a tenant without a row */
	struct agent_tenant tenant[AGENT_TENANTS_MAX];
	size_t tenants_n;
};

/* No file: the defaults, and root alone. Errors name file, line and column. */
int agent_config_load(struct agent_config *ret, struct err *err);

struct agent_peer {
	uid_t uid;
	gid_t gid, groups[64];
	size_t groups_n;
	pid_t pid;
	bool is_root;
	char tenant[REGISTRY_NAME];
	char who[96]; /* for people and records */
};

/* Who is at the other end, by the kernel; and whose tenant. -EACCES: not one to speak with. */
int agent_peer_of(struct agent_peer *ret, int sock, const struct agent_config *c, struct err *err);
const struct agent_quota *agent_quota_of(const struct agent_config *c, const char *tenant);
bool agent_names_have(const struct agent_names *names, const char *name);

/* ---- agent_worker.c ---- */

/* One client, from its request to its answer. Who it is, is asked of the kernel of `peer`: its own socket, or that of
 * whom the API's front asks for. Returns an exit code. */
int agent_work(int client, int peer);

/* ---- agent_admit.c ---- */

/* Wait for room, then make the entry. -EDQUOT: can never be; -EBUSY: the queue is full; -ETIMEDOUT. */
int agent_admit(int *ret_lock, int *ret_hub, const struct registry_entry *e,
		const struct agent_config *c, int client, struct err *err);

/* Bytes that a snapshot of the tenant's may have; -EDQUOT: none are left. */
int agent_disk_left(uint64_t *ret, const char *tenant, const struct agent_config *c,
		    struct err *err);

/* ---- agent_keep.c ---- */

struct keep_options {
	const char *session;
	bool let_go, tty, has_command;
	uint16_t rows, cols;
};

/* Start the keeper of a new sandbox; `argv` as of `warder run`, NULL-terminated. */
int agent_keep(const struct keep_options *k, int client, int lock, int hub, const char *dir,
	       const char *term, const char *const *argv, struct err *err);
/* `warder agent keep ...`: what that becomes. */
int agent_keeper(int argc, char **argv);

/* ---- run_request.c ---- */

/* What the options of a `warder run` ask for. */
struct run_request {
	struct registry_entry entry; /* all but session, created, uid */
	bool tty, has_command;
};

/* Of somebody who is not root. */
struct agent_restrict {
	const struct agent_names *policies; /* NULL: the shipped ones */
	const char *tenant;
};

/* -EINVAL, ...; -EPERM: an option or a value that is not for `restrict_to`; NULL: everything may be asked for. */
int run_inspect(struct run_request *ret, int argc, char **argv,
		const struct agent_restrict *restrict_to, struct err *err);

/* ---- cmd_run.c ---- */

/* Run, with a hub. *ret_reason: how it ended. */
int run_kept(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32]);

/* Of a container that others describe (oci_keep.c): what they say takes the place of the options'. */
struct run_container {
	int (*amend)(void *arg, struct sandbox_spec *spec, struct err *err);
	void *arg;
	const struct run_door *door;
	int stderr_fd;
};

int run_contained(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32],
		  const struct run_container *c);

/* ---- agent_client.c ---- */

/* Is an agent there? */
bool agent_is_there(void);
/* Ask, and be the terminal of what comes of it. `line`: for each row of a list, JSON; NULL = it is printed. Returns
 * an exit code. */
int agent_talk(const struct agent_request *q, void (*line)(struct str row));
/* The same as lines of JSON (agent_json.h). `ends`: with a last one that has the exit code. */
int agent_talk_json(const struct agent_request *q, void (*line)(struct str row), bool ends);
/* What went through in the last talk: input, or output. */
uint64_t agent_talk_bytes(bool in);
/* The same with whoever is at the other end already and has the request. `began`: once when it runs, or when it never
 * will: why. */
int agent_talk_on(int sock, bool tty, void (*began)(void *arg, int code, const char *why),
		  void *arg);

#endif
