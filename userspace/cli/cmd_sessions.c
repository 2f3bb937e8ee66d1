// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/plain.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/sessions.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/outcome.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/trail.h"
#include "userspace/replay/timeline.h"
#include "userspace/store/hostlog.h"

DEFINE_AUTO(catalog, catalog_close)
DEFINE_AUTO(session_holds, session_holds_free)

#define SHOW_FACTS 20
#define TIME_SHOWN 19 /* up to the second */
#define NOT_GIVEN  PRUNE_NOT_GIVEN

struct sessions_args {
	const char *since, *until, *tenant, *name, *rule, *exe, *path, *dst, *reason, *state, *why;
	uint64_t limit, older, max_bytes;
	bool json, dry_run, sent, unsent, all, help;
};

#define AT(member) offsetof(struct sessions_args, member)

static const struct option_def OPTIONS[] = {
	{ "since", 0, OPT_STR, AT(since), "TIME",
	  "started at or after: 24h (ago), 2026-01-31, 2026-01-31T12:00:00Z" },
	{ "until", 0, OPT_STR, AT(until), "TIME", "started before" },
	{ "tenant", 0, OPT_STR, AT(tenant), "GLOB", "of this tenant" },
	{ "name", 0, OPT_STR, AT(name), "GLOB", "name of the sandbox" },
	{ "rule", 0, OPT_STR, AT(rule), "GLOB", "in which this rule fired" },
	{ "exe", 0, OPT_STR, AT(exe), "GLOB", "that executed this" },
	{ "path", 0, OPT_STR, AT(path), "GLOB", "that opened or changed this file" },
	{ "dst", 0, OPT_STR, AT(dst), "GLOB",
	  "that asked for this name or connected to this address" },
	{ "reason", 0, OPT_STR, AT(reason), "WORD",
	  "that ended so: exit, signal, rule, oom, timeout ..." },
	{ "state", 0, OPT_STR, AT(state), "WORD",
	  "sealed, open, damaged (unreadable, cut or added to), or other: the record of another session "
	  "lies in its place" },
	{ "limit", 'n', OPT_U64, AT(limit), "N", "list, search, log: the newest N" },
	{ "all", 'a', OPT_FLAG, AT(all), NULL,
	  "show: all values, not the most frequent 20 of a kind" },
	{ "older", 0, OPT_DURATION, AT(older), "TIME", "prune: those that ended longer ago: 90d" },
	{ "max-bytes", 0, OPT_SIZE, AT(max_bytes), "SIZE",
	  "prune: the oldest, until all records together are no larger" },
	{ "sent", 0, OPT_FLAG, AT(sent), NULL,
	  "prune: those that all sinks with required=yes have taken whole, if any has to" },
	{ "unsent", 0, OPT_FLAG, AT(unsent), NULL,
	  "prune: also what a required sink has not taken (else it stays)" },
	{ "dry-run", 0, OPT_FLAG, AT(dry_run), NULL, "prune: only say what would go" },
	{ "why", 0, OPT_STR, AT(why), "TEXT", "hold, release: the reason, kept in the host log" },
	{ "json", 0, OPT_FLAG, AT(json), NULL, "one JSON object a line" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"The sessions that were recorded on this host.\n\n"
	"  list              newest first (default)\n"
	"  search TEXT       whose command, files, destinations or rules hold this text\n"
	"  show SESSION      one session, and what it did most\n"
	"  log               the host log: what was recorded, read, reviewed, held, deleted\n"
	"  hold SESSION      keep it, whatever prune is told (needs --why)\n"
	"  release SESSION   end that (needs --why)\n"
	"  prune             delete records by --older, --max-bytes or --sent, and what sinks kept of them\n"
	"  reindex           make the catalogue again from the records\n\n"
	"GLOB: the whole value, with * and ?. Exit code: 0 done, 125 error.";

/* ---- printing ---- */

static void json_text(struct json *j, const char *key, const char *v)
{
	json_key(j, key);
	if (*v)
		json_strz(j, v);
	else
		json_null(j);
}

static void json_time(struct json *j, const char *key, uint64_t ns)
{
	char text[RFC3339_NS_LEN + 1] = "";

	if (ns)
		rfc3339_ns(text, ns);
	json_text(j, key, text);
}

static void row_json(struct json *j, const struct catalog_row *row)
{
	const struct {
		const char *key, *v;
	} texts[] = {
		{ "session", row->id },	   { "state", row->state },	{ "name", row->name },
		{ "tenant", row->tenant }, { "host", row->host },	{ "backend", row->backend },
		{ "tier", row->tier },	   { "command", row->command }, { "reason", row->reason },
		{ "acted_by", row->rule }, { "head", row->head },	{ "damage", row->damage },
	};
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = { { "records", row->records },
			{ "alerts", row->alerts },
			{ "lost", row->lost },
			{ "bytes", row->bytes } };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		json_text(j, texts[i].key, texts[i].v);
	json_time(j, "started", row->started_ns);
	json_time(j, "ended", row->ended_ns);
	json_key(j, "exit_code");
	if (row->has_end)
		json_i64(j, row->exit_code);
	else
		json_null(j);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(j, numbers[i].key);
		json_u64(j, numbers[i].v);
	}
	json_key(j, "signed");
	json_bool(j, row->is_signed);
}

static void print_safe(const char *label, const char *text, size_t max)
{
	auto_buf struct buf out = { 0 };

	if (!*text)
		return;
	if (text_for_terminal(str_from(text), max, &out) == 0)
		printf("%s%.*s\n", label, (int)out.n, out.p);
}

static int print_row_json(void *arg, const struct catalog_row *row)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	(void)arg;
	json_init(&j, &out);
	json_object_begin(&j);
	row_json(&j, row);
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
	return 0;
}

