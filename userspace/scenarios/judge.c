// SPDX-License-Identifier: Apache-2.0
#include "userspace/scenarios/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/event/event.h"
#include "userspace/store/store.h"

DEFINE_AUTO(journal_reader, journal_reader_free)

#define EVENT_MEM_MAX  (16u << 20)
#define EXIT_WARDER    125 /* exit codes of `warder run`: nothing ran */
#define EXIT_NOT_FOUND 127

/* ---- the record ---- */

struct look {
	const struct scenario *s;
	struct rule_filter *want[SCENARIO_DETECT_MAX];
	bool seen[SCENARIO_DETECT_MAX];
	struct finding *found;
};

static __attribute__((format(printf, 2, 3))) void because(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	if (f->why[0])
		return;
	va_start(ap, fmt);
	vsnprintf(f->why, sizeof(f->why), fmt, ap);
	va_end(ap);
}

static void copy(char *ret, size_t max, struct str s)
{
	snprintf(ret, max, "%.*s", (int)MIN(s.n, max - 1), s.n ? s.p : "");
}

static void add_attack(struct finding *f, struct str id)
{
	size_t n = strlen(f->attack);

	if (id.n > 12 || n + id.n + 2 > sizeof(f->attack))
		return;
	for (const char *p = f->attack; (p = strstr(p, "T")); p++)
		if (strcspn(p, " ") == id.n && !strncmp(p, id.p, id.n))
			return;
	snprintf(f->attack + n, sizeof(f->attack) - n, "%s%.*s", n ? " " : "", (int)id.n, id.p);
}

static void add_alert(struct finding *f, const struct event *ev)
{
	struct str name = event_str(ev, F_RULE_NAME);

	f->kills |= str_eqz(event_str(ev, F_RULE_ACTION), "kill");
	for (size_t i = 0; i < f->rules_n; i++)
		if (str_eqz(name, f->rules[i]))
			return;
	if (f->rules_n < JUDGE_RULES_MAX)
		copy(f->rules[f->rules_n++], sizeof(f->rules[0]), name);
	for (size_t i = 0; event_has(ev, F_RULE_ATTACK) && i < ev->v[F_RULE_ATTACK].list.n; i++)
		add_attack(f, ev->v[F_RULE_ATTACK].list.v[i]);
}

static void look_at(void *arg, const struct event *ev)
{
	struct look *l = arg;

	if (ev->kind == WIRE_RULE_ALERT)
		add_alert(l->found, ev);
	if (ev->kind == WIRE_SESSION_START)
		copy(l->found->tier, sizeof(l->found->tier), event_str(ev, F_RUN_TIER));
	for (size_t i = 0; i < SCENARIO_DETECT_MAX; i++)
		if (l->want[i] && !l->seen[i])
			l->seen[i] = rule_filter_match(l->want[i], ev);
}

/* fn for each event of a trial's record. */
static int each_event(const struct trial *t, void (*fn)(void *arg, const struct event *ev),
		      void *arg, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	auto_free struct event *ev = malloc(sizeof(*ev));
	char path[TRIAL_PATH_MAX + 16];
	auto_close int fd = -1;
	struct arena arena;
	struct str rec;
	uint64_t seq;
	int r;

	if (!ev)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/session", t->dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "'%s': %m", path);
	r = journal_reader_open(&reader, fd, err);
	if (r < 0)
		return r;
	arena_init(&arena, EVENT_MEM_MAX);
	while ((r = journal_reader_next(reader, &rec, &seq, err)) > 0) {
		arena_reset(&arena);
		r = event_from_json(ev, &arena, rec, err);
		if (r < 0)
			break;
		fn(arg, ev);
	}
	arena_done(&arena);
	return r;
}

/* Sets DETECTED, and why not. */
static void judge_record(struct finding *f, const struct scenario *s, const struct trial *t,
			 bool strict)
{
	struct look l = { .s = s, .found = f };
	struct err err = { 0 };
	bool all = true;
	int r = 0;

	for (size_t i = 0; r == 0 && i < SCENARIO_DETECT_MAX && s->detect[i]; i++)
		r = rule_filter_new(&l.want[i], str_from(s->detect[i]), &err);
	if (r == 0)
		r = each_event(t, look_at, &l, &err);
	if (r < 0) {
		f->outcome = OUTCOME_ERROR;
		because(f, "%s", err_text(&err));
	}
	for (size_t i = 0; i < SCENARIO_DETECT_MAX; i++) {
		if (l.want[i] && !l.seen[i] && s->expect & SCENARIO_DETECTED) {
			all = false;
			because(f, "not in the record: %s", s->detect[i]);
		}
		rule_filter_free(l.want[i]);
	}
	for (size_t i = 0; strict && i < SCENARIO_RULES_MAX && s->rules[i]; i++) {
		bool fired = false;

		for (size_t k = 0; k < f->rules_n; k++)
			fired |= !strcmp(f->rules[k], s->rules[i]);
		if (!fired) {
			all = false;
			because(f, "did not fire: %s", s->rules[i]);
		}
	}
	if (s->rules[0] && !f->rules_n) {
		all = false;
		because(f, "no alert");
	}
	if (strict && s->rules[0] && !attack_covers(f->attack, s->attack)) {
		all = false;
		because(f, "no rule that fired speaks of %s (%s)", s->attack, f->attack);
	}
	if (r == 0 && all && s->detect[0])
		f->got |= SCENARIO_DETECTED;
}

