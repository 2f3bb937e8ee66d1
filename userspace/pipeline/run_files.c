// SPDX-License-Identifier: Apache-2.0
/* The workspace's comparison and the snapshots of a session. */
#include "userspace/pipeline/run_priv.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/run.h"

int run_open_workspace(struct run *run, struct err *err)
{
	struct sandbox_place rows[ENRICH_PLACES_MAX];
	size_t n = sandbox_plan_places(run->plan, rows, ENRICH_PLACES_MAX);

	if (run->opt->workspace == RUN_WORKSPACE_IGNORED)
		return 0;
	run->workspace.keep_texts = run->opt->workspace == RUN_WORKSPACE_TEXTS;
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].is_shared)
			continue;
		if (workspace_job_add(&run->workspace, rows[i].inside, rows[i].host) < 0)
			log_warn("'%s' cannot be looked at: ignoring it, what changes there will "
				 "not be told: %s",
				 rows[i].host, strerror(errno));
	}
	return workspace_job_before(&run->workspace, run->uid, run->gid, err);
}

void run_end_workspace(struct run *run)
{
	auto_close int items = -1;
	struct err err = { 0 };

	if (workspace_job_end(&run->workspace, &items, &err) < 0)
		log_warn("%s", err_text(&err));
	else
		engine_send_workspace(run->engine_fd, items);
}

void run_compare_workspace(struct run *run, enum wire_scan_when when)
{
	struct err err = { 0 };

	if (run->opt->workspace == RUN_WORKSPACE_IGNORED)
		return;
	if (workspace_job_busy(&run->workspace)) {
		if (when == WIRE_SCAN_DEMAND)
			return; /* who asks gets the result of the one under way */
		run_end_workspace(run);
	}
	workspace_job_own(&run->workspace, sandbox_workspace_fd(run->sandbox));
	if (workspace_job_begin(&run->workspace, when, run->uid, run->gid, &err) < 0)
		log_warn("%s", err_text(&err));
	else if (when == WIRE_SCAN_STOP || workspace_job_fd(&run->workspace) < 0)
		run_end_workspace(run);
}

void run_tell_snapshot(struct run *run, const struct snapshots_row *row, const char *who,
		       bool is_restore, int r)
{
	auto_buf struct buf rec = { 0 };

	if (record_snapshot(&rec, run->id, row, who, is_restore, false, r) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
	if (r == 0 && row->processes && (!is_restore || run->opt->processes_fd > 0) &&
	    record_snapshot(&rec, run->id, row, who, is_restore, true, r) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

/* What a checkpoint can have in it. Who came by `runsc exec` is not given its descriptors back, nor are its children. */
static int check_processes(const struct run *run, struct sandbox_runtime *ret, struct err *err)
{
	int r = sandbox_plan_keeps(run->plan, ret, err);

	if (r < 0)
		return err_wrap(err, r, "snapshot");
	if (run->execs.any)
		return err_set(err, EOPNOTSUPP,
			       "snapshot: commands came into this sandbox (warder exec): what they "
			       "left cannot go on elsewhere, so its processes are not kept");
	if (!run_has_first(run))
		return err_set(err, EOPNOTSUPP,
			       "snapshot: this sandbox began without a command: there are no "
			       "processes to keep");
	return run->stopped ? err_set(err, EAGAIN,
				      "snapshot: the sandbox stands still: its processes "
				      "cannot be written down")
			    : 0;
}

static int begin_snapshot(struct run *run, const char *name, uint64_t max, bool processes,
			  struct err *err)
{
	struct sandbox_runtime runtime = { 0 };
	int r = 0;

	if (run->starting)
		return err_set(err, EAGAIN, "the sandbox does not run yet");
	if (run->opt->host_workspace)
		return err_set(err, EOPNOTSUPP,
			       "snapshot: /workspace is a directory of the host: it is not the "
			       "sandbox's to copy");
	if (run->snapshot.busy)
		return err_set(err, EBUSY, "a snapshot of this sandbox is being taken");
	if (processes)
		r = check_processes(run, &runtime, err);
	if (r < 0)
		return r;
	run->snapshot.processes = processes;
	run->snapshot_runtime = runtime;
	return snapshot_job_begin(&run->snapshot, run->sandbox,
				  run->spec.tenant ? run->spec.tenant : "default", name, max,
				  run->uid, run->gid, err);
}

void run_want_snapshot(void *arg, uint32_t id, const char *name, uint64_t max, const char *who,
		       bool processes)
{
	struct snapshots_row row = { 0 };
	struct run *run = arg;
	struct err err = { 0 };
	int r = begin_snapshot(run, name, max, processes, &err);

	if (r == 0) {
		run->snapshot.id = id;
		snprintf(run->snapshot.who, sizeof(run->snapshot.who), "%s", who);
		return;
	}
	execs_answer(&run->execs, id, r, err_text(&err));
	if (run->snapshot.busy || run->starting)
		return;
	engine_send_thaw(run->engine_fd);
	snprintf(row.name, sizeof(row.name), "%s", tenant_dir_name_is_good(name) ? name : "");
	run_tell_snapshot(run, &row, who, false, r);
}

void run_end_snapshot(struct run *run)
{
	struct snapshots_row *row = &run->snapshot.file.row;
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };
	struct json j;
	int r;

	snprintf(row->session, sizeof(row->session), "%s", run->result->session);
	snprintf(row->sandbox, sizeof(row->sandbox), "%s", run->name);
	snprintf(row->policy, sizeof(row->policy), "%s", sandbox_plan_hash(run->plan));
	if (run->snapshot.processes)
		snprintf(row->runtime, sizeof(row->runtime), "%s", run->snapshot_runtime.name);
	r = snapshot_job_end(&run->snapshot, run->sandbox, &err);
	engine_send_thaw(run->engine_fd);
	if (run->snapshot.processes && run->snapshot.written)
		sandbox_go_on(run->sandbox);
	run_tell_snapshot(run, row, run->snapshot.who, false, r);
	json_init(&j, &text);
	snapshots_json(&j, row);
	buf_addc(&text, 0);
	if (r < 0)
		execs_answer(&run->execs, run->snapshot.id, r, err_text(&err));
	else
		execs_answer(&run->execs, run->snapshot.id, 0, text.failed ? "null" : text.p);
}

static void fail_snapshot(struct run *run, int r, const struct err *why)
{
	const struct snapshots_row row = run->snapshot.file.row;

	snapshot_job_drop(&run->snapshot);
	sandbox_go_on(run->sandbox);
	run_tell_snapshot(run, &row, run->snapshot.who, false, r);
	execs_answer(&run->execs, run->snapshot.id, r, err_text(why));
}

void run_hear_checkpoint(struct run *run)
{
	struct err err = { 0 };
	int r = sandbox_checkpoint_end(run->sandbox, &err);

	if (r == -EINPROGRESS)
		return;
	if (!run->snapshot.busy || !run->snapshot.processes) { /* it was given up */
		sandbox_go_on(run->sandbox);
		return;
	}
	if (r < 0 && snapshot_job_has_failed(&run->snapshot)) {
		run_end_snapshot(run);
		sandbox_go_on(run->sandbox);
		return;
	}
	if (r == 0)
		r = snapshot_job_written(&run->snapshot, run->sandbox, &err);
	if (r < 0)
		fail_snapshot(run, r, &err);
}
