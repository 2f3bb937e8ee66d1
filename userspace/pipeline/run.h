/* SPDX-License-Identifier: Apache-2.0 */
/* `warder run` without a daemon: probes, sandbox, engine, and the wait for the end. The root part: it
 * parses nothing that comes from the sandbox. */
#ifndef WARDER_PIPELINE_RUN_H
#define WARDER_PIPELINE_RUN_H

#include "exporters/exporter.h"
#include "rules/rule.h"
#include "runtime/sandbox.h"
#include "userspace/base/ulid.h"
#include "userspace/pipeline/engine.h"
#include "userspace/pipeline/rule_files.h"
#include "userspace/pipeline/snapshots.h"

#define RUN_DEGRADED_MAX 32

enum run_sign {
	RUN_SIGN_IF_KEY = 0, /* when the host has a key */
	RUN_SIGN_ALWAYS,     /* no key: nothing is started */
	RUN_SIGN_NEVER,
};

/* The workspace is compared at the end: */
enum run_workspace {
	RUN_WORKSPACE_TOLD = 0,
	RUN_WORKSPACE_TEXTS,   /* and small texts are kept, before and after */
	RUN_WORKSPACE_IGNORED, /* it is not */
};

/* Somebody else says when the payload may begin, and speaks with it (`warder oci`). */
struct run_door {
	int fd; /* readable: there is something for `hear` */
	/* All is there but the payload. 0: it may begin; -errno: it never shall, or `engine` hung up. Signals that
	 * the payload would be handed are for who waits here: `signals` is a signalfd. */
	int (*gate)(void *arg, int engine, int signals);
	void (*hear)(void *arg, void (*signal)(void *run, int sig), void *run);
	/* Once, behind the gate: it runs; r < 0: it never will, and why. */
	void (*began)(void *arg, int r, const struct err *why);
	void *arg;
};

struct run_options {
	const struct sandbox_spec *spec; /* session and name are set by run_session */
	const struct ruleset *rules;
	/* Loaded and tested before, with `enforce` and nothing else said; taken over. NULL = they are loaded. */
	struct capture *parked;
	const struct rule_files
		*rule_files;   /* to load again while it runs; NULL: the rules are final */
	struct str rule_texts; /* of rule_texts_read, what `rules` was made of */
	bool dry_run_actions;  /* actions of rules are told, not done */
	const struct snapshots_row *restore; /* begin with these files; NULL = with none */
	int restore_fd;			     /* its archive */
	int processes_fd; /* and go on with what ran then, in place of a command; 0 = with nothing */
	bool host_workspace; /* /workspace is a directory of the operator: nothing to snapshot */
	int hub_fd;	     /* the keeper's end (hub.h); 0 = nobody can speak with the sandbox */
	const struct run_door *door; /* NULL: it begins at once */
	int stderr_fd;		     /* where its error output goes; 0 = to ours */
	const char *session;	     /* its id; NULL = a new one */
	uint64_t ttl_ns;	     /* from the start to its end, whatever it does; 0 = none */
	uint64_t idle_ns; /* it ends when for so long nothing ran and nobody was there; 0 = never */
	struct hold_policy hold;
	uint64_t usage_period_ns;	 /* between samples for usage.*; 0 = default */
	const struct baseline *baseline; /* what is usual; NULL = nothing is compared */
	const struct redactor *redactor; /* NULL = secrets are recorded as they are */
	bool unlogged;			 /* a trial of our own: not for the host log */
	const char *session_dir;	 /* NULL = <state>/sessions/<session> */
	struct exporter_config *sinks;
	size_t sinks_n;
	const struct exporter_config
		*witness; /* where checkpoints are kept besides; NULL = nowhere */
	int drain_ms;
	uint32_t when_full;		 /* enum full_policy */
	uint32_t pressure;		 /* enum pressure_policy */
	size_t urgent_bytes, bulk_bytes; /* of the rings; 0 = default */
	enum run_sign sign;
	enum run_workspace workspace;
	uint64_t output_max;	/* bytes of stdout and of stderr each that are passed on; 0 = all */
	bool output_kill;	/* more than that ends the sandbox */
	bool output_unrecorded; /* stdout and stderr are not kept in the record */
	bool input_recorded;	/* with spec->tty: what is typed is kept, where it is echoed */
	uint64_t
		output_limit; /* of each stream so much is kept: first and last half; 0 = default */
	const char *const *watch; /* entries of the watch list (capture/watchlist.h) */
	size_t watch_n;		  /* at most WATCHLIST_MAX */
	const char *env_values;	  /* comma-separated names whose values are kept; NULL = none */
};

struct run_result {
	char session[ULID_LEN + 1];
	char bundle[4096];
	char backend[16];
	char image[72];		       /* digest of what its root was made of; "" */
	uint64_t started_ns, ended_ns; /* CLOCK_REALTIME */
	struct run_facts facts;
	uint32_t limits_hit; /* bit n: enum wire_limit n was told */
	struct engine_result engine;
	const char *reason;
	int exit_code;
	bool is_signed;
	const char *degraded[RUN_DEGRADED_MAX];
	size_t degraded_n;
	char degraded_text[RUN_DEGRADED_MAX][64];
};

/* Start to end. 0: *ret tells how the session ended (a command that is not there included: exit code
 * 127, err says so). Negative: nothing was started, or the record failed; err says why. Leaves no cgroup, mount or
 * process behind. */
int run_session(struct run_result *ret, const struct run_options *opt, struct err *err);

/* <state>/cursors, made if need be, for the engine's user. */
int cursors_open(int *ret_fd, uid_t uid, gid_t gid, struct err *err);

/* <state>/keys; `create`: make it if need be. -ENOENT. */
int keys_open(int *ret_fd, bool create, struct err *err);

/* Directories: WARDER_STATE or /var/lib/warder. */
const char *state_dir(void);

#endif
