// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/replay_tty.h"
#include "userspace/cli/replay_ui.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/rejudge.h"
#include "userspace/pipeline/walk.h"
#include "userspace/replay/timeline.h"
#include "userspace/store/store.h"

DEFINE_AUTO(rule_filter, rule_filter_free)
DEFINE_AUTO(ruleset, ruleset_free)

struct replay_args {
	const char *filter;
	struct option_list rules;
	uint64_t speed, from, to, idle;
	bool tty, events, alerts, default_rules, json, help;
};

#define AT(member) offsetof(struct replay_args, member)

static const struct option_def OPTIONS[] = {
	{ "events", 0, OPT_FLAG, AT(events), NULL,
	  "the whole timeline at once, not in its own time" },
	{ "tty", 0, OPT_FLAG, AT(tty), NULL,
	  "what its terminal or output showed, and nothing else; harmless for the terminal it is shown on" },
	{ "speed", 0, OPT_FRACTION, AT(speed), "X", "so many times as fast: 0.5, 10 (default: 1)" },
	{ "idle-limit", 0, OPT_DURATION, AT(idle), "TIME",
	  "shorten silences to so much (default: 10s; 0: none)" },
	{ "from", 0, OPT_DURATION, AT(from), "TIME",
	  "begin so long after the session's start: 90s" },
	{ "to", 0, OPT_DURATION, AT(to), "TIME", "end so long after the session's start" },
	{ "filter", 'f', OPT_STR, AT(filter), "EXPR", "only events that match a rule condition" },
	{ "alerts", 0, OPT_FLAG, AT(alerts), NULL,
	  "only alerts, actions, escapes, limits and gaps, between its start and end" },
	{ "rules", 'r', OPT_STRLIST, AT(rules), "FILE",
	  "judge the session again by these rules, and print what differs; repeatable" },
	{ "default-rules", 0, OPT_FLAG, AT(default_rules), NULL,
	  "with --rules, or alone: the default packs as well" },
	{ "json", 0, OPT_FLAG, AT(json), NULL, "with --rules: one JSON object a difference" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Show what happened in a session, a line an event: when, which process (indented by its\n"
	"place in the process tree), and what it did. On a terminal in its own time, below what the\n"
	"session's terminal showed: space pauses, + - speed, arrows [ ] move, g time, n N alerts,\n"
	"/ search, ? help, q leaves. Into a pipe, or with --events, at once and without keys.\n\n"
	"With --rules: nothing is replayed, the recorded events are judged again, as they were\n"
	"recorded: what was redacted is judged as the mark that stands there. Exit code 0: the\n"
	"same alerts; 1: a difference; 125: error.";

/* ---- timeline ---- */

struct player {
	const struct replay_args *args;
	struct rule_filter *filter;
	struct timeline timeline;
	uint64_t shown; /* `mono` of the last line, for the pauses */
	bool paced;
	struct buf line;
};

static bool is_grave(enum wire_kind kind)
{
	switch (kind) {
	case WIRE_RULE_ALERT:
	case WIRE_ACTION:
	case WIRE_APPROVAL:
	case WIRE_ESCAPE:
	case WIRE_OOM:
	case WIRE_LIMIT:
	case WIRE_GAP:
	case WIRE_SESSION_START:
	case WIRE_SESSION_STOP:
		return true;
	default:
		return false;
	}
}

/* By --alerts and --filter. */
static bool is_chosen(const struct player *p, const struct event *ev)
{
	if (p->args->alerts && !is_grave(ev->kind))
		return false;
	return !p->filter || rule_filter_match(p->filter, ev);
}

static int open_filter(struct rule_filter **ret, const struct replay_args *args, struct err *err)
{
	int r = args->filter ? rule_filter_new(ret, str_from(args->filter), err) : 0;

	return r < 0 ? err_wrap(err, r, "--filter") : 0;
}

static bool is_wanted(const struct player *p, const struct event *ev)
{
	uint64_t mono = event_u64(ev, F_MONO), start = p->timeline.start;
	uint64_t at = mono > start && start ? mono - start : 0;

	if (at < p->args->from || (p->args->to && at > p->args->to))
		return false;
	return is_chosen(p, ev);
}

/* Sleep as long as the session did. Ctrl-C ends it as it ends any program. */
static void pace(struct player *p, uint64_t mono)
{
	uint64_t ns;

	if (!p->paced)
		return;
	if (p->shown && mono > p->shown) {
		ns = (mono - p->shown) / p->args->speed * 1000;
		if (p->args->idle)
			ns = MIN(ns, p->args->idle);
		fflush(stdout);
		nanosleep(&(struct timespec){ (time_t)(ns / NSEC_PER_SEC),
					      (long)(ns % NSEC_PER_SEC) },
			  NULL);
	}
	p->shown = mono;
}

static int show(void *arg, const struct event *ev, struct err *err)
{
	struct player *p = arg;

	if (!p->timeline.start)
		p->timeline.start = event_u64(ev, F_MONO);
	if (!is_wanted(p, ev))
		return 0;
	pace(p, event_u64(ev, F_MONO));
	buf_reset(&p->line);
	if (timeline_line(&p->timeline, ev, &p->line) < 0 || buf_addc(&p->line, '\n') < 0)
		return err_set(err, ENOMEM, "%m");
	/* Not 0: the reader of our output has gone, or cli_finish_output tells. */
	return fwrite(p->line.p, 1, p->line.n, stdout) != p->line.n;
}

static int play(struct player *p, int fd, struct err *err)
{
	return session_walk(fd, show, p, NULL, err);
}

static int replay_timeline(const struct replay_args *args, int fd, struct err *err)
{
	AUTO(rule_filter) struct rule_filter *filter = NULL;
	const char *no_colour = getenv("NO_COLOR");
	struct player p = {
		.args = args,
		.paced = isatty(STDOUT_FILENO) && !args->events,
		.timeline.colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour),
	};
	int r = open_filter(&filter, args, err);

	if (r < 0)
		return r;
	p.filter = filter;
	buf_init(&p.line, 1 << 20);
	r = play(&p, fd, err);
	buf_done(&p.line);
	return r;
}

/* ---- at a terminal ---- */

static bool ui_wants(void *arg, const struct event *ev)
{
	return is_chosen(arg, ev);
}

/* What is shown was made by whoever is replayed: it is read with the rights of the record's owner, not of root. */
static int give_up_root(int bundle, struct err *err)
{
	struct stat st;

	if (geteuid() != 0 || fstat(bundle, &st) < 0 || st.st_uid == 0 || st.st_gid == 0)
		return 0;
	return privdrop(st.st_uid, st.st_gid, err);
}

static int replay_keys(const struct replay_args *args, int fd, struct err *err)
{
	AUTO(rule_filter) struct rule_filter *filter = NULL;
	const char *no_colour = getenv("NO_COLOR");
	struct player p = { .args = args };
	const struct replay_ui ui = {
		.playback = { .colour = !(no_colour && *no_colour),
			      .to = args->to,
			      .wanted = ui_wants,
			      .arg = &p },
		.speed = args->speed,
		.idle_ns = args->idle,
		.from = args->from,
	};
	int r = open_filter(&filter, args, err);

	if (r < 0)
		return r;
	p.filter = filter;
	r = give_up_root(fd, err);
	return r < 0 ? r : replay_ui(&ui, fd, err);
}

/* A terminal that takes no more than lines gets lines. */
static bool has_keys(const struct replay_args *args)
{
	const char *term = getenv("TERM");

	return !args->events && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

/* ---- judging again ---- */

static void print_change_json(const struct rejudge_change *c)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "change");
	json_strz(&j, c->added ? "added" : "removed");
	json_key(&j, "seq");
	json_u64(&j, c->seq);
	json_key(&j, "rule");
	json_strz(&j, c->rule);
	json_key(&j, "kind");
	json_str(&j, event_str(c->ev, F_KIND));
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
}

static void print_change(void *arg, const struct rejudge_change *c)
{
	const struct replay_args *args = arg;
	auto_buf struct buf out = { 0 };

	if (args->json) {
		print_change_json(c);
		return;
	}
	text_for_terminal(str_from(c->rule), 200, &out);
	buf_addz(&out, "\n        ");
	if (timeline_what(c->ev, &out) == 0)
		printf("%c %6llu  %.*s\n", c->added ? '+' : '-', (unsigned long long)c->seq,
		       (int)out.n, out.p);
}

static int replay_rules(struct replay_args *args, int fd, int *ret_code, struct err *err)
{
	AUTO(ruleset) struct ruleset *rules = NULL;
	struct rejudge_counts n;
	int r;

	if (cli_load_rules(&rules, args->default_rules, &args->rules) < 0)
		return -EINVAL;
	r = rejudge_session(fd, rules, print_change, args, &n, err);
	if (r < 0)
		return r;
	*ret_code = n.added || n.removed;
	if (!args->json)
		printf("%llu event%s judged: %llu alert%s as recorded, %llu added, %llu gone\n",
		       (unsigned long long)n.events, n.events == 1 ? "" : "s",
		       (unsigned long long)n.same, n.same == 1 ? "" : "s",
		       (unsigned long long)n.added, (unsigned long long)n.removed);
	if (!args->json && n.redacted)
		printf("of %llu of them something was redacted: a rule about just that judges the mark, and not "
		       "what stood there\n",
		       (unsigned long long)n.redacted);
	return 0;
}

int cmd_replay(int argc, char **argv)
{
	struct replay_args args = { .speed = 1000, .idle = REPLAY_IDLE_NS };
	auto_close int fd = -1;
	struct err err = { 0 };
	int n, r, code = 0;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("replay", &err);
	if (args.help) {
		cli_usage("replay [OPTIONS] SESSION|DIR", PURPOSE, OPTIONS);
		return 0;
	}
	if (n == 1 && args.tty &&
	    (args.events || args.filter || args.alerts || args.rules.n || args.default_rules)) {
		err_set(&err, EINVAL, "option '--tty' shows no events: leave the others out");
		return cli_bad_usage("replay", &err);
	}
	if (n != 1 || !args.speed) {
		err_set(&err, EINVAL,
			n == 0	? "which session?"
			: n > 1 ? "one session at a time"
				: "option '--speed': 0 would never end");
		return cli_bad_usage("replay", &err);
	}
	if (bundle_open(&fd, argv[1], "replay", &err) < 0)
		return cli_fail(&err);
	if (args.tty)
		r = replay_tty(
			&(struct replay_tty){ .speed = args.speed,
					      .from = args.from,
					      .to = args.to,
					      .paced = isatty(STDOUT_FILENO),
					      .idle_ns = args.idle ? args.idle : UINT64_MAX },
			fd, &err);
	else if (args.rules.n || args.default_rules)
		r = replay_rules(&args, fd, &code, &err);
	else if (has_keys(&args))
		r = replay_keys(&args, fd, &err);
	else
		r = replay_timeline(&args, fd, &err);
	if (r == 0 && !ferror(stdout))
		r = bundle_check_end(fd, UINT64_MAX, &err);
	if (r < 0) {
		fflush(stdout);
		if (!err.code)
			return EXIT_WARDER; /* told already */
		err_wrap(&err, r, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	return cli_finish_output(code);
}
