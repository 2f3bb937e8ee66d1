// SPDX-License-Identifier: Apache-2.0
/* Records in, journal out: the order of the stages, the kill, and what happens when the disk fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/pipeline/pipeline.h"

#define SESSION "01HZZZZZZZZZZZZZZZZZZZZZZZ"

static const char RULES[] =
	"- rule: tool seen\n  desc: x\n  condition: kind = exec and proc.exe = /usr/bin/tool\n"
	"  output: tool %proc.exe\n  priority: NOTICE\n"
	"- rule: breakout\n  desc: x\n  condition: kind = escape and escape.type = setns\n"
	"  output: breakout by %proc.comm\n  priority: CRITICAL\n  action: kill\n"
	"- rule: any escape\n  desc: x\n  condition: kind = escape\n"
	"  output: escape\n  priority: WARNING\n  action: kill\n"
	"- rule: blinded\n  desc: x\n  condition: kind = gap and gap.kind = escape\n"
	"  output: lost %gap.count\n  priority: CRITICAL\n  action: kill\n";

struct fixture {
	char dir[64];
	int dirfd;
	struct ruleset *rules;
	struct journal *journal;
	struct pipeline *pipeline;
	struct action_target target;
};

static int memfile(const char *text)
{
	int fd = memfd_create("cgroup", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	return fd;
}

static int setup(void **state)
{
	static struct fixture f;
	const struct journal_options jo = { .session = SESSION, .no_sync = true };
	struct session_options so = {
		.sandbox_id = 1,
		.session = SESSION,
		.name = "box",
		.host = "node1",
		.tier = "portable",
		.memory_limit = 1 << 20,
	};
	struct err err = { 0 };

	strcpy(f.dir, "/tmp/test_pipeline.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	f.dirfd = open(f.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(ruleset_new(&f.rules, NULL, NULL), 0);
	assert_int_equal(ruleset_add_text(f.rules, "t.yaml", str_from(RULES), &err), 0);
	assert_int_equal(ruleset_compile(f.rules, &err), 0);
	assert_int_equal(journal_create(&f.journal, f.dirfd, &jo, &err), 0);
	f.target =
		(struct action_target){ memfile(""), -1, memfile("populated 0\n"), -1, NULL, NULL };
	so.target = f.target;
	so.journal = f.journal;
	assert_int_equal(pipeline_new(&f.pipeline, f.rules), 0);
	assert_int_equal(pipeline_session_add(f.pipeline, &so), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	char cmd[128];

	pipeline_free(f->pipeline);
	journal_free(f->journal);
	ruleset_free(f->rules);
	close(f->target.kill_fd);
	close(f->target.events_fd);
	close(f->dirfd);
	snprintf(cmd, sizeof(cmd), "rm -r %s", f->dir);
	return system(cmd);
}

static struct wire_hdr header(enum wire_kind kind, uint32_t sandbox)
{
	return (struct wire_hdr){ .kind = (uint16_t)kind,
				  .ts = clock_boot_ns(),
				  .sandbox = sandbox,
				  .tgid = 100,
				  .tid = 100,
				  .start = 5,
				  .nr = WIRE_NR_NONE,
				  .comm = "tool" };
}

static void feed_exec(struct fixture *f, const char *exe, uint32_t sandbox)
{
	static const char args[] = "tool\0--x";
	char rec[1024] = { 0 };
	struct wire_exec e = { .h = header(WIRE_EXEC, sandbox) };

	e.exe = (struct wire_str){ sizeof(e), (uint16_t)strlen(exe) };
	e.args = (struct wire_str){ (uint16_t)(sizeof(e) + strlen(exe)), sizeof(args) };
	e.args_total = sizeof(args);
	e.argc = 2;
	e.h.len = (uint32_t)(sizeof(e) + strlen(exe) + sizeof(args));
	memcpy(rec, &e, sizeof(e));
	memcpy(rec + e.exe.off, exe, e.exe.len);
	memcpy(rec + e.args.off, args, sizeof(args));
	assert_int_equal(pipeline_feed(f->pipeline, rec, e.h.len), 0);
}

static void feed_escape(struct fixture *f, enum wire_escape_type type)
{
	struct wire_escape e = { .h = header(WIRE_ESCAPE, 1), .type = type };

	e.h.len = sizeof(e);
	assert_int_equal(pipeline_feed(f->pipeline, &e, sizeof(e)), 0);
}

/* All records of the journal, one a line. */
static char *read_all(struct fixture *f)
{
	struct journal_reader *reader;
	struct err err = { 0 };
	struct buf out = { 0 };
	struct str rec;
	uint64_t seq;

	journal_commit(f->journal);
	assert_int_equal(journal_reader_open(&reader, f->dirfd, &err), 0);
	while (journal_reader_next(reader, &rec, &seq, &err) == 1) {
		buf_add(&out, rec.p, rec.n);
		buf_addc(&out, '\n');
	}
	journal_reader_free(reader);
	buf_addc(&out, 0);
	return out.p;
}