/* "exit 0", "rule", "open" */
static void ending(char out[32], const struct catalog_row *row)
{
	if (strcmp(row->state, "sealed") != 0)
		snprintf(out, 32, "%s", row->state);
	else if (!strcmp(row->reason, "exit"))
		snprintf(out, 32, "exit %lld", (long long)row->exit_code);
	else
		snprintf(out, 32, "%s", *row->reason ? row->reason : "no end");
	plain_text(out, '?', "");
}

static int print_row(void *arg, const struct catalog_row *row)
{
	char time[RFC3339_NS_LEN + 1] = "-", end[32], tenant[12 + 1];
	bool *titled = arg;

	if (!*titled)
		printf("%-19s  %-26s  %-12s %-14s %7s %7s %5s  %s\n", "STARTED (UTC)", "SESSION",
		       "TENANT", "END", "RECORDS", "ALERTS", "LOST", "COMMAND");
	*titled = true;
	if (row->started_ns)
		rfc3339_ns(time, row->started_ns);
	time[10] = ' ';
	ending(end, row);
	snprintf(tenant, sizeof(tenant), "%s", *row->tenant ? row->tenant : "-");
	plain_text(tenant, '?', "");
	printf("%-19.19s  %-26s  ", time, row->id);
	printf("%-12s %-14s %7llu %7llu %5llu", tenant, end, (unsigned long long)row->records,
	       (unsigned long long)row->alerts, (unsigned long long)row->lost);
	print_safe("  ", *row->command ? row->command : "-", 100);
	return 0;
}

/* ---- list, search, show ---- */

/* A misspelt word would find nothing, as if there were nothing. */
static int check_words(const struct sessions_args *a, struct err *err)
{
	static const char *const states[] = { "sealed", "open", "damaged", "other" };
	bool known = !a->state;

	for (size_t i = 0; !known && i < ARRAY_SIZE(states); i++)
		known = !strcmp(a->state, states[i]);
	if (!known)
		return err_set(err, EINVAL,
			       "option '--state': '%s' is not sealed, open, damaged or other",
			       a->state);
	if (a->reason && strcmp(a->reason, outcome_reason(a->reason)) != 0)
		return err_set(err, EINVAL, "option '--reason': '%s' ends no session", a->reason);
	return 0;
}

static int make_filter(struct catalog_filter *f, const struct sessions_args *a, const char *text,
		       struct err *err)
{
	int r = 0;

	*f = (struct catalog_filter){
		.tenant = a->tenant,
		.name = a->name,
		.rule = a->rule,
		.exe = a->exe,
		.path = a->path,
		.dst = a->dst,
		.reason = a->reason,
		.state = a->state,
		.text = text,
		.limit = a->limit,
	};
	if (a->since)
		r = sessions_parse_time(a->since, &f->since_ns, err);
	if (r == 0 && a->until)
		r = sessions_parse_time(a->until, &f->until_ns, err);
	return r;
}

static int list(struct catalog *c, const struct sessions_args *a, const char *text, struct err *err)
{
	struct catalog_filter f;
	bool titled = false;
	int r = make_filter(&f, a, text, err);

	if (r == 0)
		r = catalog_list(c, &f, a->json ? print_row_json : print_row, &titled, err);
	if (r == 0 && !a->json && !titled)
		fputs("no such session\n", stderr);
	return r;
}

struct show {
	const char *id;
	const struct session_holds *holds;
	struct json *json;
	char kind[16];
};

