/* SPDX-License-Identifier: Apache-2.0 */
/* The unprivileged process behind a session: drains the rings, runs the pipeline, keeps the journal,
 * feeds the sinks. The root part talks to it over a SOCK_SEQPACKET pair with the messages below. */
#ifndef WARDER_PIPELINE_ENGINE_H
#define WARDER_PIPELINE_ENGINE_H

#include <sys/types.h>
#include "exporters/exporter.h"
#include "userspace/capture/usage.h"
#include "userspace/pipeline/outcome.h"
#include "userspace/pipeline/record.h"
#include "userspace/store/signer.h"
#include "userspace/workspace/workspace.h"

struct engine_options {
	struct capture *capture;
	const struct ruleset *rules;
	struct session_options session; /* .journal is made by the engine */
	struct session_record record;
	const char *bundle; /* its directory, owned by uid */
	int bundle_fd;
	int cursor_dirfd; /* -1 = cursors are not kept */
	int keys_dirfd; /* of the host key that signs the record, for the root part only; -1 = none */
	uint8_t host_key[KEY_LEN];
	int status_dirfd;      /* run_status.h; -1 = none */
	int control_fd;	       /* listening (control.h); -1 = none */
	int egress_fd;	       /* struct egress_event each (runtime/egress/event.h); -1 = none */
	int guest_fds[2];      /* listening, and for news (runtime/gvisor/sink.h); -1, -1 = none */
	bool guest_mirror;     /* the host's kernel sees the guest's calls */
	bool guest_net;	       /* its sockets are the host's */
	int output_fd;	       /* where output comes to be recorded (recorder.h); -1 = it is not */
	uint64_t output_limit; /* as in recorder_options */
	bool no_workspace;     /* root does not compare the workspace */
	uid_t owner;	       /* besides root, who may use it */
	struct exporter_config *sinks;
	size_t sinks_n;
	const struct redactor *redactor;       /* NULL = nothing is redacted */
	const struct exporter_config *witness; /* of the signed record's checkpoints; NULL = none */
	/* The kernel's tables, by the root part, which can look at them; NULL = they are not shown. */
	const struct capture_usage *usage;
	uint32_t pressure;  /* enum pressure_policy */
	uint32_t when_full; /* enum full_policy */
	int drain_ms;	    /* longest wait for the sinks at the end */
	uid_t uid;
	gid_t gid;
};

enum engine_msg_type {
	ENGINE_READY = 1, /* to root: the journal is open, launch */
	ENGINE_FAILED,	  /* to root: text says why; nothing must be launched */
	ENGINE_RECORD,	  /* to engine: a wire record */
	ENGINE_FINISH,	  /* to engine: facts; the sandbox is empty */
	ENGINE_DONE,	  /* to root: result */
	ENGINE_SIGN, /* to root, once, before READY: have the host key sign the record's beginning */
	ENGINE_SIGNED, /* to engine: the signature */
	ENGINE_USAGE,  /* to engine: how full the maps are now */
	ENGINE_RESUME, /* to root: the rings were drained, who was stopped for them may go on */
	ENGINE_RULES, /* to engine, with a descriptor: judge by these from now on; without: they are
			* broken, tell it */
	ENGINE_RULES_DONE, /* to root: text says how that went; ok or not */
	ENGINE_RELOAD,	   /* to root: an operator wants the rule files read again */
	ENGINE_THAW, /* to engine: root froze the sandbox, and is done: it goes on if nobody wants it
			     * to stand still */
	ENGINE_STOPPED, /* to root: text says why the sandbox stands still; empty: it goes on */
	ENGINE_NOTIFY, /* to engine, with a descriptor: the listener of the payload's filter; without: text says why
			* there is none */
	ENGINE_PROCESSES, /* to engine, with a descriptor: what goes on in the guest (guest_known.c) */
	ENGINE_WORKSPACE, /* to root: an operator wants the workspace compared; to engine, with a
			     * descriptor: what was found */
};

struct engine_result {
	int32_t exit_code;
	char reason[16];
	char rule[128];
	char action[16];
	uint64_t events, alerts, actions, gaps;
	uint64_t kill_latency_ns; /* as in session_stats */
	uint32_t limits;	  /* bit n: enum wire_limit n was hit */
	uint32_t
		expired; /* killed because nobody came in time to what a rule or operator stopped */
	uint32_t sinks, sinks_behind;
	uint64_t dead_letters; /* records that a sink refused for good */
	char sink_text[256];   /* what the first sink that is behind says */
	int32_t journal_error; /* errno; 0 = the bundle is sealed */
};

struct engine_sign {
	uint64_t real_ns;
	uint8_t msg[GENESIS_SIGNED_LEN];
};

struct engine_rules {
	char why[160]; /* "SIGHUP" */
	char text[ERR_TEXT_MAX - 96];
	uint32_t actions;
	uint32_t ok;
};

#define ENGINE_RECORD_MAX 1024 /* those that the root part makes have short strings */

struct engine_msg {
	uint32_t type;
	uint32_t pad;
	union {
		struct run_facts facts;
		struct engine_result result;
		char text[ERR_TEXT_MAX];
		struct engine_rules rules;
		struct engine_sign sign;
		struct key_signature signature;
		uint64_t used[CAPTURE_MAPS_MAX];   /* in the order of engine_options.usage */
		uint8_t record[ENGINE_RECORD_MAX]; /* at least a header; its len counts */
	};
};

/* Fork it. *ret_fd is the root part's end. Waits until it is ready, at most ten seconds: a session
 * that cannot be recorded is not started. */
int engine_start(pid_t *ret_pid, int *ret_fd, const struct engine_options *opt, struct err *err);
/* A wire record from the root part (time limit and the like). -EMSGSIZE beyond ENGINE_RECORD_MAX. */
int engine_send_record(int fd, const void *rec, size_t len);
/* The same maps as in engine_options.usage, counted anew. Dropped when the engine is busy. */
void engine_send_usage(int fd, const struct capture_usage *usage);
/* Takes one message that the engine sends while the sandbox runs. 1; 0: there is none; -EPROTO: it is none. */
int engine_next(int fd, struct engine_msg *ret);
/* Other rules: the texts in `texts_fd` (reload.h), or with -1 and `text` why there are none. Answered by
 * ENGINE_RULES_DONE. */
int engine_send_rules(int fd, int texts_fd, const struct engine_rules *rules);
void engine_send_thaw(int fd);
/* `listener` becomes the engine's alone; -1: there is none, and `why`. */
int engine_send_notify(int fd, int listener, const char *why);
/* What a sentry says of processes that were kept. */
int engine_send_processes(int fd, int processes_fd);
/* What workspace_compare has written to `items_fd`. */
int engine_send_workspace(int fd, int items_fd);
/* The sandbox is empty: drain, seal, export, and tell. Waits for the answer. */
int engine_finish(int fd, pid_t pid, const struct run_facts *facts, struct engine_result *ret,
		  struct err *err);

#endif
