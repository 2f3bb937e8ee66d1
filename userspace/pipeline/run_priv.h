/* SPDX-License-Identifier: Apache-2.0 */
/* One session, as the files of run share it: run.c is its course. */
#ifndef WARDER_PIPELINE_RUN_PRIV_H
#define WARDER_PIPELINE_RUN_PRIV_H

#include "runtime/egress/egress.h"
#include "runtime/gvisor/guest.h"
#include "userspace/enrich/enrich.h"
#include "userspace/pipeline/console.h"
#include "userspace/pipeline/execs.h"
#include "userspace/pipeline/limits.h"
#include "userspace/pipeline/relay.h"
#include "userspace/pipeline/reload.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/sampler.h"
#include "userspace/pipeline/snapshot_job.h"
#include "userspace/pipeline/workspace_job.h"

#define KILL_TIMEOUT_MS 10000

struct run {
	const struct run_options *opt;
	struct run_result *result;
	struct sandbox_spec spec;
	struct capture *capture;
	struct sandbox_plan *plan;
	struct sandbox *sandbox;
	struct limits limits;
	struct reloader reloader;
	struct sampler sampler;
	struct workspace_job workspace;
	struct snapshot_job snapshot;
	struct sandbox_runtime snapshot_runtime; /* of the one under way */
	struct capture_usage usage;
	uint64_t next_usage; /* CLOCK_MONOTONIC; 0 = nobody wants to know */
	struct execs execs;
	struct relay *relay;	 /* NULL: stdio goes straight through */
	struct console *console; /* NULL: the payload has no terminal */
	char host[64];
	char name[SANDBOX_NAME_MAX + 1];
	struct ip_addr resolvers[ENRICH_RESOLVERS_MAX];
	size_t resolvers_n;
	struct enrich_place places[ENRICH_PLACES_MAX];
	size_t places_n;
	int bundle_fd, cursor_fd, keys_fd, status_fd, signal_fd, engine_fd;
	int control_fd;	       /* listening; for the engine */
	int null_fd;	       /* in place of stdio, with a terminal; -1 */
	int egress_fds[2];     /* what the network helper tells: the engine's end, the helper's */
	struct egress *egress; /* NULL: none is needed */
	struct gvisor_guest *guest; /* NULL: the host's view is all there is */
	/* CLOCK_MONOTONIC; when its first event is late; 0 = it is not waited for */
	uint64_t guest_end;
	bool armed;	      /* the guest runs: its gVisor is held to what it does then */
	int proc_fds[2];      /* single processes to end: ours, the engine's end */
	int output_fds[2];    /* output to be recorded: ours, the engine's end; -1 */
	bool enforces;	      /* probes were loaded for it */
	bool parked;	      /* probes were loaded long before */
	bool stopped;	      /* the sandbox stands still */
	bool starting;	      /* init has not said yet that the payload runs */
	bool connected;	      /* the payload's output comes out */
	bool told_begun;      /* to the door */
	uint64_t next_secret; /* CLOCK_MONOTONIC; when one is to go; 0 = never */
	uint64_t begun;	      /* CLOCK_MONOTONIC; its life counts from here */
	uint64_t next_end;  /* CLOCK_MONOTONIC; when its life or its idle time is over; 0 = never */
	uint64_t start_end; /* CLOCK_MONOTONIC; when that is late */
	uint8_t host_key[KEY_LEN];
	bool watched;
	uint32_t id; /* of the sandbox, in the probes' maps */
	pid_t engine;
	uid_t uid;
	gid_t gid;
};

/* ---- run.c ---- */

int run_block_signals(struct run *run, struct err *err);

/* A sandbox may begin without a command, and wait for further ones. */
bool run_has_first(const struct run *run);

/* A person who wants it to end must not wait for a program that cannot hear it. */
bool run_ends_stopped(const struct run *run, uint32_t sig);

/* ---- run_open.c ---- */

/* Everything up to the engine: probes, bundle, keys, plan, network, workspace. A session that fails here has no record. */
int run_prepare(struct run *run, struct err *err);

/* The host's name, and the sandbox's where none was given. */
void run_init_names(struct run *run);

