// SPDX-License-Identifier: Apache-2.0
/* The files of a sandbox, kept under a name: made, listed, removed. A sandbox that begins with them is made like any
 * other (sandboxes.c). */
#include <string.h>

#include "exporters/scan.h"
#include "userspace/api/body.h"
#include "userspace/api/route.h"
#include "userspace/base/auto.h"

static void put_row(struct json *j, struct str row)
{
	static const char *const members[][2] = {
		{ "snapshotID", "snapshot" }, { "tenant", "tenant" }, { "sandboxID", "session" },
		{ "sandboxName", "sandbox" }, { "policy", "policy" }, { "createdAt", "created" },
		{ "files", "files" },	      { "bytes", "bytes" },   { "storedBytes", "stored" },
		{ "sha256", "sha256" },
	};
	struct str v;

	json_object_begin(j);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		json_key(j, members[i][0]);
		if (scan_find(row, members[i][1], &v))
			json_raw(j, v);
		else
			json_null(j);
	}
	json_object_end(j);
}

/* The agent's rows up to its last packet; -1: the call has failed. */
static int take_rows(struct call *c, struct json *j, size_t *ret_n)
{
	ssize_t n;
	size_t rows = 0;

	while ((n = call_next(c, 0)) > 0) {
		struct str p = call_packet(c, (size_t)n), row, end;

		if (scan_find(p, "line", &row)) {
			put_row(j, row);
			rows++;
		} else if (scan_find(p, "exit", &end)) {
			*ret_n = rows;
			return 0;
		}
	}
	return -1;
}

int answer_snapshot(struct call *c)
{
	struct agent_request q = { .op = AGENT_SNAPSHOT, .sandbox = c->sandbox, .argc = 1 };
	struct api_snapshot body;
	struct err err = { 0 };
	struct json j;
	size_t n = 0;

	if (api_snapshot_parse(&body, &c->arena, (struct str){ c->body.p, c->body.n }, &err) < 0)
		return call_fail(c, 400, "%s", err_text(&err));
	q.argv = (const char *[]){ body.name, NULL };
	if (call_ask(c, &q) < 0)
		return -1;
	call_json(c, 201, &j);
	if (take_rows(c, &j, &n) < 0)
		return -1;
	return n == 1 ? 0 : call_fail(c, 500, "the snapshot was not described");
}

int answer_snapshots(struct call *c)
{
	struct json j;
	size_t n;

	if (call_ask(c, &(struct agent_request){ .op = AGENT_SNAPSHOTS }) < 0)
		return -1;
	call_json(c, 200, &j);
	json_array_begin(&j);
	if (take_rows(c, &j, &n) < 0)
		return -1;
	json_array_end(&j);
	return 0;
}

int answer_forget(struct call *c)
{
	const struct agent_request q = { .op = AGENT_SNAPSHOT_RM,
					 .argv = (const char *[]){ c->sandbox, NULL },
					 .argc = 1 };

	if (call_ask(c, &q) < 0 || call_next(c, 0) < 0)
		return -1;
	c->status = 204;
	return 0;
}
