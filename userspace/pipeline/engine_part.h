/* SPDX-License-Identifier: Apache-2.0 */
/* The engine from within: what the files engine*.c share. */
#ifndef WARDER_PIPELINE_ENGINE_PART_H
#define WARDER_PIPELINE_ENGINE_PART_H

#include "runtime/gvisor/sink.h"
#include "userspace/pipeline/checkpoint_source.h"
#include "userspace/pipeline/control.h"
#include "userspace/pipeline/engine.h"
#include "userspace/pipeline/guest.h"
#include "userspace/pipeline/notify.h"
#include "userspace/pipeline/recorder.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/reload.h"
#include "userspace/pipeline/sink_watch.h"
#include "userspace/pipeline/store_guard.h"
#include "userspace/pipeline/workspace_take.h"

#define ENGINE_GAUGES	  9 /* of its own; then those of the kernel's tables */
#define ENGINE_MAP_GAUGES 3 /* used, size, bytes of each map */
#define ENGINE_GAUGES_MAX (ENGINE_GAUGES + ENGINE_MAP_GAUGES * CAPTURE_MAPS_MAX + 2)

/* The view from inside a sandbox that has a kernel of its own. */
struct engine_guest {
	struct gvisor_sink *sink; /* NULL: there is none */
	struct guest *guest;
	struct gvisor_sink_stats seen; /* that were dealt with */
	struct guest_stats told;
	bool started;
	bool sentry_ended;  /* the host's kernel saw it go */
	uint64_t closed_at; /* CLOCK_BOOTTIME; when its connection was seen closed; 0 = it is not */
	bool closed_told;
};

struct engine {
	struct exporter_gauge gauges[ENGINE_GAUGES_MAX];
	size_t gauges_n;
	struct exporter_gauge *map_used[CAPTURE_MAPS_MAX]; /* in the order of opt->usage */
	char map_labels[CAPTURE_MAPS_MAX][32];
	const struct engine_options *opt;
	int fd; /* to the root part */
	struct journal *journal;
	struct redaction *redaction; /* NULL: it is off */
	struct recorder *recorder;   /* NULL: output is not kept */
	struct pipeline *pipeline;
	struct fanout *fanout;
	struct checkpoint_source_arg checkpoints;
	struct sink_watch sinks;
	uint64_t next_gap_check;
	uint32_t pressed; /* stops and kills for a full ring that were dealt with */
	bool pressure_killed;
	struct store_guard store;
	struct control control;
	bool finished;
	int egress_fd;	  /* -1: it has ended */
	bool egress_over; /* as it should */
	struct engine_guest guest;
	struct {
		int fd;	     /* the filter's listener; -1: it has not come, or nobody is left */
		int proc_fd; /* of /proc */
		bool is_pending;
		uint64_t pending; /* the call that waits for its answer */
		struct notify state;
	} notify;
	struct workspace_texts workspace;
	struct reload_job reload;
	struct ruleset *rules; /* loaded since; NULL: those of the start are in force */
};

/* engine.c: the process; does not come back. */
void engine_main(int fd, const struct engine_options *opt);
/* A record of a probe, the engine as argument: capture_fn. */
int engine_feed(void *arg, const void *rec, size_t len);

/* engine_gauges.c: what metrics sinks show of the engine and of the kernel's tables. */
void engine_gauges_init(struct engine *e);
void engine_gauges_update(struct engine *e);
/* Entries of each map, in the order of opt->usage. */
void engine_gauges_usage(struct engine *e, const uint64_t *used);

/* engine_orders.c: control_serve's function, with the engine as argument. */
void engine_carry_out(void *arg, const char *word, const char *argument, const char *who,
		      struct control_answer *ret);
/* Tell who stands still and what is asked, when that changed. */
void engine_check_stopped(struct engine *e);

/* engine_guest.c: once no privilege is left. */
int engine_guest_start(struct engine *e, struct err *err);
/* A record of the host's kernel, looked at before others see it. True: it is for the guest's view alone. */
bool engine_guest_note(struct engine *e, const void *rec, size_t len);
/* What has come; true: there may be more at once. `all`: nobody is left who could send, take the last of it. */
bool engine_guest_read(struct engine *e, bool all);
/* What the host's kernel told before `boot_ns` has been handed to engine_guest_note. */
void engine_guest_host_read(struct engine *e, uint64_t boot_ns);
/* Tells what is wrong with the view itself, and what has waited too long. */
void engine_guest_check(struct engine *e);
/* Takes in what goes on there, from `fd`, which is closed. */
void engine_guest_processes(struct engine *e, int fd);
/* The sandbox is empty: an end of the sentry that nobody on this side wanted is told. */
void engine_guest_died(struct engine *e, const struct run_facts *facts, const struct outcome *o);
/* CLOCK_BOOTTIME; UINT64_MAX = none. */
uint64_t engine_guest_deadline(const struct engine *e);
void engine_guest_free(struct engine *e);

/* engine_notify.c: once no privilege is left. */
int engine_notify_start(struct engine *e, struct err *err);
void engine_notify_take(struct engine *e, int fd);
/* To be polled for reading; -1: not now, but in *ret_wait ns, or (0) not at all. */
int engine_notify_fd(const struct engine *e, uint64_t *ret_wait);
/* Some of what is asked: told, judged, refused. */
void engine_notify_read(struct engine *e);
/* The answer to the call that is being told, if there is one: struct action_target's let_go, with the engine. */
void engine_notify_let_go(void *arg);
void engine_notify_free(struct engine *e);

/* engine_rules.c: a set was sent, in texts_fd, or none because it has an error; one is compiled, take it over. */
void engine_begin_rules(struct engine *e, struct engine_rules *rules, int texts_fd);
void engine_change_rules(struct engine *e);

/* Root had frozen the sandbox for a while. */
void engine_let_go(struct engine *e);

#endif