/* ---- run_engine.c ---- */

/* One more thing by name, up to RUN_DEGRADED_MAX. */
void run_add_degraded(struct run_result *res, const char *text);

/* What loads and attaches may still not fire: each family has to see its own event first. */
void run_test_probes(struct run *run);

/* What does not work here as it is meant to, by name, into the result. */
void run_collect_degraded(struct run *run);

/* What the rules let the kernel deny or kill by itself, into its tables. */
int run_load_enforcement(struct run *run, struct err *err);

/* From here on the sandbox's cgroup is one that the probes look at. */
int run_watch_sandbox(struct run *run, struct err *err);

/* Walking tables is for those who look at them. */
void run_look_at_maps(struct run *run);

/* How full the tables are, for a sink that shows it; not all the time. */
void run_tell_usage(struct run *run, uint64_t now);

/* The unprivileged half, with all descriptors that it works with and no other. */
int run_start_engine(struct run *run, struct err *err);

/* Rules that were read again: the engine's part and the kernel's change together, or the old ones stay. */
void run_reload_rules(struct run *run);

/* Only where a rule or a sink asks for samples of what the sandbox uses. */
void run_start_sampler(struct run *run);

/* One sample, to the engine. */
void run_tell_sample(struct run *run);

/* What the engine wants done: kill, freeze, thaw, deny, or that it has ended. */
void run_hear_engine(struct run *run);

/* End processes for rules with `scope: process`. That they are of this sandbox is for us to check. */
void run_hear_kills(struct run *run);

/* The beginning and the end of each record are bound into the host's own chain: one that goes missing later is
 * missed, also when nobody could tell of its end. */
void run_tell_host_log(const struct run *run, const char *reason);

/* ---- run_files.c ---- */

/* What of the operator's the payload may write, and its state now. */
int run_open_workspace(struct run *run, struct err *err);

/* The process that compares, if it still runs, and what it held. */
void run_end_workspace(struct run *run);

/* At the end: waits for it. */
void run_compare_workspace(struct run *run, enum wire_scan_when when);

/* Who made one or began from it, and how it went (0 or a negative errno), into the record. */
void run_tell_snapshot(struct run *run, const struct snapshots_row *row, const char *who,
		       bool is_restore, int r);

/* By somebody at the other end of the hub. */
void run_want_snapshot(void *arg, uint32_t id, const char *name, uint64_t max, const char *who,
		       bool processes);

/* All of what runs is written down for one, or it could not be. */
void run_hear_checkpoint(struct run *run);

/* The one that is being made has ended: its outcome to who asked for it, and into the record. */
void run_end_snapshot(struct run *run);

/* ---- run_limits.c ---- */

/* A limit that was hit, into the record and the result. */
void run_tell_limit(void *arg, const struct limit_hit *hit);

/* The sandbox goes on without it: that is no limit it has hit. */
void run_tell_secret_gone(void *arg, const struct sandbox_secret *gone);

/* Its time is over: kills it. */
void run_hit_timeout(struct run *run);

/* One of the payload's streams has reached the cap. True when that is to end it. */
bool run_hit_output(struct run *run);

/* Its time begins with the payload: one that was stopped before init could say so runs, too. */
bool run_has_begun(const struct run *run);

/* Its life, its idle time, or whom it ran for: true when one is over. */
bool run_look_at_life(struct run *run, uint64_t now);

/* How long poll may wait, in ms: until the first of all ends and looks; -1 = for ever. */
int run_wait_timeout(const struct run *run, uint64_t end, uint64_t now, uint64_t look);

/* ---- run_output.c ---- */

/* What its terminal says besides what is typed. True: it was ended. */
bool run_hear_console(struct run *run);

/* Nobody writes any more: the true counts. */
void run_take_output(struct run *run);

/* Where the payload's output comes out, and its three descriptors: pipes and our stdin, or nothing, where it gets a
 * terminal of its own instead. */
int run_open_output(struct run *run, int stdio[3], struct err *err);

/* From the first moment on, but for a terminal: that is the payload's when there is one. */
int run_connect_output(struct run *run, struct err *err);

#endif