static void assert_in_order(const char *text, const char *const *parts)
{
	for (; *parts; parts++) {
		const char *p = strstr(text, *parts);

		if (!p)
			fail_msg("'%s' is not where it should be in:\n%s", *parts, text);
		text = p + strlen(*parts);
	}
}

static void an_alert_follows_its_event(void **state)
{
	static const char *const want[] = { "\"id\":\"" SESSION ":1\"",
					    "\"kind\":\"exec\"",
					    "\"args\":[\"tool\",\"--x\"]",
					    "\n",
					    "\"id\":\"" SESSION ":2\"",
					    "\"kind\":\"rule.alert\"",
					    "\"vantage\":\"agent\"",
					    "\"name\":\"tool seen\"",
					    "\"output\":\"tool /usr/bin/tool\"",
					    "\"trigger\":\"" SESSION ":1\"",
					    NULL };
	struct fixture *f = *state;
	struct session_stats st;
	char *text;

	feed_exec(f, "/usr/bin/tool", 1);
	text = read_all(f);
	assert_in_order(text, want);
	free(text);
	assert_int_equal(pipeline_session_stats(f->pipeline, 1, &st), 0);
	assert_int_equal(st.events, 2);
	assert_int_equal(st.alerts, 1);
	assert_int_equal(st.verdict, SESSION_UNDECIDED);
}

static void a_kill_happens_once_and_is_recorded(void **state)
{
	static const char *const want[] = { "\"kind\":\"escape\"",
					    "\"type\":\"setns\"",
					    "\n",
					    "\"kind\":\"rule.alert\"",
					    "\"name\":\"breakout\"",
					    "\n",
					    "\"kind\":\"rule.alert\"",
					    "\"name\":\"any escape\"",
					    "\n",
					    "\"kind\":\"action\"",
					    "\"name\":\"breakout\"",
					    "\"type\":\"kill\"",
					    "\"scope\":\"sandbox\"",
					    "\"result\":\"done\"",
					    "\"latency_ns\":",
					    "\n",
					    "\"kind\":\"escape\"",
					    "\"kind\":\"rule.alert\"",
					    NULL };
	struct fixture *f = *state;
	struct session_stats st;
	char *text, written[4] = "";

	feed_escape(f, WIRE_ESCAPE_SETNS);
	assert_int_equal(pread(f->target.kill_fd, written, 3, 0), 1);
	assert_string_equal(written, "1");
	feed_escape(f, WIRE_ESCAPE_BPF);
	text = read_all(f);
	assert_in_order(text, want);
	free(text);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.verdict, SESSION_KILLED_BY_RULE);
	assert_string_equal(st.rule, "breakout");
	assert_int_equal(st.actions, 1);
	assert_int_equal(st.alerts, 3);
}

