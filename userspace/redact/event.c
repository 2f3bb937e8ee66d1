// SPDX-License-Identifier: Apache-2.0
/* An event without its secrets. Hardly any has one: what a field had in the event before is known to be clean, and
 * most events repeat who did it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/event/part.h"
#include "userspace/redact/internal.h"

#define CLEAN_MAX  248 /* longer texts are looked through each time */
#define PARTS_KEPT 64
#define COMM_CUT   15 /* bytes of a comm that may have been longer: TASK_COMM_LEN - 1 */
#define LONG_CUT \
	4000 /* bytes from which on a text may have been cut at some limit without a word of that */

struct redact_clean {
	struct {
		uint32_t n;
		char p[CLEAN_MAX];
	} text[F_COUNT];
	uint64_t looked[EVENT_PRESENT_WORDS]; /* fields that quote the sandbox */
	uint64_t parts[PARTS_KEPT]; /* serials of parts without a secret, by their lowest bits */
};

/* Everything is looked through but what we or the kernel choose from a few words, and hashes. */
static const enum field_id FIXED[] = {
	F_ID,
	F_KIND,
	F_VANTAGE,
	F_SESSION,
	F_HOST,
	F_OUTCOME,
	F_ERRNO,
	F_SYSCALL,
	F_ENFORCE_VERDICT,
	F_PROC_ARGS_SHA256,
	F_PROC_STDIN,
	F_PROC_EXE_DEV,
	F_EXIT_SIGNAL,
	F_SIGNAL_NAME,
	F_FILE_FLAGS,
	F_FILE_TYPE,
	F_FILE_DEV,
	F_FILE_PROT,
	F_FILE_RDEV,
	F_FILE_OP,
	F_FILE_CHANGE,
	F_FILE_SHA256,
	F_FILE_SHA256_BEFORE,
	F_FILE_UNHASHED,
	F_FILE_TEXT,
	F_FILE_TEXT_BEFORE,
	F_WORKSPACE_WHEN,
	F_WORKSPACE_WHY,
	F_SNAPSHOT_SHA256,
	F_SNAPSHOT_SESSION,
	F_MOUNT_OP,
	F_MOUNT_FLAGS,
	F_NET_FAMILY,
	F_NET_PROTO,
	F_NET_REASON,
	F_NET_OPAQUE,
	F_NET_TYPE,
	F_DNS_TYPE,
	F_DNS_RCODE,
	F_DNS_MALFORMED,
	F_LIMIT_TYPE,
	F_LIMIT_EFFECT,
	F_ESCAPE_TYPE,
	F_RUN_BACKEND,
	F_RUN_POLICY,
	F_RUN_IMAGE,
	F_RUN_TIER,
	F_RUN_REASON,
	F_RULE_PRIORITY,
	F_RULE_ATTACK,
	F_RULE_ACTION,
	F_RULE_ENFORCED,
	F_RULE_SET,
	F_RULE_TRIGGER,
	F_RULE_TRIGGER_KIND,
	F_ACTION_TYPE,
	F_ACTION_SCOPE,
	F_ACTION_BY,
	F_GAP_KIND,
	F_GAP_REASON,
	F_TERMINAL_HEAD,
};

static bool is_text(enum field_type t)
{
	return t == FT_STR || t == FT_STRLIST || t == FT_ANCESTORS || t == FT_ANSWERS ||
	       t == FT_MEMBERS;
}

static bool make_clean(struct redact *x)
{
	x->clean = calloc(1, sizeof(*x->clean));
	if (!x->clean)
		return false;
	for (size_t f = 0; f < F_COUNT; f++)
		if (is_text(event_fields[f].type))
			x->clean->looked[f / 64] |= 1ull << (f % 64);
	for (size_t i = 0; i < ARRAY_SIZE(FIXED); i++)
		x->clean->looked[FIXED[i] / 64] &= ~(1ull << (FIXED[i] % 64));
	return true;
}

/* The work on one event. */
struct job {
	struct redact *x;
	const struct event *from;
	struct event *to; /* NULL: nothing was found so far */
	struct str quiet; /* looked through last, and nothing in it even looked like a secret */
	uint64_t places;
	int error;
};

