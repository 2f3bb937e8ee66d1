// SPDX-License-Identifier: Apache-2.0
/* Running the programs of one event's kind. A check that several rules share runs once. */
#include "rules/index.h"
#include "rules/state.h"

#include <pthread.h>

/* Memory of a thread: made once, so that judging an event allocates nothing. */
struct thread_state {
	char scratch[RULE_SCRATCH];
	pcre2_match_data *md;
	pcre2_match_context *mc;
};

static __thread struct thread_state *tls;
static pthread_key_t tls_key;
static pthread_once_t tls_once = PTHREAD_ONCE_INIT;

static void tls_free(void *p)
{
	struct thread_state *t = p;

	pcre2_match_data_free(t->md);
	pcre2_match_context_free(t->mc);
	free(t);
	tls = NULL;
}

static void tls_key_make(void)
{
	pthread_key_create(&tls_key, tls_free);
}

static struct thread_state *thread_state(void)
{
	struct thread_state *t = tls;

	if (t)
		return t;
	pthread_once(&tls_once, tls_key_make);
	t = malloc(sizeof(*t));
	if (!t)
		return NULL;
	t->md = pcre2_match_data_create(1, NULL);
	t->mc = pcre2_match_context_create(NULL);
	if (!t->md || !t->mc || pthread_setspecific(tls_key, t)) {
		tls_free(t);
		return NULL;
	}
	pcre2_set_match_limit(t->mc, RULE_REGEX_MATCH);
	pcre2_set_heap_limit(t->mc, 1024);
	return tls = t;
}

void eval_init(struct eval *e, const struct event *ev)
{
	e->ev = ev;
	e->scratch = NULL;
	e->scratch_n = 0;
	memset(e->memo_known, 0, sizeof(e->memo_known));
}

char *eval_scratch(struct eval *e, size_t n)
{
	char *p;

	if (!e->scratch) {
		struct thread_state *t = thread_state();

		if (!t)
			return NULL;
		e->scratch = t->scratch;
	}
	if (n > RULE_SCRATCH - e->scratch_n)
		return NULL;
	p = e->scratch + e->scratch_n;
	e->scratch_n += n;
	return p;
}

/* ---- transformers ---- */

static int b64_digit(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes; what is no base64 is a missing value. */
static bool from_b64(struct eval *e, struct str *s)
{
	char *out = eval_scratch(e, s->n);
	uint32_t acc = 0;
	size_t n = 0, bits = 0;

	if (!out)
		return false;
	for (size_t i = 0; i < s->n; i++) {
		int d = b64_digit((unsigned char)s->p[i]);

		if (s->p[i] == '=')
			break;
		if (d < 0)
			return false;
		acc = acc << 6 | (uint32_t)d;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (char)(acc >> bits);
		}
	}
	*s = (struct str){ out, n };
	return true;
}

static bool to_case(struct eval *e, struct str *s, bool upper)
{
	char *out = eval_scratch(e, s->n);

	if (!out)
		return false;
	for (size_t i = 0; i < s->n; i++) {
		char c = s->p[i];

		if (upper && c >= 'a' && c <= 'z')
			c -= 32;
		else if (!upper && c >= 'A' && c <= 'Z')
			c += 32;
		out[i] = c;
	}
	s->p = out;
	return true;
}

static void transform(struct eval *e, uint8_t tr, struct val *v)
{
	const char *slash;
	bool ok = true;

	if (tr == TR_LEN) {
		v->u = v->t == V_LIST ? v->list.n : v->s.n;
		v->t = V_U64;
		return;
	}
	if (v->t != V_STR) {
		v->t = V_NONE;
		return;
	}
	switch (tr) {
	case TR_TOLOWER:
	case TR_TOUPPER:
		ok = to_case(e, &v->s, tr == TR_TOUPPER);
		break;
	case TR_B64:
		ok = from_b64(e, &v->s);
		break;
	case TR_BASENAME:
		slash = v->s.n ? memrchr(v->s.p, '/', v->s.n) : NULL;
		if (slash)
			v->s = (struct str){ slash + 1, v->s.n - (size_t)(slash + 1 - v->s.p) };
		break;
	default:
		break;
	}
	if (!ok)
		v->t = V_NONE;
}

const struct val *eval_value(struct eval *e, const struct access *a, struct val *tmp)
{
	struct val *v = tmp;

	if (a->memo >= 0) {
		v = &e->memo[a->memo];
		if (e->memo_known[a->memo / 64] >> (a->memo % 64) & 1)
			return v;
		e->memo_known[a->memo / 64] |= 1ull << (a->memo % 64);
	}
	v->t = V_NONE;
	a->get(e, a, v);
	for (uint8_t i = 0; i < a->tr_n && v->t != V_NONE; i++)
		transform(e, a->tr[i], v);
	return v;
}

