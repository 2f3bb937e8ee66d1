// SPDX-License-Identifier: Apache-2.0
/* Output templates: text with %field, %field[arg], %transformer(field), %<width>field and %%. */
#include "rules/internal.h"

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"

struct maker {
	struct ruleset *rs;
	struct rule *r;
	const char *s;
	size_t n, i;
	struct out_part *part;
	size_t part_n, cap;
	struct buf lit;
	bool falco;
};

static bool add(struct maker *m, struct out_part p)
{
	if (rs_grow(m->rs, &m->part, &m->cap, m->part_n, sizeof(*m->part)) < 0)
		return false;
	m->part[m->part_n++] = p;
	return true;
}

static bool flush(struct maker *m)
{
	struct out_part p = { .text = rs_dup(m->rs, (struct str){ m->lit.p, m->lit.n }) };

	if (!m->lit.n)
		return true;
	buf_reset(&m->lit);
	return p.text.p && add(m, p);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static size_t name_len(const struct maker *m, size_t at)
{
	size_t i = at;

	while (i < m->n && (is_word(m->s[i]) ||
			    (m->s[i] == '.' && i > at && i + 1 < m->n && is_word(m->s[i + 1]))))
		i++;
	return i - at;
}

static int transformer(struct str s)
{
	static const char *const names[] = { "tolower", "toupper", "b64", "basename", "len" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eqz(s, names[i]))
			return (int)i + TR_TOLOWER;
	return -1;
}

/* The field behind a % at m->i. False when it was an error. */
static bool parse_field(struct maker *m, struct lhs *l)
{
	uint8_t outer[TRANSFORMERS_MAX];
	size_t n, k = 0;

	for (;;) {
		int tr;

		n = name_len(m, m->i);
		if (m->i + n >= m->n || m->s[m->i + n] != '(')
			break;
		tr = transformer((struct str){ m->s + m->i, n });
		if (tr < 0 || k == TRANSFORMERS_MAX)
			break;
		outer[k++] = (uint8_t)tr;
		m->i += n + 1;
	}
	l->pos = (uint32_t)m->i;
	l->name = (struct str){ m->s + m->i, n };
	m->i += n;
	if (m->i < m->n && m->s[m->i] == '[') {
		const char *end = memchr(m->s + m->i, ']', m->n - m->i);

		if (!end) {
			rule_error(m->rs, text_pos(&m->r->out, m->i),
				   "field argument in the output has no ']'");
			return false;
		}
		l->has_arg = true;
		l->arg = (struct str){ m->s + m->i + 1, (size_t)(end - m->s) - m->i - 1 };
		m->i = (size_t)(end - m->s) + 1;
	}
	for (size_t i = k; i-- > 0;)
		l->tr[l->tr_n++] = outer[i];
	for (size_t i = 0; i < k; i++, m->i++)
		if (m->i >= m->n || m->s[m->i] != ')') {
			rule_error(m->rs, text_pos(&m->r->out, m->i),
				   "transformer in the output has no ')'");
			return false;
		}
	return true;
}

/* Its text; empty when the output has named it before. */
static struct str field_key(const struct maker *m, size_t from)
{
	struct str s = { m->s + from, m->i - from };

	for (size_t i = 0; i < m->part_n; i++)
		if (m->part[i].a && str_eq(m->part[i].key, s))
			return (struct str){ 0 };
	return rs_dup(m->rs, s);
}

static bool parse_percent(struct maker *m)
{
	struct out_part p = { 0 };
	struct lhs l = { 0 };
	size_t at = m->i++, name;

	while (m->i < m->n && m->s[m->i] >= '0' && m->s[m->i] <= '9' && p.width < 4096)
		p.width = p.width * 10 + (uint32_t)(m->s[m->i++] - '0');
	if (!name_len(m, m->i)) {
		/* A lone % is text, as in "100 %". */
		buf_add(&m->lit, m->s + at, m->i - at);
		return true;
	}
	name = m->i;
	if (!parse_field(m, &l))
		return false;
	p.key = field_key(m, name);
	p.a = bind_access(m->rs, m->r, &m->r->out, &l, m->falco);
	if (!p.a)
		return false;
	p.absent = p.a->row->flags & FR_ABSENT;
	if (p.absent && !m->r->output_absent)
		m->r->output_absent = p.a->row->name;
	return flush(m) && add(m, p);
}

bool output_compile(struct ruleset *rs, struct rule *r)
{
	struct maker m = { .rs = rs, .r = r, .s = r->out.s.p, .n = r->out.s.n, .falco = r->falco };
	bool ok = true;

	buf_init(&m.lit, 1 << 20);
	/* A leading * of old files: print although fields are missing, which we always do. */
	if (m.n && m.s[0] == '*')
		m.i++;
	while (m.i < m.n && ok) {
		if (m.s[m.i] == '%' && m.i + 1 < m.n && m.s[m.i + 1] == '%') {
			buf_addc(&m.lit, '%');
			m.i += 2;
		} else if (m.s[m.i] == '%') {
			ok = parse_percent(&m);
		} else {
			buf_addc(&m.lit, m.s[m.i++]);
		}
	}
	ok = ok && flush(&m) && !m.lit.failed;
	buf_done(&m.lit);
	r->part = m.part;
	r->part_n = m.part_n;
	return ok;
}

/* ---- filling in ---- */

/* Is there a control character at s.p[i]? Its length in bytes; C1 ones are two in UTF-8. */
static size_t control_at(struct str s, size_t i)
{
	unsigned char c = (unsigned char)s.p[i];

	if (c < 0x20 || c == 0x7f)
		return 1;
	return c == 0xc2 && i + 1 < s.n && ((unsigned char)s.p[i + 1] & 0xe0) == 0x80 ? 2 : 0;
}

/* An output is one line for people and log files: a value from the sandbox must not begin another one,
 * nor talk to the terminal. */
static void put_text(struct buf *out, struct str s)
{
	size_t done = 0;

	for (size_t i = 0; i < s.n && !out->failed;) {
		size_t n = control_at(s, i);

		if (!n) {
			i++;
			continue;
		}
		buf_add(out, s.p + done, i - done);
		if (s.p[i] == '\n')
			buf_addz(out, "\\n");
		else if (s.p[i] == '\t')
			buf_addz(out, "\\t");
		else
			buf_printf(out, "\\x%02x", (unsigned char)s.p[i + n - 1]);
		done = i += n;
	}
	buf_add(out, s.p + done, s.n - done);
}

static void put_value(struct buf *out, const struct val *v, enum rtype type)
{
	char text[64];

	switch (v->t) {
	case V_STR:
		put_text(out, v->s);
		return;
	case V_U64:
		if (type == RT_BOOL) {
			buf_addz(out, v->u ? "true" : "false");
		} else if (type == RT_TIME) {
			rfc3339_ns(text, v->u);
			buf_addz(out, text);
		} else {
			buf_printf(out, "%llu", (unsigned long long)v->u);
		}
		return;
	case V_I64:
		buf_printf(out, "%lld", (long long)v->i);
		return;
	case V_IP:
		buf_add(out, text, ip_addr_text(v->ip, text));
		return;
	default:
		return;
	}
}

static void put_list(struct buf *out, const struct val *v, enum rtype type)
{
	for (uint32_t i = 0; i < v->list.n && !out->failed; i++) {
		const char *p = v->list.base + (size_t)i * v->list.stride;
		struct val one = { .t = v->list.et };

		if (i)
			buf_addc(out, ' ');
		if (one.t == V_STR)
			one.s = *(const struct str *)p;
		else if (one.t == V_U64)
			one.u = *(const uint64_t *)p;
		else
			one.ip = (const struct ip_addr *)p;
		if (one.t == V_STR && !one.s.p)
			buf_addz(out, "<NA>");
		else
			put_value(out, &one, type);
	}
}

static void put_part(struct buf *out, struct eval *e, const struct out_part *p)
{
	size_t before = out->n, n;
	struct val tmp;
	const struct val *v;

	if (!p->a) {
		buf_add(out, p->text.p, p->text.n);
		return;
	}
	v = eval_value(e, p->a, &tmp);
	if (v->t == V_NONE || p->absent)
		buf_addz(out, "<NA>");
	else if (v->t == V_LIST)
		put_list(out, v, p->a->type);
	else
		put_value(out, v, p->a->type);
	/* A width is exact: padded on the right, cut when longer. */
	n = out->n - before;
	if (!p->width || out->failed)
		return;
	if (n > p->width)
		out->n = before + p->width;
	for (; n < p->width; n++)
		buf_addc(out, ' ');
}

int rule_format_output(const struct rule_info *info, const struct event *ev, struct buf *out)
{
	const struct rule *r = (const struct rule *)info;
	struct eval e;

	eval_init(&e, ev);
	for (size_t i = 0; i < r->part_n && !out->failed; i++)
		put_part(out, &e, &r->part[i]);
	return out->failed ? -EMSGSIZE : 0;
}

/* ---- as JSON ---- */

/* Whole characters of the first `max` bytes. */
static struct str cut(struct str s, size_t max)
{
	if (s.n <= max)
		return s;
	while (max && ((unsigned char)s.p[max] & 0xc0) == 0x80)
		max--;
	return (struct str){ s.p, max };
}

static void json_single(struct json *j, const struct val *v, enum rtype type)
{
	char text[64];

	switch (v->t) {
	case V_STR:
		json_str(j, cut(v->s, RULE_FIELD_MAX));
		return;
	case V_U64:
		if (type == RT_BOOL)
			json_bool(j, v->u);
		else
			json_u64(j, v->u);
		return;
	case V_I64:
		json_i64(j, v->i);
		return;
	case V_IP:
		json_str(j, (struct str){ text, ip_addr_text(v->ip, text) });
		return;
	default:
		json_null(j);
	}
}

static void json_list(struct json *j, const struct val *v, enum rtype type)
{
	size_t before = j->out->n;
	struct val one;

	json_array_begin(j);
	for (uint32_t i = 0; i < v->list.n && j->out->n - before < RULE_FIELD_MAX; i++) {
		val_list_at(v, i, &one);
		if (one.t == V_STR && !one.s.p)
			one.t = V_NONE;
		json_single(j, &one, type);
	}
	json_array_end(j);
}

static void json_part(struct json *j, struct eval *e, const struct out_part *p)
{
	struct val tmp;
	const struct val *v = eval_value(e, p->a, &tmp);

	json_key_str(j, p->key);
	if (v->t == V_NONE || p->absent)
		json_null(j);
	else if (v->t == V_LIST)
		json_list(j, v, p->a->type);
	else
		json_single(j, v, p->a->type);
}

int rule_format_fields(const struct rule_info *info, const struct event *ev, struct buf *out)
{
	const struct rule *r = (const struct rule *)info;
	struct eval e;
	int n = 0;

	eval_init(&e, ev);
	buf_addc(out, '{');
	for (size_t i = 0; i < r->part_n; i++) {
		auto_buf struct buf one = { 0 };
		struct json j;

		if (!r->part[i].a || !r->part[i].key.n)
			continue;
		json_init(&j, &one);
		json_object_begin(&j);
		json_part(&j, &e, &r->part[i]);
		if (one.failed || out->n + one.n + 2 > (out->max ? out->max : BUF_MAX_DEFAULT) ||
		    n == RULE_FIELDS_MAX)
			continue;
		if (n++)
			buf_addc(out, ',');
		buf_add(out, one.p + 1, one.n - 1);
	}
	buf_addc(out, '}');
	return out->failed ? -EMSGSIZE : n;
}