/* Where a text of `n` bytes, or the last of a list's, was cut before it came here. */
static unsigned edges_of(const struct event *ev, size_t f, size_t n)
{
	if (event_has(ev, F_TRUNCATED) || n >= LONG_CUT)
		return f == F_PROC_ARGS_TAIL ? EDGE_BEGIN | EDGE_TOKEN : EDGE_BEGIN | EDGE_END;
	switch (f) {
	case F_PROC_COMM:
	case F_PROC_PCOMM:
	case F_SIGNAL_COMM:
	case F_PROC_ANCESTORS:
		return n >= COMM_CUT ? EDGE_END : 0;
	case F_PROC_ARGS:
		return event_has(ev, F_PROC_ARGS_TRUNCATED) ? EDGE_END : 0;
	case F_PROC_ARGS_TAIL:
		return EDGE_BEGIN | EDGE_TOKEN;
	case F_PROC_ENV:
		return event_has(ev, F_PROC_ENV_TRUNCATED) ? EDGE_END : 0;
	case F_FILE_PATH:
	case F_FILE_NAME:
		return event_has(ev, F_FILE_PATH_TRUNCATED) ? EDGE_BEGIN | EDGE_END : 0;
	default:
		return 0;
	}
}

static struct event *copy_of(struct job *j)
{
	if (j->to || j->error)
		return j->to;
	j->to = arena_alloc(j->from->arena, sizeof(*j->to));
	if (!j->to) {
		j->error = -ENOMEM;
		return NULL;
	}
	memcpy(j->to, j->from, sizeof(*j->to));
	return j->to;
}

/* p == NULL: nothing was found. */
static struct str one_text(struct job *j, struct str s, unsigned edges)
{
	struct buf *out = &j->x->joined;
	struct str made;
	int n;

	if (s.n < LITERAL_MIN)
		return (struct str){ 0 };
	buf_reset(out);
	j->x->edges = edges;
	n = redact_text(j->x, s, out);
	j->x->edges = 0;
	j->quiet = j->x->any ? (struct str){ 0 } : s;
	if (n == 0)
		return (struct str){ 0 };
	made = n < 0 ? (struct str){ 0 } : arena_strndup(j->from->arena, out->p, out->n);
	if (!made.p)
		j->error = -ENOMEM;
	else
		j->places += (uint64_t)n;
	return made;
}

static bool was_clean(const struct redact_clean *c, size_t f, struct str s)
{
	return s.n == c->text[f].n && s.n <= CLEAN_MAX && !memcmp(s.p, c->text[f].p, s.n);
}

static void is_clean(struct redact_clean *c, size_t f, struct str s)
{
	if (s.n > CLEAN_MAX)
		return;
	c->text[f].n = (uint32_t)s.n;
	memcpy(c->text[f].p, s.p, s.n);
}

/* One more piece of a field that has several: was it the next of those that were clean? */
static bool next_was_clean(const struct redact_clean *c, size_t f, size_t *at, struct str s)
{
	size_t from = *at;

	*at += s.n + 1;
	return *at <= c->text[f].n && c->text[f].n <= CLEAN_MAX &&
	       (!s.n || !memcmp(c->text[f].p + from, s.p, s.n)) && !c->text[f].p[from + s.n];
}

static void next_is_clean(struct redact_clean *c, size_t f, struct str s)
{
	uint32_t n = c->text[f].n;

	if (n > CLEAN_MAX || s.n + 1 > CLEAN_MAX - n) {
		c->text[f].n = CLEAN_MAX + 1;
		return;
	}
	if (s.n)
		memcpy(c->text[f].p + n, s.p, s.n);
	c->text[f].p[n + s.n] = 0;
	c->text[f].n = n + (uint32_t)s.n + 1;
}

/* A name is a part of its path: without a keyword in that there is none in this. */
static bool is_part_of_quiet(const struct job *j, struct str s)
{
	const char *from = j->quiet.p;

	return from && s.p >= from && s.p + s.n <= from + j->quiet.n;
}

static void text_field(struct job *j, size_t f)
{
	struct redact_clean *c = j->x->clean;
	struct str s = j->from->v[f].s, made;
	unsigned edges;

	if (s.n < LITERAL_MIN || is_part_of_quiet(j, s))
		return;
	edges = edges_of(j->from, f, s.n);
	if (!edges && was_clean(c, f, s))
		return;
	made = one_text(j, s, edges);
	if (made.p && copy_of(j))
		j->to->v[f].s = made;
	else if (!j->error)
		is_clean(c, f, s);
}

