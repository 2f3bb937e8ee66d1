// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/engine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/checkpoint_source.h"
#include "userspace/pipeline/control.h"
#include "userspace/pipeline/egress_record.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/recorder.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/reload.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/sink_watch.h"
#include "userspace/pipeline/source.h"
#include "userspace/pipeline/store_guard.h"
#include "userspace/pipeline/workspace_take.h"

#define READY_TIMEOUT_MS 10000
#define GAP_CHECK_NS	 (100 * NSEC_PER_MSEC)
#define IDLE_TICK_MAX_MS 80 /* then sleep until the kernel wakes us */
#define GAPS_MAX	 64
#define ENGINE_FDS	 5 /* polled besides those of operators */
#define ENGINE_NICE	 (-5)

enum gauge {
	G_URGENT_USED,
	G_BULK_USED,
	G_URGENT_SIZE,
	G_BULK_SIZE,
	G_RECORDS,
	G_LATE,
	G_FAILS,
	G_UNATTRIBUTED,
	G_OVERFLOW,
	GAUGES
};

/* What metrics sinks show of the engine itself. */
static const struct exporter_gauge GAUGE_ROWS[GAUGES] = {
	[G_URGENT_USED] = { "warder_ring_used_bytes", "ring=\"urgent\"",
			    "Bytes waiting in the kernel's ring.", false, 0 },
	[G_BULK_USED] = { "warder_ring_used_bytes", "ring=\"bulk\"", "", false, 0 },
	[G_URGENT_SIZE] = { "warder_ring_size_bytes", "ring=\"urgent\"", "Size of that ring.",
			    false, 0 },
	[G_BULK_SIZE] = { "warder_ring_size_bytes", "ring=\"bulk\"", "", false, 0 },
	[G_RECORDS] = { "warder_probe_records_total", "", "Records taken from the rings.", true,
			0 },
	[G_LATE] = { "warder_probe_late_records_total", "",
		     "Records that came behind younger ones.", true, 0 },
	[G_FAILS] = { "warder_probe_failures_total", "", "Kernel helpers that failed in probes.",
		      true, 0 },
	[G_UNATTRIBUTED] = { "warder_unattributed_records_total", "",
			     "Records of no sandbox that is known.", true, 0 },
	[G_OVERFLOW] = { "warder_rule_matches_suppressed_total", "",
			 "Matches beyond what one event may have.", true, 0 },
};

#define MAP_GAUGES 3 /* used, size, bytes of each map */
#define GAUGES_MAX (GAUGES + MAP_GAUGES * CAPTURE_MAPS_MAX + 2)

struct engine {
	struct exporter_gauge gauges[GAUGES_MAX];
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
	struct workspace_texts workspace;
	struct reload_job reload;
	struct ruleset *rules; /* loaded since; NULL: those of the start are in force */
};

/* ---- life ---- */

static int feed(void *arg, const void *rec, size_t len)
{
	struct engine *e = arg;

	return pipeline_feed(e->pipeline, rec, len);
}

static int open_sinks(struct engine *e, struct err *err)
{
	const struct engine_options *opt = e->opt;
	const struct fanout_options fo = {
		.session = opt->session.session,
		.cursor_dirfd = opt->cursor_dirfd,
		.open_source = journal_source_open,
		.open_source_arg = (void *)&opt->bundle_fd,
		.filters = &sink_filters,
		.gauges = e->gauges,
		.gauges_n = e->gauges_n,
	};
	int r;

	if (!opt->sinks_n && !opt->witness)
		return 0;
	e->checkpoints = (struct checkpoint_source_arg){ opt->bundle_fd, opt->session.session };
	r = fanout_new(&e->fanout, &fo, err);
	for (size_t i = 0; r == 0 && i < opt->sinks_n; i++) {
		r = fanout_add(e->fanout, &opt->sinks[i], err);
		if (r == 0 && opt->keys_dirfd >= 0)
			r = checkpoint_sink_add(e->fanout, &opt->sinks[i], &e->checkpoints, err);
	}
	if (r == 0 && opt->witness)
		r = fanout_add_stream(e->fanout, opt->witness, checkpoint_source_open,
				      &e->checkpoints, err);
	return r;
}

/* The key is root's: it signs once, before anything from the sandbox was seen. */
static int ask_host_key(void *arg, uint64_t real_ns, const void *msg, size_t n,
			struct key_signature *ret, struct err *err)
{
	struct engine *e = arg;
	struct engine_msg m = { .type = ENGINE_SIGN, .sign.real_ns = real_ns };

	if (n != sizeof(m.sign.msg))
		return err_set(err, EINVAL, "signing: a message of %zu bytes", n);
	memcpy(m.sign.msg, msg, n);
	if (send(e->fd, &m, sizeof(m), MSG_NOSIGNAL) < 0 ||
	    recv(e->fd, &m, sizeof(m), 0) != (ssize_t)sizeof(m))
		return err_set(err, EPIPE, "signing: the root part is gone");
	if (m.type != ENGINE_SIGNED) {
		m.text[sizeof(m.text) - 1] = 0;
		return err_set(err, EIO, "%s", m.text);
	}
	*ret = m.signature;
	return 0;
}