static void oom_kills_the_sandbox_and_names_the_limit(void **state)
{
	static const char *const want[] = { "\"kind\":\"oom\"",	 "\"type\":\"memory\"",
					    "\"value\":1048576", "\"kind\":\"action\"",
					    "\"type\":\"kill\"", NULL };
	struct wire_oom oom = { .h = header(WIRE_OOM, 1) };
	struct fixture *f = *state;
	struct session_stats st;
	char *text;

	oom.h.len = sizeof(oom);
	assert_int_equal(pipeline_feed(f->pipeline, &oom, sizeof(oom)), 0);
	text = read_all(f);
	assert_in_order(text, want);
	free(text);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.verdict, SESSION_OOM);
}

static void foreign_and_broken_records_are_counted_not_emitted(void **state)
{
	struct fixture *f = *state;
	struct pipeline_counters c;
	struct session_stats st;
	char junk[64] = { 1, 2, 3 };

	feed_exec(f, "/usr/bin/tool", 2);
	assert_int_equal(pipeline_feed(f->pipeline, junk, sizeof(junk)), 0);
	pipeline_counters(f->pipeline, &c);
	assert_int_equal(c.fed, 2);
	assert_int_equal(c.unattributed, 1);
	assert_int_equal(c.emitted, 0);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.events, 0);
}

static void a_loss_becomes_a_gap_event(void **state)
{
	static const char *const want[] = { "\"kind\":\"gap\"",
					    "\"kind\":\"file.open\"",
					    "\"count\":42",
					    "\"reason\":\"ring_full\"",
					    "\"first\":\"",
					    "\"last\":\"",
					    "\"count\":1,",
					    "\"reason\":\"hook_missed\"",
					    "\"count\":2,",
					    "\"reason\":\"guest\"",
					    NULL };
	const struct capture_gap gap = { 1, WIRE_FILE_OPEN, 42, 1000, 2000, false, false, false };
	const struct capture_gap anybody = { 0, 0, 1, 1000, 2000, false, true, false };
	const struct capture_gap guest = { 1, 0, 2, 1000, 2000, false, false, true };
	struct fixture *f = *state;
	struct session_stats st;
	char *text;

	pipeline_gaps(f->pipeline, &gap, 1);
	pipeline_gaps(f->pipeline, &anybody, 1);
	pipeline_gaps(f->pipeline, &guest, 1);
	text = read_all(f);
	assert_in_order(text, want);
	free(text);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.gaps, 45);
	assert_int_equal(st.gap_events, 3);
}

/* Or a flood would hide what a rule kills for. */
static void a_loss_is_judged(void **state)
{
	static const char *const want[] = { "\"kind\":\"gap\"",
					    "\"kind\":\"escape\"",
					    "\n",
					    "\"kind\":\"rule.alert\"",
					    "\"name\":\"blinded\"",
					    "\"output\":\"lost 7\"",
					    "\n",
					    "\"kind\":\"action\"",
					    "\"type\":\"kill\"",
					    NULL };
	const struct capture_gap other = { 1, WIRE_EXEC, 42, 1000, 2000, false, false, false };
	const struct capture_gap gap = { 1, WIRE_ESCAPE, 7, 1000, 2000, false, false, false };
	struct fixture *f = *state;
	struct session_stats st;
	char *text;

	pipeline_gaps(f->pipeline, &other, 1);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.verdict, SESSION_UNDECIDED);
	pipeline_gaps(f->pipeline, &gap, 1);
	text = read_all(f);
	assert_in_order(text, want);
	free(text);
	pipeline_session_stats(f->pipeline, 1, &st);
	assert_int_equal(st.verdict, SESSION_KILLED_BY_RULE);
	assert_int_equal(st.gaps, 49);
}