/* Made of a clean event already. Should there be something all the same, its text must stay JSON. */
static void members_field(struct job *j, size_t f)
{
	struct str s = j->from->v[f].s;

	if (s.n < LITERAL_MIN || !one_text(j, s, 0).p || !copy_of(j))
		return;
	j->to->v[f].s = STR("{\"redacted\":true}");
}

static void list_field(struct job *j, size_t f)
{
	const struct words_in in = { j->from->v[f].list.v, j->from->v[f].list.n };
	struct redact_clean *c = j->x->clean;
	struct words_in made;
	size_t at = 0, i = 0, bytes = 0;
	unsigned edges;
	int n;

	for (size_t k = 0; k < in.n; k++)
		bytes += in.v[k].n + 1;
	edges = edges_of(j->from, f, bytes);
	while (i < in.n && next_was_clean(c, f, &at, in.v[i]))
		i++;
	if (!edges && i == in.n && at == c->text[f].n)
		return;
	j->x->edges = edges;
	n = redact_words(j->x, f == F_PROC_ENV ? WORDS_ENV : WORDS_ARGS, in, j->from->arena, &made);
	j->x->edges = 0;
	c->text[f].n = n ? CLEAN_MAX + 1 : 0;
	for (i = 0; n == 0 && i < in.n && c->text[f].n <= CLEAN_MAX; i++)
		next_is_clean(c, f, in.v[i]);
	if (n < 0)
		j->error = n;
	if (n <= 0 || !copy_of(j))
		return;
	j->places += (uint64_t)n;
	j->to->v[f].list.v = made.v;
	j->to->v[f].list.n = made.n;
}

static void ancestors_field(struct job *j, size_t f)
{
	size_t n = j->from->v[f].ancestors.n, at = 0, same = 0;
	const struct event_ancestor *in = j->from->v[f].ancestors.v;
	struct redact_clean *c = j->x->clean;
	struct event_ancestor *v = NULL;

	while (same < n && next_was_clean(c, f, &at, in[same].comm) &&
	       next_was_clean(c, f, &at, in[same].exe))
		same++;
	if (same == n && at == c->text[f].n)
		return;
	c->text[f].n = 0;
	for (size_t i = 0; i < n && !j->error; i++) {
		const struct event_ancestor *a = &j->from->v[f].ancestors.v[i];
		struct str comm = one_text(j, a->comm, edges_of(j->from, f, a->comm.n));
		struct str exe =
			one_text(j, a->exe, a->exe.n < LONG_CUT ? 0 : EDGE_BEGIN | EDGE_END);

		next_is_clean(c, f, a->comm);
		next_is_clean(c, f, a->exe);
		if ((!comm.p && !exe.p) || !copy_of(j))
			continue;
		c->text[f].n = CLEAN_MAX + 1;
		if (!v) {
			v = arena_alloc(j->from->arena, n * sizeof(*v));
			if (!v) {
				j->error = -ENOMEM;
				return;
			}
			memcpy(v, j->from->v[f].ancestors.v, n * sizeof(*v));
			j->to->v[f].ancestors.v = v;
		}
		v[i].comm = comm.p ? comm : v[i].comm;
		v[i].exe = exe.p ? exe : v[i].exe;
	}
}

static void answers_field(struct job *j, size_t f)
{
	size_t n = j->from->v[f].answers.n;
	struct event_dns_answer *v = NULL;

	for (size_t i = 0; i < n && !j->error; i++) {
		const struct event_dns_answer *a = &j->from->v[f].answers.v[i];
		struct str name = one_text(j, a->name, edges_of(j->from, f, a->name.n));
		struct str data = one_text(j, a->data, edges_of(j->from, f, a->data.n));

		if ((!name.p && !data.p) || !copy_of(j))
			continue;
		if (!v) {
			v = arena_alloc(j->from->arena, n * sizeof(*v));
			if (!v) {
				j->error = -ENOMEM;
				return;
			}
			memcpy(v, j->from->v[f].answers.v, n * sizeof(*v));
			j->to->v[f].answers.v = v;
		}
		v[i].name = name.p ? name : v[i].name;
		v[i].data = data.p ? data : v[i].data;
	}
}