static int open_journal(struct engine *e, struct err *err)
{
	const struct journal_options jo = {
		.session = e->opt->session.session,
		.sign = e->opt->keys_dirfd >= 0,
		.host_sign = ask_host_key,
		.host_sign_arg = e,
		.host_key = e->opt->host_key,
	};
	struct session_options so = e->opt->session;
	auto_buf struct buf rec = { 0 };
	int r;

	r = journal_create(&e->journal, e->opt->bundle_fd, &jo, err);
	if (r < 0)
		return err_wrap(err, r, "session directory '%s'", e->opt->bundle);
	r = pipeline_new(&e->pipeline, e->opt->rules);
	if (r < 0)
		return err_set(err, r, "setting up the pipeline: %m");
	so.journal = e->journal;
	so.redaction = e->redaction;
	r = pipeline_session_add(e->pipeline, &so);
	if (r < 0)
		return err_set(err, r, "setting up the session: %m");
	r = record_session_start(&rec, &e->opt->record);
	if (r == 0)
		r = pipeline_feed(e->pipeline, rec.p, rec.n);
	if (r == 0)
		r = journal_commit(e->journal);
	if (r < 0)
		return err_set(err, r, "writing the first record to '%s': %m", e->opt->bundle);
	return 0;
}

static int open_recorder(struct engine *e, struct err *err)
{
	const struct recorder_options ro = {
		.fd = e->opt->output_fd,
		.bundle_fd = e->opt->bundle_fd,
		.session = e->opt->session.session,
		.limit = e->opt->output_limit,
		.filter = redaction_output(e->redaction),
	};

	return ro.fd < 0 ? 0 : recorder_start(&e->recorder, &ro, err);
}

/* What is on disk of the output becomes part of the events' chain. One that could not be told is told with
 * the next. */
static void tell_output(struct engine *e)
{
	struct terminal_mark mark;

	if (e->recorder && recorder_mark(e->recorder, &mark) &&
	    pipeline_terminal(e->pipeline, e->opt->session.sandbox_id, &mark) == 0)
		recorder_told(e->recorder, &mark);
}

/* Of all that root had open only what the engine works with: no map, program or link of BPF, no way
 * to the sandbox's init. The rings and counters are mapped already. */
static int drop_descriptors(const struct engine *e)
{
	const struct engine_options *opt = e->opt;
	const struct action_target *t = &opt->session.target;
	int keep[] = { e->fd,		capture_fd(opt->capture),
		       opt->bundle_fd,	opt->cursor_dirfd,
		       t->kill_fd,	t->freeze_fd,
		       t->events_fd,	opt->status_dirfd,
		       opt->control_fd, t->proc_fd,
		       opt->egress_fd,	opt->output_fd };

	return fd_keep_only(keep, ARRAY_SIZE(keep));
}

static int setup(struct engine *e, struct err *err)
{
	int r;

	r = drop_descriptors(e);
	if (r < 0)
		return err_set(err, r, "closing descriptors: %m");
	/* Sinks first: their files and keys may be for root only. */
	r = open_sinks(e, err);
	if (r < 0)
		return r;
	r = privdrop(e->opt->uid, e->opt->gid, err);
	if (r < 0)
		return err_wrap(err, r, "dropping privileges");
	if (e->opt->redactor && (redaction_new(&e->redaction, e->opt->redactor) < 0 ||
				 redaction_of_log(e->opt->redactor) < 0))
		return err_set(err, ENOMEM, "setting up redaction: %m");
	e->workspace.redact = redaction_redact(e->redaction);
	r = open_journal(e, err);
	if (r == 0)
		r = open_recorder(e, err);
	if (r < 0)
		return r;
	return e->fanout ? fanout_start(e->fanout, err) : 0;
}

static uint64_t lost_so_far(const struct engine *e)
{
	struct session_stats stats = { 0 };

	pipeline_session_stats(e->pipeline, e->opt->session.sandbox_id, &stats);
	return stats.gaps;
}

static struct exporter_gauge *add_gauge(struct engine *e, const char *name, const char *labels,
					const char *help, uint64_t v)
{
	struct exporter_gauge *g = &e->gauges[e->gauges_n++];

	*g = (struct exporter_gauge){ name, labels, help, false, v };
	return g;
}

static void init_map_gauges(struct engine *e, const struct capture_usage *u)
{
	size_t n = 0, of[CAPTURE_MAPS_MAX]; /* rings have gauges of their own */

	for (size_t i = 0; i < u->maps_n; i++)
		if (!u->maps[i].is_ring)
			of[n++] = i;
	/* Rows of one name stand together. */
	for (size_t i = 0; i < n; i++) {
		const struct capture_map *m = &u->maps[of[i]];

		snprintf(e->map_labels[i], sizeof(e->map_labels[i]), "map=\"%s\"", m->name);
		e->map_used[of[i]] = add_gauge(e, "warder_map_entries", e->map_labels[i],
					       "Entries of a table in the kernel.", m->used);
	}
	for (size_t i = 0; i < n; i++)
		add_gauge(e, "warder_map_max_entries", e->map_labels[i], "Room in that table.",
			  u->maps[of[i]].max);
	for (size_t i = 0; i < n; i++)
		add_gauge(e, "warder_map_bytes", e->map_labels[i], "Kernel memory of that table.",
			  u->maps[of[i]].bytes);
	add_gauge(e, "warder_kernel_memory_bytes", "of=\"maps\"", "Kernel memory of the probes.",
		  u->map_bytes);
	add_gauge(e, "warder_kernel_memory_bytes", "of=\"programs\"", "", u->program_bytes);
}