/* ---- its steps ---- */

static void judge_steps(struct finding *f, const struct trials *all, const struct scenario *s,
			const struct trial *t)
{
	struct steps st;

	steps_read(&st, (struct str){ t->output, t->output_n }, s->inner);
	f->blocked = st.blocked;
	f->absent = st.absent;
	f->did = st.did;
	if (t->planted)
		because(f, "the launcher wrote through a link on the host");
	else if (st.open && s->goes_out && all->net[0] && strcmp(all->net, "none") != 0)
		because(f, "it worked: %s; the policy gives it up: its network is '%s'",
			st.first_open, all->net);
	else if (st.open)
		because(f, "it worked: %s", st.first_open);
	else if (st.cannot) {
		f->outcome = OUTCOME_ERROR;
		because(f, "could not be tried: %s", st.first_cannot);
	} else if (!st.end || st.blocked + st.absent + st.did + st.inner < s->steps) {
		f->outcome = OUTCOME_ERROR;
		because(f, "it did not come to its end (exit code %d%s%s)%s%s", t->code,
			t->reason[0] ? ", " : "", t->reason, t->error[0] ? ": " : "", t->error);
	} else if (st.blocked + st.absent) {
		f->got |= SCENARIO_BLOCKED;
	}
	if (st.open || t->planted)
		f->outcome = OUTCOME_HOLE;
}

/* Nothing ran. True: that decides it. */
static bool judge_refusal(struct finding *f, const struct scenario *s, const struct trial *t)
{
	if (t->hung) {
		f->outcome = OUTCOME_ERROR;
		because(f, "it did not end");
		return true;
	}
	if (t->code != EXIT_WARDER && !(s->refused && t->code == EXIT_NOT_FOUND))
		return false;
	if (s->refused && strstr(t->error, s->refused) && !t->planted && !t->output_n) {
		f->got |= SCENARIO_BLOCKED;
	} else {
		f->outcome = OUTCOME_ERROR;
		because(f, "%s", t->error[0] ? t->error : "warder run failed");
	}
	return true;
}

static void judge_kill(struct finding *f, const struct scenario *s, const struct trial *t,
		       bool strict)
{
	struct steps st;

	steps_read(&st, (struct str){ t->output, t->output_n }, s->inner);
	copy(f->reason, sizeof(f->reason), str_from(t->reason));
	copy(f->rule, sizeof(f->rule), str_from(t->rule));
	if (st.end || strcmp(t->reason, s->reason) != 0)
		because(f, "not killed for '%s': it ended by '%s'", s->reason, t->reason);
	else if (strict && s->killer && strcmp(t->rule, s->killer) != 0)
		because(f, "killed by '%s', not by '%s'", t->rule, s->killer);
	else
		f->got |= SCENARIO_KILLED;
}

static int observe(struct finding *f, const struct trials *t, const struct scenario *s, bool strict,
		   struct trial *trial, struct err *err)
{
	int r = trial_run(trial, t, s, s->id, false, err);

	if (r < 0 || judge_refusal(f, s, trial))
		return r;
	judge_steps(f, t, s, trial);
	judge_record(f, s, trial, strict);
	return 0;
}

static int enforce(struct finding *f, const struct trials *t, const struct scenario *s, bool strict,
		   struct trial *trial, struct err *err)
{
	char name[32];
	int r;

	snprintf(name, sizeof(name), "%s-enforced", s->id);
	r = trial_run(trial, t, s, name, true, err);
	if (r < 0 || judge_refusal(f, s, trial))
		return r;
	judge_kill(f, s, trial, strict);
	if (s->no_observing)
		judge_record(f, s, trial, strict);
	return 0;
}

