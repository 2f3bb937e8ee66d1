// SPDX-License-Identifier: Apache-2.0
#include "userspace/oci/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"

#define SHOWN_MAX 80 /* of a word of theirs in a message */

int oci_bad(struct oci_parser *s, const struct json_node *at, int code, const char *fmt, ...)
{
	unsigned line = 1, col = 1;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (at)
		json_line_col(s->text, at->at, &line, &col);
	return err_set(s->err, code, "%s:%u:%u: %s", s->name, line, col, text);
}

void oci_note(struct oci_parser *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (!s->c || s->c->notes_n == OCI_NOTES_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (size_t i = 0; i < s->c->notes_n; i++)
		if (!strcmp(s->c->notes[i], text))
			return;
	s->c->notes[s->c->notes_n] = arena_strndup(s->mem, text, strlen(text)).p;
	s->c->notes_n += s->c->notes[s->c->notes_n] != NULL;
}

int oci_member(struct oci_parser *s, const struct json_node *object, const char *key,
	       enum json_type type, const struct json_node **ret)
{
	*ret = json_given(object, key);
	if (*ret && (*ret)->type != type)
		return oci_bad(s, *ret, EBADMSG, "'%s': expected %s", key, json_type_names[type]);
	return 0;
}

int oci_text_of(struct oci_parser *s, const struct json_node *node, const char **ret)
{
	if (node->type != JSON_STRING)
		return oci_bad(s, node, EBADMSG, "expected a text");
	*ret = arena_strndup(s->mem, node->text.p, node->text.n).p;
	return *ret ? 0 : oci_bad(s, node, ENOMEM, "out of memory");
}

int oci_text(struct oci_parser *s, const struct json_node *object, const char *key,
	     const char **ret)
{
	const struct json_node *m;
	int r = oci_member(s, object, key, JSON_STRING, &m);

	*ret = NULL;
	return r < 0 || !m ? r : oci_text_of(s, m, ret);
}

int oci_flag(struct oci_parser *s, const struct json_node *object, const char *key, bool *ret)
{
	const struct json_node *m;
	int r = oci_member(s, object, key, JSON_BOOL, &m);

	if (r == 0)
		*ret = m && m->truth;
	return r;
}

int oci_number(struct oci_parser *s, const struct json_node *object, const char *key, uint64_t max,
	       uint64_t *ret)
{
	const struct json_node *m;
	int r = oci_member(s, object, key, JSON_NUMBER, &m);
	uint64_t v;

	if (r < 0 || !m)
		return r;
	if (!json_u64_of(m, &v) || v > max)
		return oci_bad(s, m, ERANGE, "'%s': expected a whole number up to %llu", key,
			       (unsigned long long)max);
	*ret = v;
	return 0;
}

bool oci_is_one_of(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(word, words[i]))
			return true;
	return false;
}

static bool asks(const struct json_node *m)
{
	int64_t v;

	switch (m->type) {
	case JSON_NULL:
		return false;
	case JSON_BOOL:
		return m->truth;
	case JSON_NUMBER:
		return !json_i64_of(m, &v) || v > 0;
	case JSON_STRING:
		return m->text.n;
	default:
		return m->first;
	}
}

int oci_check_keys(struct oci_parser *s, const struct json_node *object, const char *where,
		   const struct oci_key *keys, size_t n)
{
	for (const struct json_node *m = object->first; m; m = m->next) {
		const int shown = (int)MIN(m->key.n, (size_t)SHOWN_MAX);
		const char *dot = *where ? "." : "";
		const struct oci_key *row = NULL;

		for (size_t i = 0; !row && i < n; i++)
			row = str_eqz(m->key, keys[i].key) ? &keys[i] : NULL;
		if (!row)
			oci_note(s, "%s%s%.*s: not known here, passed over", where, dot, shown,
				 m->key.p);
		else if (row->never && asks(m))
			return oci_bad(s, m, EOPNOTSUPP, "%s%s%s: %s", where, dot, row->key,
				       row->never);
		else if (row->noted && asks(m))
			oci_note(s, "%s%s%s: not applied", where, dot, row->key);
	}
	return 0;
}