static void init_gauges(struct engine *e)
{
	memcpy(e->gauges, GAUGE_ROWS, sizeof(GAUGE_ROWS));
	e->gauges_n = GAUGES;
	if (e->opt->usage)
		init_map_gauges(e, e->opt->usage);
}

static void take_usage(struct engine *e, const uint64_t *used)
{
	for (size_t i = 0; i < CAPTURE_MAPS_MAX; i++)
		if (e->map_used[i])
			exporter_gauge_set(e->map_used[i], used[i]);
}

static void update_gauges(struct engine *e)
{
	struct pipeline_counters counters;
	struct capture_stats stats;
	uint64_t fails = 0;

	capture_stats(e->opt->capture, &stats);
	pipeline_counters(e->pipeline, &counters);
	for (size_t i = 0; i < FAIL_SITE_COUNT; i++)
		fails += stats.fails[i];
	exporter_gauge_set(&e->gauges[G_URGENT_USED], stats.ring_used[0]);
	exporter_gauge_set(&e->gauges[G_BULK_USED], stats.ring_used[1]);
	exporter_gauge_set(&e->gauges[G_URGENT_SIZE], stats.ring_size[0]);
	exporter_gauge_set(&e->gauges[G_BULK_SIZE], stats.ring_size[1]);
	exporter_gauge_set(&e->gauges[G_RECORDS], stats.records);
	exporter_gauge_set(&e->gauges[G_LATE], stats.late);
	exporter_gauge_set(&e->gauges[G_FAILS], fails);
	exporter_gauge_set(&e->gauges[G_UNATTRIBUTED], counters.unattributed);
	exporter_gauge_set(&e->gauges[G_OVERFLOW], counters.rule_overflow);
}

static void check_gaps(struct engine *e, bool now)
{
	struct capture_gap gaps[GAPS_MAX];
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	size_t n;

	if (!now && t < e->next_gap_check)
		return;
	e->next_gap_check = t + GAP_CHECK_NS;
	if (e->fanout)
		update_gauges(e);
	do {
		n = capture_gaps(e->opt->capture, gaps, ARRAY_SIZE(gaps));
		pipeline_gaps(e->pipeline, gaps, n);
	} while (n == ARRAY_SIZE(gaps));
	if (e->opt->keys_dirfd >= 0)
		journal_set_lost(e->journal, lost_so_far(e));
}

static void say_degraded(void *arg, const char *text)
{
	struct engine *e = arg;

	pipeline_audit(e->pipeline, e->opt->session.sandbox_id, WIRE_AUDIT_DEGRADED, text, NULL, 0);
}

static void check_sinks(struct engine *e)
{
	uint64_t last = journal_next_seq(e->journal) - 1, now = clock_ns(CLOCK_MONOTONIC);
	struct fanout_status rows[FANOUT_SINKS_MAX];
	auto_buf struct buf json = { 0 };
	size_t n;

	if (!e->fanout || !sink_watch_is_due(&e->sinks, now))
		return;
	n = fanout_status(e->fanout, rows, ARRAY_SIZE(rows));
	sink_watch_look(&e->sinks, rows, n, last, now, say_degraded, e);
	/* Nobody misses a status that a full disk kept away. */
	if (sink_watch_json(&e->sinks, last, &json) == 0)
		run_status_write(e->opt->status_dirfd, "sinks", (struct str){ json.p, json.n });
}

/* ---- the way out ---- */

#define EGRESS_TURN 64 /* before the probes have their turn */

static void read_egress(struct engine *e, bool all)
{
	uint32_t id = e->opt->session.sandbox_id;
	struct egress_event ev;

	for (int i = 0; e->egress_fd >= 0 && (all || i < EGRESS_TURN); i++) {
		ssize_t n = recv(e->egress_fd, &ev, sizeof(ev), MSG_DONTWAIT);
		auto_buf struct buf rec = { 0 };

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n == (ssize_t)sizeof(ev)) {
			if (ev.type == EGRESS_OVER)
				e->egress_over = true;
			else if (record_egress(&rec, id, &ev) == 0)
				pipeline_feed(e->pipeline, rec.p, rec.n);
		} else if (n <= 0) {
			close(take_fd(e->egress_fd));
			if (!e->egress_over) {
				log_warn(
					"the network helper ended: the sandbox has no network any more");
				say_degraded(e, "the network helper ended: no network any more");
			}
		}
	}
}

