/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent tells of its sandboxes: a row each, and what their commands wrote. */
#ifndef WARDER_CLI_AGENT_SHOW_H
#define WARDER_CLI_AGENT_SHOW_H

#include "userspace/cli/agent.h"

/* A packet {"line":{...}} each, then {"exit":0}. `tenant`: of that one only; NULL = all. */
int agent_show(int client, const char *tenant, struct err *err);
/* Output of a session that runs or has ended, as recorded, as packets. With q->follow: until it ends. */
int agent_logs(int client, const char *tenant, const struct agent_request *q, struct err *err);

/* The tenant's snapshots, as rows; `tenant` NULL = all. */
int agent_snapshots(int client, const char *tenant, struct err *err);

#endif
