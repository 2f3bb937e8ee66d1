// SPDX-License-Identifier: Apache-2.0
/* The file is read twice: exceptions for all rules may stand behind the rules. */
#include "userspace/redact/gitleaks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/gitleaks_import.h"

void gitleaks_tell(struct import *m, const char *text, bool out)
{
	if (m->note && !m->globals)
		m->note(m->arg, m->in_rule ? m->id : "", text, out);
}

void gitleaks_tell_unknown(struct import *m, struct str key)
{
	char text[128];

	m->result->unknown++;
	snprintf(text, sizeof(text), "the key '%.*s' is not known: not carried",
		 (int)MIN(key.n, (size_t)64), key.p);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	gitleaks_tell(m, text, false);
}

static bool behind(struct str path, const char *prefix, struct str *ret)
{
	size_t n = strlen(prefix);

	if (path.n < n || memcmp(path.p, prefix, n) != 0)
		return false;
	*ret = (struct str){ path.p + n, path.n - n };
	return true;
}

static int on_table(struct import *m, struct str path)
{
	if (str_eqz(path, "rules"))
		return m->globals ? 0 : gitleaks_rule_begin(m);
	if (str_eqz(path, "rules.allowlist") || str_eqz(path, "rules.allowlists")) {
		if (!m->globals)
			allows_new_list(&m->own);
	} else if (str_eqz(path, "allowlist") || str_eqz(path, "allowlists")) {
		if (m->globals)
			allows_new_list(&m->all);
	}
	return 0;
}

static void tell_file(struct import *m, const char *text)
{
	if (m->note && !m->globals)
		m->note(m->arg, "", text, false);
}

/* What stands in no rule, and is no list of exceptions. */
static void top_item(struct import *m, const struct toml_item *it)
{
	static const char *const known[] = { "title",  "description", "minVersion", "version",
					     "extend", "rules",	      "allowlist",  "allowlists" };
	struct str key;
	bool was = m->in_rule;

	if (behind(it->path, "extend.disabledRules", &key)) {
		if (!m->no_disabled)
			tell_file(m,
				  "extend.disabledRules: not carried, they are rules of files that "
				  "are not read; switch them off by name (off: true)");
		m->no_disabled = true;
		return;
	}
	if (behind(it->path, "extend.", &key)) {
		if (it->type != TOML_BOOL || str_eqz(it->text, "true"))
			tell_file(m, "extend: other files are not read, import them as well");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eqz(it->path, known[i]))
			return;
	if (memchr(it->path.p, '.', it->path.n))
		return;
	m->in_rule = false;
	gitleaks_tell_unknown(m, it->path);
	m->in_rule = was;
}

static int on_item(void *arg, const struct toml_item *it, struct err *err)
{
	struct import *m = arg;
	struct str key;

	(void)err;
	if (it->type == TOML_TABLE) {
		if (!m->globals)
			top_item(m, it);
		return on_table(m, it->path);
	}
	if (behind(it->path, "allowlist.", &key) || behind(it->path, "allowlists.", &key))
		return m->globals ? allows_item(m, &m->all, key, it) : 0;
	if (m->globals)
		return 0;
	if (behind(it->path, "rules.allowlist.", &key) ||
	    behind(it->path, "rules.allowlists.", &key))
		return allows_item(m, &m->own, key, it);
	if (behind(it->path, "rules.", &key))
		return m->in_rule ? gitleaks_rule_item(m, key, it) : 0;
	top_item(m, it);
	return 0;
}

/* Exceptions for all rules that cannot be had are told once. */
static void tell_of_all(struct import *m)
{
	for (size_t i = 0; i < m->all.n; i++)
		allows_tell(m, &m->all.v[i]);
}

static void done(struct import *m)
{
	buf_done(&m->about);
	buf_done(&m->regex);
	buf_done(&m->keywords);
	buf_done(&m->one);
	buf_done(&m->nots);
	allows_reset(&m->own);
	allows_reset(&m->all);
}

int gitleaks_import(const char *name, struct str toml, struct buf *yaml, gitleaks_note_fn note,
		    void *arg, struct gitleaks_result *ret, struct err *err)
{
	auto_free struct import *m = calloc(1, sizeof(*m));
	int e;

	*ret = (struct gitleaks_result){ 0 };
	if (!m)
		return err_set(err, ENOMEM, "%s: %m", name);
	if (toml.n > GITLEAKS_FILE_MAX)
		return err_set(err, EFBIG, "%s: larger than 1 MiB", name);
	m->yaml = yaml;
	m->note = note;
	m->arg = arg;
	m->result = ret;
	m->globals = true;
	e = toml_read(name, toml, on_item, m, err);
	m->globals = false;
	if (e == 0) {
		tell_of_all(m);
		e = toml_read(name, toml, on_item, m, err);
	}
	if (e == 0)
		e = gitleaks_rule_end(m);
	done(m);
	if (e == 0 && ret->rules == 0)
		return err_set(err, EINVAL, "%s: no rules of gitleaks are in it ([[rules]])", name);
	/* Whoever names a file of rules counts on it: with none of them it must not begin. */
	if (e == 0 && ret->rules == ret->left_out)
		return err_set(err, EINVAL, "%s: of its %zu rule%s none can be used: %s", name,
			       ret->rules, ret->rules == 1 ? "" : "s", m->first);
	return e == -ENOMEM ? err_set(err, ENOMEM, "%s: %m", name) : e;
}