static void sessions_are_found_by_id_and_forgotten(void **state)
{
	struct fixture *f = *state;
	struct session_options so = { .sandbox_id = 1, .session = SESSION };
	struct session_stats st;

	assert_int_equal(pipeline_session_add(f->pipeline, &so), -EEXIST);
	so.sandbox_id = 0;
	assert_int_equal(pipeline_session_add(f->pipeline, &so), -ERANGE);
	/* The next one at the same place. */
	so.sandbox_id = capture_session_id(1, 1);
	assert_int_equal(pipeline_session_add(f->pipeline, &so), -EEXIST);
	pipeline_session_remove(f->pipeline, so.sandbox_id);
	assert_int_equal(pipeline_session_stats(f->pipeline, 1, &st), 0);
	pipeline_session_remove(f->pipeline, 1);
	assert_int_equal(pipeline_session_stats(f->pipeline, 1, &st), -ENOENT);
	assert_int_equal(pipeline_session_add(f->pipeline, &so), 0);
	assert_int_equal(pipeline_session_stats(f->pipeline, so.sandbox_id, &st), 0);
	assert_int_equal(pipeline_session_stats(f->pipeline, 1, &st), -ENOENT);
}

static struct ruleset *other_rules(const char *text)
{
	struct ruleset *rs;
	struct err err = { 0 };

	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	ruleset_allow_state(rs);
	assert_int_equal(ruleset_add_text(rs, "t.yaml", str_from(text), &err), 0);
	assert_int_equal(ruleset_compile(rs, &err), 0);
	return rs;
}

static size_t count(const char *all, const char *text)
{
	size_t n = 0;

	while ((all = strstr(all, text)) != NULL) {
		all++;
		n++;
	}
	return n;
}

#define EXEC_RULE(name, more) \
	"- rule: " name       \
	"\n  desc: x\n  condition: kind = exec\n  output: o\n  priority: NOTICE\n" more

/* From one event to the next the other rules hold, what they count goes on, and each alert says by
 * which set it was given. */
static void rules_change_between_two_events(void **state)
{
	static const char counting[] = EXEC_RULE("third", "  count: 3\n  window: 1h\n");
	struct fixture *f = *state;
	struct ruleset *a = other_rules(counting), *b = other_rules(EXEC_RULE("each", "") EXEC_RULE(
							   "third", "  count: 3\n  window: 1h\n"));
	auto_free char *all = NULL;
	char text[128];
	size_t kept = 9;

	assert_int_equal(pipeline_set_rules(f->pipeline, a, &kept), 0);
	assert_int_equal(kept, 0);
	feed_exec(f, "/usr/bin/tool", 1);
	feed_exec(f, "/usr/bin/tool", 1);
	assert_int_equal(pipeline_set_rules(f->pipeline, b, &kept), 0);
	assert_int_equal(kept, 1);
	ruleset_free(a);
	feed_exec(f, "/usr/bin/tool", 1);
	all = read_all(f);
	assert_int_equal(count(all, "\"kind\":\"rule.alert\""), 2);
	assert_int_equal(count(all, "\"name\":\"third\""), 1);
	assert_int_equal(count(all, "\"name\":\"each\""), 1);
	snprintf(text, sizeof(text), "\"set\":\"%s\"", ruleset_hash(b));
	assert_int_equal(count(all, text), 2);
	assert_int_equal(pipeline_set_rules(f->pipeline, f->rules, &kept), 0);
	ruleset_free(b);
}