/* Producers were stopped or killed because a ring filled up. */
static void check_pressure(struct engine *e)
{
	const struct session_options *so = &e->opt->session;
	uint32_t now = capture_pressed(e->opt->capture, so->sandbox_id);
	struct engine_msg msg = { .type = ENGINE_RESUME };
	struct action_report report;
	auto_buf struct buf rec = { 0 };
	struct limit_hit hit = {
		.type = WIRE_LIMIT_EVENTS,
		.count = now - e->pressed,
		.killed = e->opt->pressure == PRESSURE_KILL,
	};

	if (now == e->pressed)
		return;
	e->pressed = now;
	if (record_limit(&rec, so->sandbox_id, &hit) == 0)
		pipeline_feed(e->pipeline, rec.p, rec.n);
	if (hit.killed) {
		e->pressure_killed = true;
		action_kill_sandbox(&so->target, 250, &report);
	} else if (e->fd >= 0) {
		send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	}
}

/* ---- orders of operators ---- */

static void carry_out(void *arg, const char *word, const char *argument, const char *who,
		      struct control_answer *ret)
{
	static const char *const words[] = {
		[ORDER_APPROVE] = "approve", [ORDER_DENY] = "deny", [ORDER_FREEZE] = "freeze",
		[ORDER_THAW] = "thaw",	     [ORDER_KILL] = "kill",
	};
	const struct session_options *so;
	struct engine *e = arg;
	uint32_t id = 0;

	so = &e->opt->session;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		if (i <= ORDER_DENY && !hold_name_parse(argument, so->session, &id)) {
			ret->result = -ENOENT;
			return;
		}
		ret->result = pipeline_order(e->pipeline, so->sandbox_id, (enum pipeline_order)i,
					     id, who, ret->text, sizeof(ret->text));
		return;
	}
	if (!strcmp(word, "reload")) {
		const struct engine_msg msg = { .type = ENGINE_RELOAD };

		ret->result = send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
		snprintf(ret->text, sizeof(ret->text),
			 "rule files are read again; an audit.rules event tells how it went");
		return;
	}
	if (!strcmp(word, "workspace") && e->opt->no_workspace) {
		ret->result = -EOPNOTSUPP;
		snprintf(
			ret->text, sizeof(ret->text),
			"it was started with --no-workspace-diff: there is nothing to compare with");
		return;
	}
	if (!strcmp(word, "workspace")) {
		const struct engine_msg msg = { .type = ENGINE_WORKSPACE };

		ret->result = send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
		snprintf(ret->text, sizeof(ret->text),
			 "the workspace is compared; a workspace.scan event ends what was found");
		return;
	}
	ret->result = -EINVAL;
	snprintf(ret->text, sizeof(ret->text), "unknown request");
}

struct stop_words {
	const char *session;
	struct buf text;
	struct json json;
	size_t n;
};

static void add_question(void *arg, const struct hold *h)
{
	struct stop_words *w = arg;
	char name[HOLD_NAME_MAX];

	hold_name_text(name, w->session, h->id);
	buf_printf(&w->text, "%srule '%s' asks: warder approve %s, or warder deny %s",
		   w->n++ ? "; " : "", h->rule, name, name);
	json_object_begin(&w->json);
	json_key(&w->json, "id");
	json_strz(&w->json, name);
	json_key(&w->json, "rule");
	json_strz(&w->json, h->rule);
	json_key(&w->json, "trigger");
	json_strz(&w->json, h->trigger);
	json_object_end(&w->json);
}

/* {} = not frozen. The time is the wall clock's: who reads it does not know ours. */
static void tell_freeze(struct engine *e)
{
	auto_buf struct buf out = { 0 };
	char time[RFC3339_NS_LEN + 1];
	uint64_t deadline, now = clock_ns(CLOCK_MONOTONIC);
	const char *rule;
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	if (pipeline_freeze(e->pipeline, e->opt->session.sandbox_id, &rule, &deadline)) {
		json_key(&j, "rule");
		*rule ? json_strz(&j, rule) : json_null(&j);
		json_key(&j, "killed_at");
		if (deadline != UINT64_MAX)
			rfc3339_ns(time, clock_real_ns() + (deadline > now ? deadline - now : 0));
		deadline != UINT64_MAX ? json_strz(&j, time) : json_null(&j);
	}
	json_object_end(&j);
	run_status_write(e->opt->status_dirfd, "frozen", (struct str){ out.p, out.n });
}

