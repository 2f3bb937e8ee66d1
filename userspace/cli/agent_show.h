/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells of its sandboxes: a row each, and what their commands wrote. */
#ifndef WARDER_CLI_AGENT_SHOW_H
#define WARDER_CLI_AGENT_SHOW_H

#include "userspace/cli/agent.h"

/* A packet {"line":{...}} each, then {"exit":0}. `tenant`: of that one only; NULL = all. `word`: only the
 * one that it names; NULL. */
int agent_show(int client, const char *tenant, const char *word, struct err *err);
/* Output of a session that runs or has ended, as recorded, as packets. With q->follow: until it ends. */
int agent_logs(int client, const char *tenant, const struct agent_request *q, struct err *err);
/* Its events, one a line, likewise; those that match q->filter. */
int agent_events(int client, const char *tenant, const struct agent_request *q, struct err *err);
/* The record of a sandbox that runs, by any of its names; of one that has ended by its id, and only for root. */
int agent_bundle(int *ret_fd, const char *tenant, const char *word, struct err *err);
/* The same, and from then on we are nobody: what lies in there was written by who may have been taken over, and a
 * stranger's condition may be asked of it. */
int agent_bundle_unprivileged(int *ret_fd, const char *tenant, const char *word, struct err *err);

/* The tenant's snapshots, as rows; `tenant` NULL = all. */
int agent_snapshots(int client, const char *tenant, struct err *err);

#endif