static void held_back_alerts_are_told_in_the_end(void **state)
{
	struct fixture *f = *state;
	struct ruleset *rs = other_rules(EXEC_RULE("each", "  throttle: 1h\n"));
	struct wire_session stop = { .h = header(WIRE_SESSION_STOP, 1) };
	auto_free char *all = NULL;
	size_t kept;

	assert_int_equal(pipeline_set_rules(f->pipeline, rs, &kept), 0);
	for (int i = 0; i < 4; i++)
		feed_exec(f, "/usr/bin/tool", 1);
	stop.h.len = sizeof(stop);
	assert_int_equal(pipeline_feed(f->pipeline, &stop, sizeof(stop)), 0);
	all = read_all(f);
	assert_int_equal(count(all, "\"kind\":\"rule.alert\""), 1);
	assert_int_equal(count(all, "\"kind\":\"exec\""), 4);
	assert_non_null(strstr(all, "3 alerts of rule 'each' were held back by its throttle"));
	assert_non_null(strstr(all, "\"suppressed\":3"));
	assert_int_equal(pipeline_set_rules(f->pipeline, f->rules, &kept), 0);
	ruleset_free(rs);
}

/* Who makes many values has no counter of another forgotten in silence. */
static void forgotten_counters_are_told_in_the_end(void **state)
{
	struct fixture *f = *state;
	struct ruleset *rs =
		other_rules(EXEC_RULE("each", "  count: 3\n  window: 1h\n  by: proc.exe\n"));
	struct wire_session stop = { .h = header(WIRE_SESSION_STOP, 1) };
	auto_free char *all = NULL;
	size_t kept;

	assert_int_equal(pipeline_set_rules(f->pipeline, rs, &kept), 0);
	for (int i = 0; i < 67; i++) {
		char exe[32];

		snprintf(exe, sizeof(exe), "/usr/bin/%d", i);
		feed_exec(f, exe, 1);
	}
	stop.h.len = sizeof(stop);
	assert_int_equal(pipeline_feed(f->pipeline, &stop, sizeof(stop)), 0);
	all = read_all(f);
	assert_non_null(strstr(all, "3 counters of rules were forgotten within their time"));
	assert_int_equal(count(all, "\"kind\":\"audit.rules\""), 1);
	assert_int_equal(pipeline_set_rules(f->pipeline, f->rules, &kept), 0);
	ruleset_free(rs);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* The event has the form that FORMAT.md gives: verify reads it. */
static void the_terminal_is_bound(void **state)
{
	struct fixture *f = *state;
	const struct journal_options jo = { .session = SESSION, .no_sync = true };
	const struct terminal_record rec = { .type = TERMINAL_OUTPUT, .data = STR("hello\r\n") };
	const struct terminal_record size = { .type = TERMINAL_RESIZE, .cols = 80, .rows = 24 };
	struct terminal_log *log = NULL;
	struct verify_report rep;
	struct terminal_mark mark;
	struct terminal_end end;
	struct journal_seal seal = { .terminal = &end };

	assert_int_equal(terminal_log_create(&log, f->dirfd, &jo, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(terminal_log_append(log, i ? &rec : &size), 0);
		assert_int_equal(terminal_log_commit(log, &mark), 0);
		assert_int_equal(pipeline_terminal(f->pipeline, 1, &mark), 0);
	}
	terminal_log_end(log, &end);
	terminal_log_free(log);
	assert_int_equal(pipeline_terminal(f->pipeline, 7, &mark), -ENOENT);
	assert_int_equal(journal_seal(f->journal, &seal), 0);
	assert_int_equal(store_verify(f->dirfd, &rep, NULL, NULL, NULL), 0);
	if (rep.state != VERIFY_OK)
		fail_msg("%s", rep.text);
	assert_int_equal(rep.terminal_records, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_alert_follows_its_event),
		CASE(a_kill_happens_once_and_is_recorded),
		CASE(oom_kills_the_sandbox_and_names_the_limit),
		CASE(foreign_and_broken_records_are_counted_not_emitted),
		CASE(a_loss_becomes_a_gap_event),
		CASE(a_loss_is_judged),
		CASE(sessions_are_found_by_id_and_forgotten),
		CASE(rules_change_between_two_events),
		CASE(held_back_alerts_are_told_in_the_end),
		CASE(forgotten_counters_are_told_in_the_end),
		CASE(the_terminal_is_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