/* ---- checks ---- */

static bool regex_match(const struct atom *a, struct str s)
{
	struct thread_state *t = thread_state();

	if (!t || s.n > RULE_REGEX_SUBJECT)
		return false;
	return pcre2_match(a->re, (PCRE2_SPTR)s.p, s.n, 0, 0, t->md, t->mc) >= 0;
}

static bool check_str(const struct atom *a, enum rule_op op, struct str s, struct str want)
{
	switch (op) {
	case OP_EQ:
		return str_eq(s, want);
	case OP_NE:
		return !str_eq(s, want);
	case OP_CONTAINS:
	case OP_BCONTAINS:
		return str_contains(s, want);
	case OP_ICONTAINS:
		return str_icontains(s, want);
	case OP_STARTSWITH:
	case OP_BSTARTSWITH:
		return str_starts(s, want);
	case OP_ENDSWITH:
		return str_ends(s, want);
	case OP_GLOB:
		return str_glob(want, s, false);
	case OP_IGLOB:
		return str_glob(want, s, true);
	case OP_REGEX:
		return regex_match(a, s);
	case OP_IN:
	case OP_INTERSECTS:
		return a->set ? strset_has(a->set, s) : str_eq(s, want);
	case OP_PMATCH:
		return a->set ? pathset_match(a->set, s)
			      : str_starts(s, want) && (s.n == want.n || s.p[want.n] == '/');
	default:
		return false;
	}
}

static bool num_has(const struct atom *a, uint64_t v)
{
	size_t lo = 0, hi = a->num_n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (a->num[mid] < v)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < a->num_n && a->num[lo] == v;
}

static bool check_num(const struct atom *a, uint64_t v, uint64_t want)
{
	switch (a->op) {
	case OP_EQ:
		return v == want;
	case OP_NE:
		return v != want;
	case OP_LT:
		return v < want;
	case OP_LE:
		return v <= want;
	case OP_GT:
		return v > want;
	case OP_GE:
		return v >= want;
	case OP_IN:
	case OP_INTERSECTS:
		return a->rhs ? v == want : num_has(a, v);
	default:
		return false;
	}
}

static bool net_has(const struct net *n, const struct ip_addr *ip)
{
	unsigned whole = n->bits / 8, rest = n->bits % 8;

	if (n->family != ip->family || memcmp(n->b, ip->b, whole))
		return false;
	return !rest || ((n->b[whole] ^ ip->b[whole]) & (0xff00u >> rest) & 0xff) == 0;
}

static bool check_ip(const struct atom *a, const struct ip_addr *ip, const struct ip_addr *want)
{
	bool hit = false;

	if (want)
		hit = ip->family == want->family &&
		      !memcmp(ip->b, want->b, ip->family == 4 ? 4 : 16);
	for (size_t i = 0; !hit && i < a->net_n; i++)
		hit = net_has(&a->net[i], ip);
	return a->op == OP_NE ? !hit : hit;
}

uint64_t val_num_key(const struct val *v, enum rtype type)
{
	uint64_t n = v->t == V_I64 ? (uint64_t)v->i : v->u;

	return type == RT_I64 ? n ^ (1ull << 63) : n;
}

static bool check_one(const struct atom *a, const struct val *v, const struct val *rhs)
{
	switch (v->t) {
	case V_STR:
		return check_str(a, a->op, v->s, rhs ? rhs->s : a->s);
	case V_U64:
	case V_I64:
		if (rhs)
			return check_num(a, val_num_key(v, RT_I64), val_num_key(rhs, RT_I64));
		return check_num(a, val_num_key(v, a->a->type), a->num_n ? a->num[0] : 0);
	case V_IP:
		return check_ip(a, v->ip, rhs ? rhs->ip : NULL);
	default:
		return false;
	}
}

bool val_list_at(const struct val *list, uint32_t i, struct val *ret)
{
	const char *p = list->list.base + (size_t)i * list->list.stride;

	ret->t = list->list.et;
	switch (ret->t) {
	case V_STR:
		ret->s = *(const struct str *)p;
		return ret->s.p != NULL;
	case V_U64:
		ret->u = *(const uint64_t *)p;
		return true;
	case V_IP:
		ret->ip = (const struct ip_addr *)p;
		return true;
	default:
		return false;
	}
}

static bool check_any(const struct atom *a, const struct val *v, const struct val *rhs);