/* For `warder status`, and for who sits in front of `warder run`. */
static void check_stopped(struct engine *e)
{
	struct stop_words w = { .session = e->opt->session.session };
	struct engine_msg msg = { .type = ENGINE_STOPPED };
	auto_buf struct buf json = { 0 };
	bool changed, stopped;

	json_init(&w.json, &json);
	json_array_begin(&w.json);
	stopped = pipeline_is_stopped(e->pipeline, e->opt->session.sandbox_id, &changed,
				      add_question, &w);
	json_array_end(&w.json);
	if (changed) {
		if (stopped && !w.n)
			buf_printf(&w.text, "frozen: warder thaw or warder kill %s", w.session);
		snprintf(msg.text, sizeof(msg.text), "%.*s", (int)w.text.n,
			 w.text.n ? w.text.p : "");
		/* First where it is looked up, then to who sits in front: who was told finds it there. */
		run_status_write(e->opt->status_dirfd, "questions", (struct str){ json.p, json.n });
		tell_freeze(e);
		if (e->fd >= 0)
			send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	buf_done(&w.text);
}

static void say_store(void *arg, const char *text)
{
	struct engine *e = arg;

	log_warn("%s", text);
	say_degraded(e, text);
}

static void commit(struct engine *e)
{
	const struct session_options *so = &e->opt->session;
	struct engine_msg msg = { .type = ENGINE_STOPPED };
	bool paused = e->store.paused, go_on = pipeline_may_go_on(e->pipeline, so->sandbox_id);
	int r = journal_commit(e->journal);

	if (r == 0 && e->recorder)
		r = recorder_error(e->recorder);
	store_guard_look(&e->store, r, go_on, &so->target, say_store, e);
	if (e->store.paused == paused || !go_on || e->fd < 0)
		return;
	/* Signals cannot reach what stands still: the root part ends it then. */
	snprintf(msg.text, sizeof(msg.text), "%s", paused ? "" : "no room for its record");
	send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void fill_result(struct engine *e, const struct outcome *o, struct engine_result *ret)
{
	struct session_stats stats = { 0 };

	pipeline_session_stats(e->pipeline, e->opt->session.sandbox_id, &stats);
	ret->exit_code = o->exit_code;
	snprintf(ret->reason, sizeof(ret->reason), "%s", o->reason);
	snprintf(ret->rule, sizeof(ret->rule), "%s", stats.rule);
	snprintf(ret->action, sizeof(ret->action), "%s", stats.action);
	ret->events = stats.events;
	ret->alerts = stats.alerts;
	ret->kill_latency_ns = stats.kill_latency_ns;
	ret->actions = stats.actions;
	ret->gaps = stats.gaps;
	ret->limits = stats.limits;
	ret->expired = stats.expired;
}

/* The last of the output, and how it ends; the seal binds it. */
static int finish_output(struct engine *e, struct terminal_end *ret)
{
	uint64_t lost = 0;
	int r = e->recorder ? recorder_finish(e->recorder, ret, &lost) : 0;
	char text[128];

	if (lost) {
		snprintf(text, sizeof(text), "%llu bytes of output could not be recorded",
			 (unsigned long long)lost);
		say_store(e, text);
	}
	tell_output(e);
	return r;
}

static int seal(struct engine *e, uint64_t gaps, const struct terminal_end *output)
{
	auto_buf struct buf summary = { 0 };
	struct journal_seal js = { .gaps = gaps, .terminal = output };
	int r = pipeline_session_summary(e->pipeline, e->opt->session.sandbox_id, &summary);

	if (r < 0)
		return r;
	js.summary = (struct str){ summary.p, summary.n };
	return journal_seal(e->journal, &js);
}

static void drain_sinks(struct engine *e, struct engine_result *ret)
{
	struct fanout_status rows[FANOUT_SINKS_MAX];
	uint64_t last = journal_next_seq(e->journal) - 1;
	size_t n;

	if (!e->fanout)
		return;
	fanout_notify(e->fanout);
	ret->sinks_behind = (uint32_t)fanout_drain(e->fanout, last, e->opt->drain_ms);
	n = fanout_status(e->fanout, rows, ARRAY_SIZE(rows));
	ret->sinks = (uint32_t)n; /* that of the checkpoints, which nobody named, included */
	for (size_t i = 0; i < MIN(n, ARRAY_SIZE(rows)); i++)
		ret->dead_letters += rows[i].poison;
	for (size_t i = 0; ret->sinks_behind && i < MIN(n, ARRAY_SIZE(rows)); i++) {
		if (!fanout_status_lag(&rows[i], last))
			continue;
		snprintf(ret->sink_text, sizeof(ret->sink_text),
			 "%.63s: %llu of %llu events%s%.120s", rows[i].name,
			 (unsigned long long)rows[i].acked,
			 (unsigned long long)(rows[i].own_seq ? rows[i].sent : last),
			 rows[i].text[0] ? ": " : "", rows[i].text);
		break;
	}
}

static void finish(struct engine *e, const struct run_facts *facts)
{
	struct engine_msg msg = { .type = ENGINE_DONE };
	struct session_stats stats = { 0 };
	auto_buf struct buf rec = { 0 };
	struct ruleset *late = NULL;
	struct terminal_end output;
	struct outcome o;
	size_t held;
	int r, kept;

	/* Rules that are not ready yet come too late. */
	if (reload_job_take(&e->reload, &late, NULL) == 0)
		ruleset_free(late);
	capture_drain(e->opt->capture, true, feed, e, &held);
	read_egress(e, true);
	check_gaps(e, true);
	kept = finish_output(e, &output);
	pipeline_session_stats(e->pipeline, e->opt->session.sandbox_id, &stats);
	o = outcome_of(facts, stats.verdict != SESSION_UNDECIDED ? stats.verdict
			      : e->pressure_killed		 ? SESSION_KILLED_FOR_EVENTS
			      : e->store.killed			 ? SESSION_KILLED_FOR_RECORD
								 : SESSION_UNDECIDED);
	if (record_session_stop(&rec, &e->opt->record, facts, &o) == 0)
		pipeline_feed(e->pipeline, rec.p, rec.n);
	fill_result(e, &o, &msg.result);
	r = kept < 0 ? kept : seal(e, msg.result.gaps, kept ? &output : NULL);
	if (r < 0) {
		msg.result.journal_error = -r;
		/* Numbered and in memory is not in the record. */
		msg.result.gaps +=
			journal_next_seq(e->journal) - 1 - journal_durable_seq(e->journal);
	}
	drain_sinks(e, &msg.result);
	if (e->fd >= 0)
		send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	e->finished = true;
}

/* The root part is gone: nobody watches the sandbox's time or cleans up behind it. Fail closed. */
static void orphaned(struct engine *e)
{
	const struct run_facts facts = { .internal = true };
	struct action_report report;

	e->fd = -1;
	action_kill_sandbox(&e->opt->session.target, 2000, &report);
	pipeline_audit(e->pipeline, e->opt->session.sandbox_id, WIRE_AUDIT_STOP,
		       "the root part ended: sandbox killed, record closed", NULL, 0);
	finish(e, &facts);
}

/* ---- other rules ---- */

static void tell_rules(struct engine *e, bool ok, const char *text)
{
	struct engine_msg msg = { .type = ENGINE_RULES_DONE, .rules.ok = ok };

	pipeline_rules_event(e->pipeline, e->opt->session.sandbox_id, ok, text);
	snprintf(msg.rules.text, sizeof(msg.rules.text), "%s", text);
	if (e->fd >= 0)
		send(e->fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static void refuse_rules(struct engine *e, const char *why, const char *text)
{
	char all[ERR_TEXT_MAX];

	snprintf(all, sizeof(all), "rules not changed (%.150s): %.800s", why, text);
	tell_rules(e, false, all);
}

/* Between two events: each is judged by exactly one set. */
static void change_rules(struct engine *e)
{
	struct ruleset *rules = NULL;
	struct err err = { 0 };
	char text[ERR_TEXT_MAX];
	size_t kept = 0;
	int r;

	r = reload_job_take(&e->reload, &rules, &err);
	if (r == 0) {
		r = pipeline_set_rules(e->pipeline, rules, &kept);
		if (r < 0)
			err_set(&err, r, "out of memory");
	}
	if (r < 0) {
		ruleset_free(rules);
		refuse_rules(e, e->reload.why, err_text(&err));
		return;
	}
	ruleset_free(e->rules);
	e->rules = rules;
	snprintf(text, sizeof(text),
		 "rules changed (%s): %zu rules, %zu go on with what they remember", e->reload.why,
		 ruleset_count(rules), kept);
	tell_rules(e, true, text);
}

static void begin_rules(struct engine *e, struct engine_rules *rules, int texts_fd)
{
	int r;

	rules->why[sizeof(rules->why) - 1] = 0;
	rules->text[sizeof(rules->text) - 1] = 0;
	if (texts_fd < 0) {
		refuse_rules(e, rules->why, rules->text);
		return;
	}
	r = reload_job_start(&e->reload, texts_fd, rules->actions, rules->why);
	if (r < 0)
		refuse_rules(e, rules->why, strerror(-r));
}

/* A message, and the descriptor that came with it (-1 = none). */
static ssize_t receive(int fd, struct engine_msg *msg, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { msg, sizeof(*msg) };
	struct msghdr mh = { .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&mh);

	*ret_fd = -1;
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(c), sizeof(int));
	return n;
}

static void read_control(struct engine *e)
{
	struct engine_msg msg;
	int passed;
	ssize_t n = receive(e->fd, &msg, &passed);

	if (passed >= 0 &&
	    (n != sizeof(msg) || (msg.type != ENGINE_RULES && msg.type != ENGINE_WORKSPACE)))
		close(take_fd(passed));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		orphaned(e);
		return;
	}
	if ((size_t)n != sizeof(msg))
		return;
	if (msg.type == ENGINE_RECORD)
		pipeline_feed(e->pipeline, msg.record, sizeof(msg.record));
	else if (msg.type == ENGINE_RULES)
		begin_rules(e, &msg.rules, passed);
	else if (msg.type == ENGINE_WORKSPACE)
		workspace_take(&e->workspace, e->pipeline, e->opt->session.sandbox_id, passed);
	else if (msg.type == ENGINE_USAGE)
		take_usage(e, msg.used);
	else if (msg.type == ENGINE_FINISH)
		finish(e, &msg.facts);
}

/* -1: until something happens. */
static int next_timeout(const struct engine *e, int tick, size_t held)
{
	uint64_t deadline = journal_deadline(e->journal), due = pipeline_deadline(e->pipeline);
	uint64_t now, left;

	if (held)
		return 1;
	if (tick < 0 && e->fanout &&
	    sink_watch_is_needed(&e->sinks, journal_next_seq(e->journal) - 1))
		tick = SINK_WATCH_NS / NSEC_PER_MSEC;
	if (due != UINT64_MAX && (!deadline || due < deadline))
		deadline = due;
	if (!deadline)
		return tick;
	now = clock_ns(CLOCK_MONOTONIC);
	if (deadline <= now)
		return 0;
	left = MIN((deadline - now) / NSEC_PER_MSEC + 1, (uint64_t)1000);
	return tick < 0 ? (int)left : MIN((int)left, tick);
}

/* Bulk records do not wake: look often while they come, seldom when not, and not at all when nothing
 * has come for a while; then the kernel is asked to wake us. */
static int next_tick(struct engine *e, int tick, int got)
{
	if (got > 0) {
		if (tick < 0)
			capture_sleep(e->opt->capture, false);
		return CAPTURE_TICK_MS;
	}
	if (tick >= 0 && tick < IDLE_TICK_MAX_MS)
		return tick * 2;
	/* Again at every turn: the wake-up that brought us here took the mark away. */
	capture_sleep(e->opt->capture, true);
	return -1;
}

static void loop(struct engine *e)
{
	int tick = CAPTURE_TICK_MS;
	size_t held = 0;

	while (!e->finished) {
		struct pollfd fds[ENGINE_FDS + CONTROL_FDS] = {
			{ .fd = capture_fd(e->opt->capture), .events = POLLIN },
			{ .fd = e->fd, .events = POLLIN },
			{ .fd = reload_job_fd(&e->reload), .events = POLLIN },
			{ .fd = e->egress_fd, .events = POLLIN },
			{ .fd = recorder_fd(e->recorder), .events = POLLIN },
		};
		uint64_t deadline;
		int n, got;

		got = capture_drain(e->opt->capture, false, feed, e, &held);
		tick = next_tick(e, tick, got + (int)held);
		if (tick < 0) /* what came before the kernel knew that we sleep */
			got += capture_drain(e->opt->capture, false, feed, e, &held);
		pipeline_end_turn(e->pipeline);
		pipeline_tick(e->pipeline);
		check_stopped(e);
		check_gaps(e, false);
		check_pressure(e);
		check_sinks(e);
		deadline = journal_deadline(e->journal);
		if (deadline && deadline <= clock_ns(CLOCK_MONOTONIC))
			commit(e);
		if (e->fanout && (got > 0 || deadline))
			fanout_notify(e->fanout);
		control_poll(&e->control, fds + ENGINE_FDS);
		n = poll(fds, ARRAY_SIZE(fds), next_timeout(e, tick, held));
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && fds[2].revents)
			change_rules(e);
		if (n > 0 && fds[4].revents)
			tell_output(e);
		if (n > 0)
			control_serve(&e->control, fds + ENGINE_FDS, carry_out, e);
		if (n > 0 && fds[1].revents)
			read_control(e);
		if (n > 0 && fds[3].revents && !e->finished)
			read_egress(e, false);
	}
}

static void engine_main(int fd, const struct engine_options *opt)
{
	struct engine e = {
		.opt = opt, .fd = fd, .egress_fd = opt->egress_fd, .store.policy = opt->when_full
	};
	struct engine_msg msg = { .type = ENGINE_READY };
	struct err err = { 0 };
	sigset_t all;

	init_gauges(&e);
	e.workspace.bundle_fd = opt->bundle_fd;
	/* A session of its own, deaf to the terminal's signals: the root part decides when to stop. */
	control_init(&e.control, opt->control_fd, opt->owner);
	setsid();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "warder-engine", 0, 0, 0);
	if (setup(&e, &err) < 0) {
		msg.type = ENGINE_FAILED;
		snprintf(msg.text, sizeof(msg.text), "%s", err_text(&err));
	}
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	if (msg.type == ENGINE_READY)
		loop(&e);
	fanout_free(e.fanout);
	recorder_free(e.recorder);
	journal_free(e.journal);
	pipeline_free(e.pipeline);
	redaction_free(e.redaction);
	ruleset_free(e.rules);
	_exit(0);
}