static int show_row(void *arg, const struct catalog_row *row)
{
	struct show *s = arg;
	char time[RFC3339_NS_LEN + 1], end[32];

	if (s->json) {
		row_json(s->json, row);
		json_key(s->json, "held");
		json_bool(s->json, session_is_held(s->holds, s->id));
		return 1;
	}
	ending(end, row);
	printf("session   %s%s\n", row->id, session_is_held(s->holds, s->id) ? " (held)" : "");
	print_safe("command   ", row->command, 1000);
	print_safe("name      ", row->name, 100);
	print_safe("tenant    ", row->tenant, 100);
	print_safe("host      ", row->host, 100);
	print_safe("backend   ", row->backend, 100);
	print_safe("probes    ", *row->tier ? row->tier : "unknown", 100);
	if (row->started_ns) {
		rfc3339_ns(time, row->started_ns);
		printf("started   %s\n", time);
	}
	if (row->ended_ns) {
		rfc3339_ns(time, row->ended_ns);
		printf("ended     %s\n", time);
	}
	printf("end       %s\n", end);
	print_safe("acted by  ", row->rule, 200);
	printf("record    %s, %s; %llu record%s, %llu alert%s, %llu lost, %llu bytes on disk\n",
	       row->state, row->is_signed ? "signed" : "not signed",
	       (unsigned long long)row->records, row->records == 1 ? "" : "s",
	       (unsigned long long)row->alerts, row->alerts == 1 ? "" : "s",
	       (unsigned long long)row->lost, (unsigned long long)row->bytes);
	print_safe("damage    ", row->damage, 300);
	if (row->is_cut)
		puts("          more different values than the catalogue keeps");
	return 1;
}

static int show_fact(void *arg, const struct catalog_fact *fact)
{
	struct show *s = arg;

	if (s->json) {
		json_object_begin(s->json);
		json_text(s->json, "kind", fact->kind);
		json_text(s->json, "value", fact->value);
		json_key(s->json, "count");
		json_u64(s->json, fact->count);
		json_object_end(s->json);
		return 0;
	}
	if (strcmp(s->kind, fact->kind) != 0)
		printf("%s\n", fact->kind);
	snprintf(s->kind, sizeof(s->kind), "%s", fact->kind);
	printf("  %8llu", (unsigned long long)fact->count);
	print_safe("  ", fact->value, 300);
	return 0;
}

static int show(struct catalog *c, const struct sessions_args *a, const char *word, struct err *err)
{
	AUTO(session_holds) struct session_holds *holds = NULL;
	auto_buf struct buf out = { 0 };
	char id[ULID_LEN + 1];
	struct json j;
	struct show s = { .id = id, .json = a->json ? &j : NULL };
	const struct catalog_filter one = { .id = id };
	int r = sessions_find(id, word, err);

	if (r == 0)
		r = session_holds_read(&holds, err);
	if (r < 0)
		return r;
	trail_add_access(id, "sessions show");
	s.holds = holds;
	json_init(&j, &out);
	json_object_begin(&j);
	r = catalog_list(c, &one, show_row, &s, err);
	json_key(&j, "did");
	json_array_begin(&j);
	if (r >= 0)
		r = catalog_facts(c, id, a->all ? 0 : SHOW_FACTS, show_fact, &s, err);
	json_array_end(&j);
	json_object_end(&j);
	if (r == 0 && a->json) {
		cli_print(&out);
		putchar('\n');
	}
	return r;
}

/* ---- the host log ---- */

struct log_print {
	const struct sessions_args *args;
	char since[RFC3339_NS_LEN + 1], until[RFC3339_NS_LEN + 1]; /* "" = no matter */
	uint64_t n, skip; /* that are wanted; the first of them that are not printed */
	bool count_only;
};

static void print_log_line(const struct hostlog_line *l, bool json)
{
	auto_buf struct buf out = { 0 };
	struct str time = { l->time.p, MIN(l->time.n, (size_t)TIME_SHOWN) };
	struct str cells[] = { time, l->kind, l->session.n ? l->session : STR("-"), l->who,
			       l->data };

	if (json) {
		cli_print_record(l->text, stdout);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		buf_reset(&out);
		text_for_terminal(cells[i], 1000, &out);
		printf("%s%-*.*s", i ? "  " : "", i == 1 ? 8 : 0, (int)out.n, out.p);
	}
	putchar('\n');
}

/* RFC 3339 in one zone and of one length: the texts compare as the times do. */
static int compare_times(struct str a, const char *b)
{
	return strncmp(a.p, b, MIN(a.n, (size_t)RFC3339_NS_LEN));
}

static int log_line(void *arg, const struct hostlog_line *l)
{
	struct log_print *p = arg;

	if ((*p->since && compare_times(l->time, p->since) < 0) ||
	    (*p->until && compare_times(l->time, p->until) >= 0))
		return 0;
	if (p->n++ >= p->skip && !p->count_only)
		print_log_line(l, p->args->json);
	return 0;
}

