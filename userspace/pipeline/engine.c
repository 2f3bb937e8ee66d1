// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/engine_part.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/confine_calls.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/egress_record.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/source.h"

#define GAP_CHECK_NS	 (100 * NSEC_PER_MSEC)
#define IDLE_TICK_MAX_MS 80 /* then sleep until the kernel wakes us */
#define GAPS_MAX	 64
#define ENGINE_FDS	 7 /* polled besides those of operators */
/* Of a turn's records, from which on the next turn may be later: each turn costs, and finds cold caches. What is to be
 * acted on wakes us all the same. */
#define STORM_RECORDS 128
#define STORM_TICK_MS 4

/* ---- life ---- */

int engine_feed(void *arg, const void *rec, size_t len)
{
	struct engine *e = arg;

	if (e->guest.sink && engine_guest_note(e, rec, len))
		return 0;
	notify_see(&e->notify.state, rec, len);
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
	int keep[] = { e->fd,
		       capture_fd(opt->capture),
		       opt->bundle_fd,
		       opt->cursor_dirfd,
		       t->kill_fd,
		       t->freeze_fd,
		       t->events_fd,
		       opt->status_dirfd,
		       opt->control_fd,
		       t->proc_fd,
		       opt->egress_fd,
		       opt->output_fd,
		       opt->guest_fds[0],
		       opt->guest_fds[1],
		       capture_alive_fd(opt->capture) };

	return fd_keep_only(keep, ARRAY_SIZE(keep));
}

/* Its own record and status, the cursors of its sinks, what those name. */
static int confine_to_files(const struct engine_options *opt, struct err *err)
{
	const struct confine_place own[] = {
		{ .fd = opt->bundle_fd, .writes = true },
		{ .fd = opt->status_dirfd, .writes = true },
		{ .fd = opt->sinks_n || opt->witness ? opt->cursor_dirfd : -1, .writes = true },
		{ .path = "/proc" },
	};
	struct confine_files c;
	int r;

	r = confine_files_begin(&c, err);
	if (r == 0)
		r = confine_files_add(&c, own, ARRAY_SIZE(own), err);
	if (r == 0)
		r = confine_files_add_libraries(&c, err);
	for (size_t i = 0; r == 0 && i < opt->sinks_n; i++)
		r = confine_files_add_sink(&c, &opt->sinks[i], err);
	if (r == 0 && opt->witness)
		r = confine_files_add_sink(&c, opt->witness, err);
	return r < 0 ? r : confine_files_end(&c, err);
}