static int receive_early(int fd, struct engine_msg *msg, struct err *err)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int r;

	do {
		r = poll(&pfd, 1, READY_TIMEOUT_MS);
	} while (r < 0 && errno == EINTR);
	if (r <= 0)
		return err_set(err, ETIMEDOUT, "the engine did not get ready within %d s",
			       READY_TIMEOUT_MS / 1000);
	if (recv(fd, msg, sizeof(*msg), 0) != (ssize_t)sizeof(*msg))
		return err_set(err, EPIPE, "the engine died during its start");
	return 0;
}

/* Only the beginning of this session's record is signed, whatever the engine may ask. */
static void answer_sign(int fd, const struct engine_options *opt, const struct engine_sign *s)
{
	struct engine_msg msg = { .type = ENGINE_SIGNED };
	struct err err = { 0 };
	int r;

	if (opt->keys_dirfd < 0 ||
	    !genesis_is_for(s->msg, sizeof(s->msg), opt->session.session, opt->host_key))
		r = err_set(&err, EPERM, "signing: not the beginning of this session's record");
	else
		r = keys_sign(opt->keys_dirfd, s->real_ns, s->msg, sizeof(s->msg), &msg.signature,
			      &err);
	if (r < 0) {
		msg.type = ENGINE_FAILED;
		snprintf(msg.text, sizeof(msg.text), "%s", err_text(&err));
	}
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
}

