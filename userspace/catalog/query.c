// SPDX-License-Identifier: Apache-2.0
/* Questions to the catalogue. Every value goes in as a parameter, none as SQL. */
#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/catalog/internal.h"

#define PARAMS_MAX 16

struct query {
	struct buf sql;
	const char *text[PARAMS_MAX];
	uint64_t number[PARAMS_MAX];
	unsigned n;
};

/* A '@' in the clause stands for the value. */
static bool where(struct query *q, const char *clause)
{
	if (q->n == PARAMS_MAX)
		return false;
	buf_addz(&q->sql, " AND ");
	for (; *clause; clause++) {
		if (*clause == '@')
			buf_printf(&q->sql, "?%u", q->n + 1);
		else
			buf_addc(&q->sql, *clause);
	}
	return true;
}

static void where_text(struct query *q, const char *clause, const char *value)
{
	if (value && where(q, clause))
		q->text[q->n++] = value;
}

static void where_number(struct query *q, const char *clause, uint64_t value)
{
	if (value && where(q, clause))
		q->number[q->n++] = value;
}

#define HAS_FACT(kind) \
	"EXISTS (SELECT 1 FROM fact WHERE session = id AND kind = '" kind "' AND value GLOB @)"

static void build_list(struct query *q, const struct catalog_filter *f)
{
	buf_addz(&q->sql,
		 "SELECT id, state, name, tenant, host, backend, tier, command, reason, rule, head,"
		 " started, ended, records, alerts, lost, bytes, exit_code, is_signed, is_cut,"
		 " damage"
		 " FROM session WHERE 1");
	where_text(q, "id = @", f->id);
	where_text(q, "tenant GLOB @", f->tenant);
	where_text(q, "name GLOB @", f->name);
	where_text(q, "reason = @", f->reason);
	where_text(q, "state = @", f->state);
	where_text(q, HAS_FACT("rule"), f->rule);
	where_text(q, HAS_FACT("exe"), f->exe);
	where_text(q, HAS_FACT("path"), f->path);
	/* a name, an address, or address:port */
	where_text(q,
		   "EXISTS (SELECT 1 FROM fact WHERE session = id AND kind IN ('dst', 'name')"
		   " AND (value GLOB @ OR value GLOB @ || ':*' OR value GLOB '[[]' || @ || ']:*'))",
		   f->dst);
	where_text(q,
		   "(instr(command, @) OR instr(name, @) OR EXISTS"
		   " (SELECT 1 FROM fact WHERE session = id AND instr(value, @)))",
		   f->text);
	where_number(q, "started >= @", f->since_ns);
	where_number(q, "started < @", f->until_ns);
	buf_addz(&q->sql, " ORDER BY started DESC, id DESC");
	if (f->limit)
		buf_printf(&q->sql, " LIMIT %llu", (unsigned long long)f->limit);
	buf_addc(&q->sql, 0);
}

static void bind_params(const struct query *q, sqlite3_stmt *s)
{
	for (unsigned i = 0; i < q->n; i++) {
		if (q->text[i])
			sqlite3_bind_text(s, (int)i + 1, q->text[i], -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(s, (int)i + 1, (sqlite3_int64)q->number[i]);
	}
}

static void read_row(sqlite3_stmt *s, struct catalog_row *row)
{
	const char **const texts[] = { &row->id,     &row->state,   &row->name, &row->tenant,
				       &row->host,   &row->backend, &row->tier, &row->command,
				       &row->reason, &row->rule,    &row->head };
	uint64_t *const numbers[] = { &row->started_ns, &row->ended_ns, &row->records,
				      &row->alerts,	&row->lost,	&row->bytes };
	int col = 0;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++, col++) {
		const char *v = (const char *)sqlite3_column_text(s, col);

		*texts[i] = v ? v : "";
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++, col++)
		*numbers[i] = (uint64_t)sqlite3_column_int64(s, col);
	row->has_end = sqlite3_column_type(s, col) != SQLITE_NULL;
	row->exit_code = sqlite3_column_int64(s, col++);
	row->is_signed = sqlite3_column_int(s, col++);
	row->is_cut = sqlite3_column_int(s, col++);
	row->damage = (const char *)sqlite3_column_text(s, col++);
	if (!row->damage)
		row->damage = "";
}

int catalog_list(struct catalog *c, const struct catalog_filter *f, catalog_row_fn fn, void *arg,
		 struct err *err)
{
	struct query q = { 0 };
	auto_stmt sqlite3_stmt *s = NULL;
	struct catalog_row row;
	int step, r = 0;

	build_list(&q, f);
	s = q.sql.failed ? NULL : catalog_prepare(c, q.sql.p, err);
	buf_done(&q.sql);
	if (!s)
		return -EIO;
	bind_params(&q, s);
	while (r == 0 && (step = sqlite3_step(s)) != SQLITE_DONE) {
		if (step != SQLITE_ROW)
			return catalog_error(c, err);
		read_row(s, &row);
		r = fn(arg, &row);
	}
	return r;
}

static int each_fact(struct catalog *c, sqlite3_stmt *s, catalog_fact_fn fn, void *arg,
		     struct err *err)
{
	int step, r = 0;

	while (r == 0 && (step = sqlite3_step(s)) != SQLITE_DONE) {
		struct catalog_fact fact = {
			(const char *)sqlite3_column_text(s, 0),
			(const char *)sqlite3_column_text(s, 1),
			(uint64_t)sqlite3_column_int64(s, 2),
		};

		if (step != SQLITE_ROW || !fact.kind || !fact.value)
			return catalog_error(c, err);
		r = fn(arg, &fact);
	}
	return r;
}

int catalog_facts(struct catalog *c, const char *id, uint64_t per_kind, catalog_fact_fn fn,
		  void *arg, struct err *err)
{
	auto_stmt sqlite3_stmt *s = catalog_prepare(
		c,
		"SELECT kind, value, count FROM (SELECT kind, value, count, row_number() OVER"
		" (PARTITION BY kind ORDER BY count DESC, value) AS place FROM fact WHERE session = ?)"
		" WHERE place <= ? ORDER BY kind, place",
		err);

	if (!s)
		return -EIO;
	sqlite3_bind_text(s, 1, id, -1, SQLITE_STATIC);
	sqlite3_bind_int64(s, 2, per_kind ? (sqlite3_int64)per_kind : INT64_MAX);
	return each_fact(c, s, fn, arg, err);
}

int catalog_only_in(struct catalog *c, const char *a, const char *b, catalog_fact_fn fn, void *arg,
		    struct err *err)
{
	auto_stmt sqlite3_stmt *s = catalog_prepare(
		c,
		"SELECT kind, value, count FROM fact AS here WHERE session = ?2 AND NOT EXISTS"
		" (SELECT 1 FROM fact WHERE session = ?1 AND kind = here.kind AND value = here.value)"
		" ORDER BY kind, value",
		err);

	if (!s)
		return -EIO;
	sqlite3_bind_text(s, 1, a, -1, SQLITE_STATIC);
	sqlite3_bind_text(s, 2, b, -1, SQLITE_STATIC);
	return each_fact(c, s, fn, arg, err);
}