void scenario_try(struct finding *ret, const struct trials *t, const struct scenario *s,
		  bool strict)
{
	auto_free struct trial *trial = malloc(sizeof(*trial));
	struct err err = { 0 };
	int r = trial ? 0 : -ENOMEM;

	memset(ret, 0, sizeof(*ret));
	if (s->limit && t->policy && !trials_limit(t, s->limit)) {
		ret->outcome = OUTCOME_HOLE;
		because(ret, "the policy sets no such limit (%s)", s->limit);
		return;
	}
	if (r == 0 && !s->no_observing)
		r = observe(ret, t, s, strict, trial, &err);
	if (s->killer && !s->no_observing &&
	    !ret->kills) /* the payload would wait for it in vain */
		because(ret, "no rule kills for it");
	else if (r == 0 && s->expect & SCENARIO_KILLED && ret->outcome != OUTCOME_ERROR)
		r = enforce(ret, t, s, strict, trial, &err);
	if (r < 0) {
		ret->outcome = OUTCOME_ERROR;
		because(ret, "%s", err_text(&err));
	}
	if (ret->outcome == OUTCOME_HOLDS && s->expect & ~ret->got) {
		ret->outcome = OUTCOME_HOLE;
		because(ret, "not all that was expected");
	}
	if (ret->outcome == OUTCOME_HOLDS)
		ret->why[0] = 0; /* of what was not expected */
}

/* ---- twins ---- */

struct twins {
	struct str id; /* whose turn it is, as far as the record has come */
	char of[8];
	struct {
		char id[8];
		char why[200];
	} loud[SCENARIO_WORDS_MAX * 8];
	size_t loud_n;
};

static void look_at_twin(void *arg, const struct event *ev)
{
	struct twins *w = arg;
	struct str priority = event_str(ev, F_RULE_PRIORITY);

	if (ev->kind == WIRE_EXEC && event_has(ev, F_PROC_ARGS) && ev->v[F_PROC_ARGS].list.n == 3 &&
	    str_eqz(ev->v[F_PROC_ARGS].list.v[2], "twin"))
		copy(w->of, sizeof(w->of), ev->v[F_PROC_ARGS].list.v[1]);
	if (ev->kind != WIRE_RULE_ALERT || str_eqz(priority, "notice") ||
	    str_eqz(priority, "informational") || str_eqz(priority, "debug") ||
	    w->loud_n == ARRAY_SIZE(w->loud))
		return;
	snprintf(w->loud[w->loud_n].id, sizeof(w->loud[0].id), "%s", w->of);
	snprintf(w->loud[w->loud_n].why, sizeof(w->loud[0].why),
		 "its harmless twin made an alert: %.*s",
		 (int)MIN(event_str(ev, F_RULE_NAME).n, 128), event_str(ev, F_RULE_NAME).p);
	w->loud_n++;
}

/* One twin's lines. */
static void judge_twin(const struct twins *w, struct str id, struct str lines, twin_fn fn,
		       void *arg)
{
	struct steps st;
	char why[200];

	for (size_t i = 0; i < w->loud_n; i++)
		if (str_eqz(id, w->loud[i].id)) {
			fn(arg, id, w->loud[i].why);
			return;
		}
	steps_read(&st, lines, NULL);
	if (!st.cannot && st.end && st.did) {
		fn(arg, id, NULL);
		return;
	}
	snprintf(why, sizeof(why), "its harmless twin does not work: %s",
		 st.cannot ? st.first_cannot : "no step");
	fn(arg, id, why);
}

int twins_try(const struct trials *t, twin_fn fn, void *arg, struct err *err)
{
	auto_free struct trial *trial = malloc(sizeof(*trial));
	auto_free struct twins *w = calloc(1, sizeof(*w));
	const char *p, *next;
	int r;

	if (!trial || !w)
		return -ENOMEM;
	r = trial_run(trial, t, NULL, "twins", true, err);
	if (r < 0)
		return r;
	if (strcmp(trial->reason, "exit") != 0 || trial->code != 0)
		return err_set(err, EPROTO,
			       "the harmless twins were ended by '%s' %s (exit code %d) %s",
			       trial->reason, trial->rule, trial->code, trial->error);
	r = each_event(trial, look_at_twin, w, err);
	if (r < 0)
		return r;
	for (p = strstr(trial->output, "twin "); p; p = next) {
		next = strstr(p + 5, "\ntwin ");
		next = next ? next + 1 : NULL;
		judge_twin(w, (struct str){ p + 5, strcspn(p + 5, "\n") },
			   (struct str){ p, next ? (size_t)(next - p) : strlen(p) }, fn, arg);
	}
	return 0;
}