static int wait_ready(int fd, const struct engine_options *opt, struct err *err)
{
	struct engine_msg msg;
	int r;

	r = receive_early(fd, &msg, err);
	if (r == 0 && msg.type == ENGINE_SIGN) {
		answer_sign(fd, opt, &msg.sign);
		r = receive_early(fd, &msg, err);
	}
	if (r < 0)
		return r;
	if (msg.type == ENGINE_FAILED)
		return err_set(err, EIO, "%.*s", ERR_TEXT_MAX - 1, msg.text);
	return msg.type == ENGINE_READY ? 0 : err_set(err, EPROTO, "the engine spoke out of turn");
}

int engine_start(pid_t *ret_pid, int *ret_fd, const struct engine_options *opt, struct err *err)
{
	auto_close int ours = -1;
	int pair[2], r;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, errno, "socket pair: %m");
	ours = pair[0];
	pid = fork();
	if (pid < 0) {
		close(pair[1]);
		return err_set(err, errno, "fork: %m");
	}
	if (pid == 0) {
		close(pair[0]);
		engine_main(pair[1], opt);
	}
	close(pair[1]);
	r = wait_ready(ours, opt, err);
	if (r < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	/* A sandbox that burns all CPUs must not keep the verdict waiting. Only the thread that drains and
	 * judges: the sinks' exist by now. Where it is not allowed it goes without. */
	(void)setpriority(PRIO_PROCESS, (id_t)pid, ENGINE_NICE);
	*ret_pid = pid;
	*ret_fd = take_fd(ours);
	return 0;
}