static int setup(struct engine *e, struct err *err)
{
	const struct engine_options *opt = e->opt;
	uint32_t calls =
		CONFINE_LOOK | CONFINE_KEEP | CONFINE_TALK | CONFINE_THREAD | CONFINE_ANSWER;
	int r;

	r = drop_descriptors(e);
	if (r < 0)
		return err_set(err, r, "closing descriptors: %m");
	/* Threads that a sink's library makes have it from their maker. */
	r = confine_to_files(opt, err);
	if (r < 0)
		return r;
	/* Sinks first: their files and keys may be for root only. */
	r = open_sinks(e, err);
	if (r < 0)
		return r;
	r = privdrop(e->opt->uid, e->opt->gid, err);
	if (r < 0)
		return err_wrap(err, r, "dropping privileges");
	r = confine_calls(opt->sinks_n || opt->witness ? calls | CONFINE_DIAL : calls, err);
	if (r < 0)
		return r;
	if (e->opt->redactor && (redaction_new(&e->redaction, e->opt->redactor) < 0 ||
				 redaction_of_log(e->opt->redactor) < 0))
		return err_set(err, ENOMEM, "setting up redaction: %m");
	e->workspace.redact = redaction_redact(e->redaction);
	r = open_journal(e, err);
	if (r == 0)
		r = open_recorder(e, err);
	if (r == 0)
		r = engine_guest_start(e, err);
	if (r == 0)
		r = engine_notify_start(e, err);
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

static void check_gaps(struct engine *e, bool now)
{
	struct capture_gap gaps[GAPS_MAX];
	uint64_t t = clock_ns(CLOCK_MONOTONIC);
	size_t n;

	if (!now && t < e->next_gap_check)
		return;
	e->next_gap_check = t + GAP_CHECK_NS;
	if (e->fanout)
		engine_gauges_update(e);
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
	capture_drain(e->opt->capture, true, engine_feed, e, &held);
	read_egress(e, true);
	engine_guest_read(e, true);
	check_gaps(e, true);
	kept = finish_output(e, &output);
	pipeline_session_stats(e->pipeline, e->opt->session.sandbox_id, &stats);
	o = outcome_of(facts, stats.verdict != SESSION_UNDECIDED ? stats.verdict
			      : e->pressure_killed		 ? SESSION_KILLED_FOR_EVENTS
			      : e->store.killed			 ? SESSION_KILLED_FOR_RECORD
								 : SESSION_UNDECIDED);
	engine_guest_died(e, facts, &o);
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

static void take_notify(struct engine *e, struct engine_msg *msg, int listener)
{
	msg->text[sizeof(msg->text) - 1] = 0;
	if (listener >= 0)
		engine_notify_take(e, listener);
	else
		say_degraded(e, msg->text);
}

static void read_control(struct engine *e)
{
	struct engine_msg msg;
	int passed;
	ssize_t n = fd_recv(e->fd, &msg, sizeof(msg), &passed, 1, MSG_DONTWAIT);

	if (passed >= 0 &&
	    (n != sizeof(msg) || (msg.type != ENGINE_RULES && msg.type != ENGINE_WORKSPACE &&
				  msg.type != ENGINE_NOTIFY && msg.type != ENGINE_PROCESSES)))
		close(take_fd(passed));
	if (n == -EAGAIN || n == -EINTR)
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
		engine_begin_rules(e, &msg.rules, passed);
	else if (msg.type == ENGINE_WORKSPACE)
		workspace_take(&e->workspace, e->pipeline, e->opt->session.sandbox_id, passed);
	else if (msg.type == ENGINE_PROCESSES)
		engine_guest_processes(e, passed);
	else if (msg.type == ENGINE_NOTIFY)
		take_notify(e, &msg, passed);
	else if (msg.type == ENGINE_THAW)
		engine_let_go(e);
	else if (msg.type == ENGINE_USAGE)
		engine_gauges_usage(e, msg.used);
	else if (msg.type == ENGINE_FINISH)
		finish(e, &msg.facts);
}

/* -1: until something happens. */
static int next_timeout(const struct engine *e, int tick, size_t held, int got, uint64_t asked)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC), written = journal_deadline(e->journal);

	if (got >= STORM_RECORDS)
		tick = STORM_TICK_MS;
	else if (held)
		return 1;
	if (tick < 0 && e->fanout &&
	    sink_watch_is_needed(&e->sinks, journal_next_seq(e->journal) - 1))
		tick = SINK_WATCH_NS / NSEC_PER_MSEC;
	tick = clock_sooner(tick, clock_boot_ns(), engine_guest_deadline(e));
	tick = clock_sooner(tick, now, pipeline_deadline(e->pipeline));
	if (asked) /* those who ask too often wait as long */
		tick = clock_sooner(tick, 0, asked);
	return written ? clock_sooner(tick, now, written) : tick;
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
			{ .fd = gvisor_sink_fd(e->guest.sink), .events = POLLIN },
		};
		uint64_t deadline, begun = e->guest.sink ? clock_boot_ns() : 0;
		bool more;
		uint64_t asked;
		int n, got;

		got = capture_drain(e->opt->capture, false, engine_feed, e, &held);
		tick = next_tick(e, tick, got + (int)held);
		if (tick < 0) /* what came before the kernel knew that we sleep */
			got += capture_drain(e->opt->capture, false, engine_feed, e, &held);
		if (!held)
			engine_guest_host_read(e, begun);
		more = engine_guest_read(e, false);
		pipeline_end_turn(e->pipeline);
		pipeline_tick(e->pipeline);
		engine_check_stopped(e);
		check_gaps(e, false);
		check_pressure(e);
		check_sinks(e);
		deadline = journal_deadline(e->journal);
		if (deadline && deadline <= clock_ns(CLOCK_MONOTONIC))
			commit(e);
		if (e->fanout && (got > 0 || deadline))
			fanout_notify(e->fanout);
		control_poll(&e->control, fds + ENGINE_FDS);
		fds[6] = (struct pollfd){ .fd = engine_notify_fd(e, &asked), .events = POLLIN };
		n = poll(fds, ARRAY_SIZE(fds), more ? 0 : next_timeout(e, tick, held, got, asked));
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0 && fds[2].revents)
			engine_change_rules(e);
		if (n > 0 && fds[4].revents)
			tell_output(e);
		if (n > 0)
			control_serve(&e->control, fds + ENGINE_FDS, engine_carry_out, e);
		if (n > 0 && fds[1].revents)
			read_control(e);
		if (n > 0 && fds[3].revents && !e->finished)
			read_egress(e, false);
		if (n > 0 && fds[6].revents && !e->finished)
			engine_notify_read(e);
	}
}

void engine_main(int fd, const struct engine_options *opt)
{
	struct engine_options own = *opt;
	struct engine e = {
		.opt = &own,
		.fd = fd,
		.egress_fd = opt->egress_fd,
		.store.policy = opt->when_full,
		.notify = { .fd = -1, .proc_fd = -1 },
	};
	struct engine_msg msg = { .type = ENGINE_READY };
	struct err err = { 0 };
	sigset_t all;

	own.session.target.let_go = engine_notify_let_go;
	own.session.target.arg = &e;
	engine_gauges_init(&e);
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
	engine_guest_free(&e);
	engine_notify_free(&e);
	recorder_free(e.recorder);
	journal_free(e.journal);
	pipeline_free(e.pipeline);
	redaction_free(e.redaction);
	ruleset_free(e.rules);
	_exit(0);
}