static int log_times(struct log_print *p, struct err *err)
{
	const struct {
		const char *word;
		char *out;
	} times[] = { { p->args->since, p->since }, { p->args->until, p->until } };
	uint64_t ns;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(times); i++) {
		if (!times[i].word)
			continue;
		r = sessions_parse_time(times[i].word, &ns, err);
		if (r == 0)
			rfc3339_ns(times[i].out, ns);
	}
	return r;
}

static int print_log(const struct sessions_args *a, struct err *err)
{
	struct log_print p = { .args = a, .count_only = a->limit > 0 };
	auto_close int dirfd = -1;
	struct hostlog_report rep;
	int r = log_times(&p, err);

	if (r == 0)
		r = trail_open(&dirfd, err);
	if (r == 0)
		r = hostlog_walk(dirfd, NULL, log_line, &p, &rep, err);
	if (r == 0 && p.count_only) { /* once more, now that it is known where the newest begin */
		p = (struct log_print){ .args = a, .skip = p.n - MIN(p.n, a->limit) };
		r = log_times(&p, err);
		if (r == 0)
			r = hostlog_walk(dirfd, NULL, log_line, &p, &rep, err);
	}
	if (r < 0)
		return r;
	return rep.good ? 0 : err_set(err, EBADMSG, "host log: %s", rep.text);
}

static int keep(const char *kind, const struct sessions_args *a, const char *word, struct err *err)
{
	auto_buf struct buf data = { 0 };
	char id[ULID_LEN + 1];
	struct json j;
	int r;

	if (!a->why || !*a->why)
		return err_set(err, EINVAL, "'%s' needs --why, for those who ask later", kind);
	r = sessions_find(id, word, err);
	if (r < 0)
		return r;
	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "why");
	json_strz(&j, a->why);
	json_object_end(&j);
	return trail_add(kind, id, (struct str){ data.p, data.n }, err);
}

/* ---- the command ---- */

static int reindex(struct err *err)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/" CATALOG_NAME, state_dir());
	if (unlink(path) < 0 && errno != ENOENT)
		return err_set(err, errno, "catalogue '%s': %m", path);
	return 0;
}

static int with_catalog(const char *action, const struct sessions_args *a, const char *word,
			struct err *err)
{
	const struct prune_options po = { a->older, a->max_bytes, a->sent, a->unsent, a->dry_run };
	AUTO(catalog) struct catalog *c = NULL;
	int r = 0;

	if (!strcmp(action, "prune") && a->older == NOT_GIVEN && a->max_bytes == NOT_GIVEN &&
	    !a->sent)
		return err_set(err, EINVAL, "prune needs --older, --max-bytes or --sent");
	if (!strcmp(action, "reindex"))
		r = reindex(err);
	if (r == 0)
		r = sessions_open_catalog(&c, err);
	if (r < 0 || !strcmp(action, "reindex"))
		return r;
	if (!strcmp(action, "show"))
		return show(c, a, word, err);
	if (!strcmp(action, "prune"))
		return sessions_prune(c, &po, err);
	return list(c, a, word, err);
}

int cmd_sessions(int argc, char **argv)
{
	static const struct {
		const char *name;
		bool word;
	} actions[] = { { "list", false },  { "search", true },	 { "show", true },
			{ "log", false },   { "hold", true },	 { "release", true },
			{ "prune", false }, { "reindex", false } };
	struct sessions_args a = { .older = NOT_GIVEN, .max_bytes = NOT_GIVEN };
	struct err err = { 0 };
	const char *action = "list";
	size_t i = 0;
	int n, r;

	if (options_parse_mixed(OPTIONS, &a, argc, argv, &n, &err) < 0)
		return cli_bad_usage("sessions", &err);
	if (a.help) {
		cli_usage("sessions [list|search|show|log|hold|release|prune|reindex] [OPTIONS]",
			  PURPOSE, OPTIONS);
		return 0;
	}
	if (n > 0)
		action = argv[1];
	while (i < ARRAY_SIZE(actions) && strcmp(actions[i].name, action) != 0)
		i++;
	if (i == ARRAY_SIZE(actions))
		err_set(&err, EINVAL, "unknown action '%s'", action);
	else if (n - (n > 0) != actions[i].word)
		err_set(&err, EINVAL,
			actions[i].word ? "'%s' needs one %s" : "'%s' takes no argument", action,
			!strcmp(action, "search") ? "text" : "session");
	else
		check_words(&a, &err);
	if (err.code)
		return cli_bad_usage("sessions", &err);
	if (!strcmp(action, "log"))
		r = print_log(&a, &err);
	else if (!strcmp(action, "hold") || !strcmp(action, "release"))
		r = keep(action, &a, argv[2], &err);
	else
		r = with_catalog(action, &a, actions[i].word ? argv[2] : NULL, &err);
	fflush(stdout);
	return r < 0 ? cli_fail(&err) : cli_finish_output(0);
}