static bool check_list(const struct atom *a, const struct val *v, const struct val *rhs)
{
	bool all = (a->op == OP_IN && (a->a->row->flags & FR_LIST)) ||
		   (a->op == OP_NE && a->a->type != RT_STR);

	for (uint32_t i = 0; i < v->list.n; i++) {
		struct val one;
		bool hit = val_list_at(v, i, &one) && check_any(a, &one, rhs);

		if (hit != all)
			return hit;
	}
	return all;
}

static bool check_any(const struct atom *a, const struct val *v, const struct val *rhs)
{
	if (v->t == V_LIST)
		return check_list(a, v, rhs);
	if (!rhs || rhs->t != V_LIST)
		return check_one(a, v, rhs);
	for (uint32_t i = 0; i < rhs->list.n; i++) {
		struct val one;

		if (val_list_at(rhs, i, &one) && check_one(a, v, &one))
			return true;
	}
	return false;
}

bool atom_eval(struct eval *e, const struct atom *a)
{
	struct val tmp, rtmp;
	const struct val *v = eval_value(e, a->a, &tmp), *rhs = NULL;

	if (v->t == V_NONE)
		return false;
	if (a->op == OP_EXISTS)
		return true;
	if (a->rhs) {
		rhs = eval_value(e, a->rhs, &rtmp);
		if (rhs->t == V_NONE)
			return false;
	}
	return check_any(a, v, rhs);
}

/* ---- programs ---- */

/* One rule's program. Checks that were made before, by a look-up or for another rule, are not made again. */
static bool run_prog(const struct ruleset *rs, const struct bucket *b, struct eval *e, uint32_t pc,
		     uint64_t *known, uint64_t *value)
{
	while (pc <= PC_LAST) {
		const struct insn *in = &rs->code[pc];
		uint64_t bit = 1ull << (in->atom % 64);
		uint32_t w = in->atom / 64;

		if (!(known[w] & bit)) {
			known[w] |= bit;
			if (atom_eval(e, b->atom[in->atom]))
				value[w] |= bit;
		}
		pc = value[w] & bit ? in->t : in->f;
	}
	return pc == PC_TRUE;
}

static size_t run_event(const struct ruleset *rs, const struct event *ev, bool indexed,
			struct rule_memory *st, struct rule_matches *ret)
{
	uint64_t known[RULE_ATOMS_MAX / 64 + 1], value[RULE_ATOMS_MAX / 64 + 1];
	uint64_t cand[RULE_PROGS_MAX / 64 + 1];
	struct index_run run = { value, cand };
	size_t k = kind_index((uint16_t)ev->kind), words, cands;
	const struct bucket *b;
	struct eval e;

	ret->n = 0;
	ret->more = 0;
	if (k >= RULE_KINDS_MAX || !rs->compiled || !(rs->kinds >> k & 1))
		return 0;
	b = &rs->bucket[k];
	words = (b->atoms_n + 63) / 64;
	cands = (b->progs_n + 63) / 64;
	eval_init(&e, ev);
	memset(value, 0, words * sizeof(*value));
	if (indexed) {
		memcpy(known, b->index->known, words * sizeof(*known));
		memcpy(cand, b->index->always, cands * sizeof(*cand));
		index_run(b->index, &e, &run);
	} else {
		memset(known, 0, words * sizeof(*known));
		for (size_t i = 0; i < cands; i++)
			cand[i] = b->progs_n - i * 64 >= 64 ? UINT64_MAX
							    : (1ull << (b->progs_n % 64)) - 1;
	}
	for (size_t w = 0; w < cands; w++) {
		for (uint64_t left = cand[w]; left; left &= left - 1) {
			const struct prog *p = &b->prog[w * 64 + (size_t)__builtin_ctzll(left)];

			const struct rule *r = rs->rule[p->rule];

			if (!run_prog(rs, b, &e, p->entry, known, value) ||
			    !rule_memory_has(st, p->rule) ||
			    (r->st && !stateful_hit(st, r, p->step, &e)))
				continue;
			if (ret->n < RULE_MATCH_MAX)
				ret->v[ret->n++] = &r->info;
			else
				ret->more++;
		}
	}
	return ret->n + ret->more;
}

size_t ruleset_eval(const struct ruleset *rs, const struct event *ev, struct rule_matches *ret)
{
	return run_event(rs, ev, true, NULL, ret);
}

size_t ruleset_judge(const struct ruleset *rs, struct rule_memory *st, const struct event *ev,
		     struct rule_matches *ret)
{
	return run_event(rs, ev, true, st, ret);
}

size_t ruleset_eval_plain(const struct ruleset *rs, const struct event *ev,
			  struct rule_matches *ret)
{
	return run_event(rs, ev, false, NULL, ret);
}