/* A file with a known value and nothing else: whoever has its hash could try values against it. */
static void hash_field(struct job *j, enum field_id f)
{
	if (!event_has(j->from, f) || !is_hash_of_value(j->x->r, j->from->v[f].s) || !copy_of(j))
		return;
	event_unset(j->to, f);
	if (!event_has(j->to, F_FILE_UNHASHED))
		event_set_strz(j->to, F_FILE_UNHASHED, "redacted");
	j->places++;
}

/* ---- parts ---- */

static bool has_edge(const struct event *ev, size_t f)
{
	const union field_value *v = &ev->v[f];
	size_t bytes = 0;

	switch (event_fields[f].type) {
	case FT_STR:
		return edges_of(ev, f, v->s.n);
	case FT_STRLIST:
		for (size_t i = 0; i < v->list.n; i++)
			bytes += v->list.v[i].n + 1;
		return edges_of(ev, f, bytes);
	case FT_ANCESTORS:
		for (size_t i = 0; i < v->ancestors.n; i++)
			if (edges_of(ev, f, v->ancestors.v[i].comm.n) ||
			    v->ancestors.v[i].exe.n >= LONG_CUT)
				return true;
		return false;
	default:
		return false;
	}
}

/* Fields that need no look: of parts that were clean before. *ret_new: parts that will have been looked through. */
static uint64_t clean_parts(const struct redact_clean *c, const struct event *ev, unsigned *ret_new)
{
	uint64_t known = 0;

	*ret_new = 0;
	if (event_has(ev, F_TRUNCATED))
		return 0;
	for (unsigned i = 0; i < EVENT_PARTS; i++) {
		const struct event_part *p = ev->part[i];

		if (!p || !event_part_holds(p, ev))
			continue;
		if (c->parts[p->serial % PARTS_KEPT] == p->serial)
			known |= p->mask;
		else
			*ret_new |= 1u << i;
	}
	return known;
}

/* Nothing was found in the event. What was looked through with an edge is looked through each time. */
static void parts_are_clean(struct redact_clean *c, const struct event *ev, unsigned which)
{
	for (unsigned i = 0; i < EVENT_PARTS; i++) {
		const struct event_part *p = ev->part[i];
		bool edge = false;

		if (!(which >> i & 1))
			continue;
		for (unsigned k = 0; k < p->n && !edge; k++)
			edge = has_edge(ev, p->field[k]);
		if (!edge)
			c->parts[p->serial % PARTS_KEPT] = p->serial;
	}
}

static void one_field(struct job *j, size_t f)
{
	switch (event_fields[f].type) {
	case FT_STR:
		text_field(j, f);
		break;
	case FT_MEMBERS:
		members_field(j, f);
		break;
	case FT_STRLIST:
		list_field(j, f);
		break;
	case FT_ANCESTORS:
		ancestors_field(j, f);
		break;
	case FT_ANSWERS:
		answers_field(j, f);
		break;
	default:
		break;
	}
}

void redact_bare(struct redact *x, struct event *ev)
{
	for (size_t f = 0; f < F_COUNT; f++)
		if (is_text(event_fields[f].type) &&
		    (!x->clean || x->clean->looked[f / 64] >> (f % 64) & 1))
			event_unset(ev, (enum field_id)f);
	event_set_u64(ev, F_REDACTIONS, event_u64(ev, F_REDACTIONS) + 1);
}

int redact_event(struct redact *x, const struct event *ev, struct event **ret)
{
	struct job j = { .x = x, .from = ev };
	uint64_t known;
	unsigned parts;

	if (!x->clean && !make_clean(x))
		return -ENOMEM;
	known = clean_parts(x->clean, ev, &parts);
	for (size_t w = 0; w < EVENT_PRESENT_WORDS; w++, known = 0)
		for (uint64_t bits = ev->present[w] & x->clean->looked[w] & ~known;
		     bits && !j.error; bits &= bits - 1)
			one_field(&j, w * 64 + (size_t)__builtin_ctzll(bits));
	hash_field(&j, F_FILE_SHA256);
	hash_field(&j, F_FILE_SHA256_BEFORE);
	if (j.error)
		return j.error;
	if (!j.to) {
		parts_are_clean(x->clean, ev, parts);
		return 0;
	}
	event_set_u64(j.to, F_REDACTIONS, event_u64(ev, F_REDACTIONS) + j.places);
	*ret = j.to;
	return 1;
}
