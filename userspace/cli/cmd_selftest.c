// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/scenarios/judge.h"

#define ROWS_MAX 128
#define JOBS_MAX 16
#define LETTERS	 "B blocked, D detected, K killed"

struct selftest_args {
	const char *policy, *backend, *only;
	uint64_t jobs;
	bool json, list, help;
};

static const struct option_def OPTIONS[] = {
	{ "policy", 0, OPT_STR, offsetof(struct selftest_args, policy), "FILE",
	  "the policy to try (default: what `warder run` does without one)" },
	{ "backend", 0, OPT_STR, offsetof(struct selftest_args, backend), "NAME",
	  "sandbox backend (default: the policy's)" },
	{ "only", 0, OPT_STR, offsetof(struct selftest_args, only), "ID,...",
	  "only these: P05,P12" },
	{ "jobs", 'j', OPT_U64, offsetof(struct selftest_args, jobs), "N",
	  "sandboxes at once (default: one a processor, at most 4)" },
	{ "list", 0, OPT_FLAG, offsetof(struct selftest_args, list), NULL,
	  "print what would be tried, do nothing" },
	{ "json", 0, OPT_FLAG, offsetof(struct selftest_args, json), NULL, "as JSON" },
	{ "help", 'h', OPT_FLAG, offsetof(struct selftest_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Attack sandboxes as hostile code would, by a corpus of known techniques (escapes, kernel\n"
	"interfaces, credentials, network, abuse), and say of each whether it was blocked, detected\n"
	"and, where that is due, killed. With a policy of yours: whether it holds under that.\n"
	"The attacks are made so that they do no harm where they succeed; what a policy lets out does\n"
	"go out: connections to well-known resolvers, metadata addresses and 10.0.0.0/24, from this\n"
	"host's own network where the policy shares it (network: host). Limits of\n"
	"the policy are made small for the attacks that try them. Needs root.\n\n"
	"Exit code: 0 all as expected, 1 a hole, or an attack that could not be tried; 125 an error.";

struct job {
	const struct scenario *s; /* `as`, once the backend is known */
	struct scenario as;
	struct finding f;
	bool done;
};

struct selftest {
	struct trials trials;
	struct job jobs[ROWS_MAX];
	size_t n, next, done;
	size_t printed; /* rows that are out: in the table's order, each as soon as it and those before it are known */
	bool strict, progress, rows;
	pthread_mutex_t lock;
};

/* ---- doing it ---- */

static volatile sig_atomic_t stopped; /* by ^C: what runs comes to its end, and nothing is left */

static void stop(int sig)
{
	stopped = sig;
}

static void clear_progress(const struct selftest *st)
{
	if (st->progress)
		fputs("\r\033[K", stderr);
}

static void show_progress(const struct selftest *st, const char *id)
{
	if (st->progress)
		fprintf(stderr, "\r%zu of %zu (%s) \033[K", st->done, st->n, id);
}

static void print_row(const struct job *j, bool list);

/* Whoever reads a file of ours, or a pipe, has what is known so far. */
static void print_known(struct selftest *st)
{
	if (!st->rows || st->printed == st->n || !st->jobs[st->printed].done)
		return;
	clear_progress(st);
	while (st->printed < st->n && st->jobs[st->printed].done)
		print_row(&st->jobs[st->printed++], false);
	fflush(stdout);
}

/* What its harmless twin did is known before. */
static void add_twin(struct finding *f, const struct finding *twin)
{
	f->twin = twin->twin;
	if (f->twin == TWIN_LOUD && f->outcome == OUTCOME_HOLDS) {
		f->outcome = OUTCOME_HOLE;
		memcpy(f->why, twin->why, sizeof(f->why));
	}
}

static void *work(void *arg)
{
	struct selftest *st = arg;

	for (;;) {
		struct finding twin;
		struct job *j;

		pthread_mutex_lock(&st->lock);
		j = st->next < st->n && !stopped ? &st->jobs[st->next++] : NULL;
		pthread_mutex_unlock(&st->lock);
		if (!j)
			return NULL;
		twin = j->f;
		scenario_try(&j->f, &st->trials, j->s, st->strict);
		add_twin(&j->f, &twin);
		pthread_mutex_lock(&st->lock);
		j->done = true;
		st->done++;
		print_known(st);
		show_progress(st, j->s->id);
		pthread_mutex_unlock(&st->lock);
	}
}

static void twin_found(void *arg, struct str id, const char *why)
{
	struct selftest *st = arg;

	for (size_t i = 0; i < st->n; i++) {
		struct finding *f = &st->jobs[i].f;

		if (!str_eqz(id, st->jobs[i].s->id) || (why && st->jobs[i].s->no_twin))
			continue;
		f->twin = why ? TWIN_LOUD : TWIN_QUIET;
		snprintf(f->why, sizeof(f->why), "%s", why ? why : "");
	}
}

static int try_all(struct selftest *st, size_t jobs, struct err *err)
{
	pthread_t threads[JOBS_MAX];
	size_t n = 0;
	int r;

	show_progress(st, "twins");
	r = twins_try(&st->trials, twin_found, st, err);
	if (r < 0) {
		clear_progress(st);
		return r;
	}
	for (; n < jobs; n++)
		if (pthread_create(&threads[n], NULL, work, st))
			break;
	if (!n)
		work(st);
	for (size_t i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	clear_progress(st);
	return stopped ? err_set(err, EINTR, "stopped") : 0;
}

static void judge_by_backend(struct selftest *st, const char *backend)
{
	for (size_t i = 0; i < st->n; i++) {
		struct job *j = &st->jobs[i];

		j->as = scenario_under(j->s, backend);
		j->s = &j->as;
	}
}

/* ---- choosing ---- */

static bool is_chosen(const struct scenario *s, const char *only)
{
	if (!only)
		return true;
	for (const char *p = only; *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");

		if (scenario_is(s, (struct str){ p, n }))
			return true;
		p += n;
	}
	return false;
}

/* Each word of --only names one. */
static int check_only(const char *only, struct err *err)
{
	if (only && !*only)
		return err_set(err, EINVAL, "option '--only' names no attack (--list)");
	for (const char *p = only; p && *p; p += strspn(p, ",")) {
		size_t n = strcspn(p, ",");
		bool found = false;

		for (size_t i = 0; !found && scenario_at(i); i++)
			found = scenario_is(scenario_at(i), (struct str){ p, n });
		if (!found)
			return err_set(err, EINVAL, "option '--only': there is no '%.*s' (--list)",
				       (int)n, p);
		p += n;
	}
	return 0;
}

static void choose(struct selftest *st, const struct selftest_args *args)
{
	const struct scenario *s;

	for (size_t i = 0; (s = scenario_at(i)) && st->n < ROWS_MAX; i++)
		if (is_chosen(s, args->only) && !(args->policy && s->own))
			st->jobs[st->n++].s = s;
}

/* ---- saying it ---- */

static const char *const outcomes[] = {
	[OUTCOME_HOLDS] = "holds",
	[OUTCOME_HOLE] = "hole",
	[OUTCOME_ERROR] = "error",
};

static const char *letters(unsigned set, char ret[4])
{
	ret[0] = set & SCENARIO_BLOCKED ? 'B' : '-';
	ret[1] = set & SCENARIO_DETECTED ? 'D' : '-';
	ret[2] = set & SCENARIO_KILLED ? 'K' : '-';
	ret[3] = 0;
	return ret;
}

static void print_head(void)
{
	printf("%-5s %-10s %-6s %-6s %-6s %s\n", "id", "technique", "expect", "got", "", "attack");
}

static void print_row(const struct job *j, bool list)
{
	char want[4], got[4];

	printf("%-5s %-10.*s %-6s %-6s %-6s %s\n", j->s->id, (int)strcspn(j->s->attack, " "),
	       j->s->attack, letters(j->s->expect, want),
	       list ? "" : letters(j->f.got & j->s->expect, got),
	       list ? "" : outcomes[j->f.outcome], j->s->title);
	if (j->f.why[0])
		printf("      %s\n", j->f.why);
}

static void print_sum(const struct selftest *st)
{
	size_t holes = 0, errors = 0;

	for (size_t i = 0; i < st->n; i++) {
		holes += st->jobs[i].f.outcome == OUTCOME_HOLE;
		errors += st->jobs[i].f.outcome == OUTCOME_ERROR;
	}
	printf("%zu attacks: %zu hold, %zu holes, %zu could not be tried\n", st->n,
	       st->n - holes - errors, holes, errors);
}

static void print_list(const struct selftest *st)
{
	print_head();
	for (size_t i = 0; i < st->n; i++)
		print_row(&st->jobs[i], true);
	puts(LETTERS);
}

static void json_has(struct json *j, const char *key, unsigned set, unsigned bit)
{
	json_key(j, key);
	json_bool(j, set & bit);
}

static void json_row(struct json *j, const struct job *job, bool list)
{
	static const char *const twins[] = { "none", "quiet", "loud" };
	const struct scenario *s = job->s;
	const struct finding *f = &job->f;
	const struct {
		const char *key, *v;
	} texts[] = {
		{ "verdict", outcomes[f->outcome] },
		{ "why", f->why },
		{ "reason", f->reason },
		{ "rule", f->rule },
		{ "tier", f->tier },
		{ "attack", f->attack },
		{ "twin", twins[f->twin] },
	};
	char want[4];

	json_object_begin(j);
	json_key(j, "id");
	json_strz(j, s->id);
	json_key(j, "title");
	json_strz(j, s->title);
	json_key(j, "technique");
	json_strz(j, s->attack);
	json_key(j, "expected");
	json_strz(j, letters(s->expect, want));
	json_key(j, "remark");
	json_strz(j, s->remark ? s->remark : "");
	if (!list) {
		json_has(j, "blocked", f->got, SCENARIO_BLOCKED);
		json_has(j, "detected", f->got, SCENARIO_DETECTED);
		json_has(j, "killed", f->got, SCENARIO_KILLED);
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
			json_key(j, texts[i].key);
			json_strz(j, texts[i].v);
		}
		json_key(j, "rules");
		json_array_begin(j);
		for (size_t i = 0; i < f->rules_n; i++)
			json_strz(j, f->rules[i]);
		json_array_end(j);
	}
	json_object_end(j);
}

static void print_json(const struct selftest *st, bool list)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "scenarios");
	json_array_begin(&j);
	for (size_t i = 0; i < st->n; i++)
		json_row(&j, &st->jobs[i], list);
	json_array_end(&j);
	json_object_end(&j);
	cli_print_line(&out);
}

static int conclude(const struct selftest *st)
{
	for (size_t i = 0; i < st->n; i++)
		if (st->jobs[i].f.outcome != OUTCOME_HOLDS)
			return 1;
	return 0;
}

static int selftest(struct selftest *st, const struct selftest_args *args)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t jobs = args->jobs ? MIN(args->jobs, JOBS_MAX) : (size_t)MIN(MAX(cpus, 1), 4);
	struct err err = { 0 };
	int r;

	if (geteuid() != 0) {
		err_set(&err, EPERM, "running sandboxes needs root (try sudo)");
		return cli_fail(&err);
	}
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = stop }, NULL);
	sigaction(SIGTERM, &(struct sigaction){ .sa_handler = stop }, NULL);
	st->progress = isatty(STDERR_FILENO);
	st->rows = !args->json;
	st->strict = !args->policy;
	r = trials_init(&st->trials, args->policy, args->backend, &err);
	if (r == 0)
		judge_by_backend(st, st->trials.on);
	if (r == 0 && st->rows) {
		print_head();
		fflush(stdout);
	}
	if (r == 0)
		r = try_all(st, jobs, &err);
	trials_done(&st->trials);
	if (r < 0)
		return cli_fail(&err);
	return conclude(st);
}

int cmd_selftest(int argc, char **argv)
{
	static struct selftest st = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct selftest_args args = { 0 };
	struct err err = { 0 };
	int n, code = 0;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("selftest", &err);
	if (args.help) {
		cli_usage("selftest [OPTIONS]", PURPOSE, OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "unexpected word '%s'", argv[1]);
		return cli_bad_usage("selftest", &err);
	}
	if (check_only(args.only, &err) < 0)
		return cli_bad_usage("selftest", &err);
	choose(&st, &args);
	if (!st.n) {
		err_set(&err, EINVAL, "nothing to try: '%s' comes with a policy of its own",
			args.only);
		return cli_bad_usage("selftest", &err);
	}
	if (args.list)
		judge_by_backend(&st, args.backend);
	else
		code = selftest(&st, &args);
	if (code == EXIT_WARDER)
		return code;
	if (args.json) {
		print_json(&st, args.list);
	} else if (args.list) {
		print_list(&st);
	} else {
		puts(LETTERS);
		print_sum(&st);
	}
	return cli_finish_output(code);
}