int engine_send_record(int fd, const void *rec, size_t len)
{
	struct engine_msg msg = { .type = ENGINE_RECORD };

	if (len > sizeof(msg.record))
		return -EMSGSIZE;
	memcpy(msg.record, rec, len);
	return send(fd, &msg, sizeof(msg), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

void engine_send_usage(int fd, const struct capture_usage *usage)
{
	struct engine_msg msg = { .type = ENGINE_USAGE };

	for (size_t i = 0; i < usage->maps_n; i++)
		msg.used[i] = usage->maps[i].used;
	(void)!send(fd, &msg, sizeof(msg), MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool engine_next(int fd, struct engine_msg *ret)
{
	return recv(fd, ret, sizeof(*ret), MSG_DONTWAIT) == (ssize_t)sizeof(*ret);
}

static int send_with_fd(int fd, const struct engine_msg *msg, int passed)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { { 0 } };
	struct iovec iov = { (void *)(uintptr_t)msg, sizeof(*msg) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (passed >= 0) {
		mh.msg_control = &control;
		mh.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &passed, sizeof(int));
	}
	return sendmsg(fd, &mh, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int engine_send_rules(int fd, int texts_fd, const struct engine_rules *rules)
{
	const struct engine_msg msg = { .type = ENGINE_RULES, .rules = *rules };

	return send_with_fd(fd, &msg, texts_fd);
}

int engine_send_workspace(int fd, int items_fd)
{
	const struct engine_msg msg = { .type = ENGINE_WORKSPACE };

	return send_with_fd(fd, &msg, items_fd);
}

int engine_finish(int fd, pid_t pid, const struct run_facts *facts, struct engine_result *ret,
		  struct err *err)
{
	struct engine_msg msg = { .type = ENGINE_FINISH };
	int status = 0;
	ssize_t n;

	msg.facts = *facts;
	send(fd, &msg, sizeof(msg), MSG_NOSIGNAL);
	do {
		n = recv(fd, &msg, sizeof(msg), 0);
	} while ((n < 0 && errno == EINTR) ||
		 (n == (ssize_t)sizeof(msg) &&
		  (msg.type == ENGINE_RESUME || msg.type == ENGINE_RELOAD ||
		   msg.type == ENGINE_WORKSPACE || msg.type == ENGINE_RULES_DONE ||
		   msg.type == ENGINE_STOPPED)));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (n != (ssize_t)sizeof(msg) || msg.type != ENGINE_DONE)
		return err_set(err, EPIPE,
			       "the engine died (status 0x%x): the record is not sealed", status);
	/* Strings from a process that may have been taken over: end them ourselves. */
	msg.result.reason[sizeof(msg.result.reason) - 1] = 0;
	msg.result.rule[sizeof(msg.result.rule) - 1] = 0;
	msg.result.action[sizeof(msg.result.action) - 1] = 0;
	msg.result.sink_text[sizeof(msg.result.sink_text) - 1] = 0;
	*ret = msg.result;
	return 0;
}
