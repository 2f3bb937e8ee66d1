// SPDX-License-Identifier: Apache-2.0
/* Items of a rule file: what Falco accepts is accepted, what Falco warns about is warned about. */
#include "rules/load.h"

#include <strings.h>

#include "userspace/base/option.h"

bool load_scalar(struct ruleset *rs, const struct ynode *n, const char *key, struct str *ret)
{
	if (n->type != Y_SCALAR) {
		rule_error(rs, ynode_pos(n), "value of '%s' must be a single value", key);
		return false;
	}
	if (!n->text.n ||
	    (n->style == Y_PLAIN && (str_eqz(n->text, "~") || str_eqz(n->text, "null")))) {
		rule_error(rs, ynode_pos(n), "value of '%s' is empty", key);
		return false;
	}
	*ret = n->text;
	return true;
}

bool load_bool(struct ruleset *rs, const struct ynode *n, const char *key, bool *ret)
{
	static const char *const yes[] = { "true", "yes", "on", "y" };
	static const char *const no[] = { "false", "no", "off", "n" };
	struct str s;

	if (!load_scalar(rs, n, key, &s))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (!strcasecmp(s.p, yes[i]) || !strcasecmp(s.p, no[i])) {
			*ret = !strcasecmp(s.p, yes[i]);
			return true;
		}
	}
	rule_error(rs, ynode_pos(n), "value of '%s' must be true or false, not '%s'", key, s.p);
	return false;
}

bool load_strings(struct ruleset *rs, const struct ynode *n, const char *key, struct str **ret,
		  size_t *ret_n)
{
	struct str *v;

	if (n->type == Y_SCALAR && (!n->text.n || str_eqz(n->text, "~"))) {
		*ret = NULL;
		*ret_n = 0;
		return true;
	}
	if (n->type != Y_SEQ) {
		rule_error(rs, ynode_pos(n), "value of '%s' must be a list: [a, b]", key);
		return false;
	}
	if (n->n > RULE_LIST_MAX) {
		rule_error(rs, ynode_pos(n), "'%s' has %zu items, at most %d are allowed", key,
			   n->n, RULE_LIST_MAX);
		return false;
	}
	v = rs_alloc(rs, n->n * sizeof(*v));
	if (!v)
		return false;
	for (size_t i = 0; i < n->n; i++) {
		if (n->kid[i]->type != Y_SCALAR) {
			rule_error(rs, ynode_pos(n->kid[i]), "item of '%s' must be a single value",
				   key);
			return false;
		}
		v[i] = n->kid[i]->text;
	}
	*ret = v;
	*ret_n = n->n;
	return true;
}

static int key_index(const struct item *it, const char *key)
{
	for (size_t i = 0; i < it->keys_n; i++)
		if (!strcmp(it->keys[i].name, key))
			return (int)i;
	return -1;
}

/* A warning, as in Falco, so that files for newer versions load. But one that is a letter away from a key of ours means
 * that one: 'acton: kill' left out would be a rule that was believed to kill. */
static void unknown_key(struct ruleset *rs, const struct ynode *k, const char *kind,
			const struct item *it, const char *const *names, size_t n)
{
	const char *near = closest_name(k->text.p, names, n);

	if (near)
		rule_error(rs, ynode_pos(k), "unknown key '%s' in %s '%s' (did you mean '%s'?)",
			   k->text.p, kind, it->name.p, near);
	else
		rule_warn(rs, ynode_pos(k), "unknown key '%s' in %s '%s'", k->text.p, kind,
			  it->name.p);
}

static bool check_keys(struct ruleset *rs, const struct item *it, const char *kind)
{
	const char *names[48];
	size_t names_n = 0;

	if (it->node->n > RULE_KEYS_MAX) {
		rule_error(rs, ynode_pos(it->node), "%s '%s' has %zu keys, at most %d are allowed",
			   kind, it->name.p, it->node->n, RULE_KEYS_MAX);
		return false;
	}

	for (size_t i = 0; i < it->keys_n && names_n < ARRAY_SIZE(names); i++)
		names[names_n++] = it->keys[i].name;
	for (size_t i = 0; i < it->node->n; i++) {
		const struct ynode *k = it->node->key[i];

		if (k->type != Y_SCALAR) {
			rule_warn(rs, ynode_pos(k), "key of %s '%s' is no plain word: ignored",
				  kind, it->name.p);
			continue;
		}
		for (size_t j = 0; j < i; j++)
			if (it->node->key[j]->type == Y_SCALAR &&
			    str_eq(it->node->key[j]->text, k->text))
				rule_warn(rs, ynode_pos(k),
					  "key '%s' stands twice in %s '%s': the first one counts",
					  k->text.p, kind, it->name.p);
		if (!str_eqz(k->text, kind) && !str_eqz(k->text, "append") &&
		    !str_eqz(k->text, "override") && key_index(it, k->text.p) < 0)
			unknown_key(rs, k, kind, it, names, names_n);
	}
	return true;
}

static bool read_override(struct ruleset *rs, struct item *it, const struct ynode *o)
{
	bool ok = true;

	if (o->type != Y_MAP) {
		rule_error(rs, ynode_pos(o), "'override' must be a mapping: {condition: append}");
		return false;
	}
	it->overrides = true;
	for (size_t i = 0; i < o->n; i++) {
		const struct ynode *k = o->key[i], *v = o->kid[i];
		int ki = k->type == Y_SCALAR ? key_index(it, k->text.p) : -1;
		bool append = v->type == Y_SCALAR && str_eqz(v->text, "append");
		bool replace = v->type == Y_SCALAR && str_eqz(v->text, "replace");

		if (ki < 0 || (!it->keys[ki].can_append && !it->keys[ki].can_replace)) {
			rule_error(rs, ynode_pos(k), "key '%s' cannot be overridden",
				   k->type == Y_SCALAR ? k->text.p : "?");
			ok = false;
		} else if (!append && !replace) {
			rule_error(rs, ynode_pos(v),
				   "override of '%s' must be 'append' or 'replace'", k->text.p);
			ok = false;
		} else if (append && !it->keys[ki].can_append) {
			rule_error(rs, ynode_pos(k),
				   "key '%s' cannot be appended to, use 'replace'", k->text.p);
			ok = false;
		} else if (!ynode_get(it->node, k->text.p)) {
			rule_error(rs, ynode_pos(k),
				   "override names '%s', but the item has no '%s'", k->text.p,
				   k->text.p);
			ok = false;
		} else if (append) {
			it->append_keys |= 1ull << ki;
		} else {
			it->replace_keys |= 1ull << ki;
		}
	}
	return ok;
}

/* Every key beside an override has to be named in it. */
static bool check_override_whole(struct ruleset *rs, const struct item *it, const char *kind)
{
	bool ok = true;

	for (size_t i = 0; i < it->node->n; i++) {
		const struct ynode *k = it->node->key[i];
		int ki = k->type == Y_SCALAR ? key_index(it, k->text.p) : -1;

		if (ki < 0 || str_eqz(k->text, kind))
			continue;
		if (!((it->append_keys | it->replace_keys) >> ki & 1)) {
			rule_error(rs, ynode_pos(k), "key '%s' is not named under 'override'",
				   k->text.p);
			ok = false;
		}
	}
	return ok;
}

bool item_open(struct ruleset *rs, const struct ynode *node, const char *kind,
	       const struct key_def *keys, size_t keys_n, struct item *ret)
{
	struct item it = { .node = node, .keys = keys, .keys_n = keys_n };
	const struct ynode *n;
	bool ok = true;

	if (!load_scalar(rs, ynode_get(node, kind), kind, &it.name))
		return false;
	if (!check_keys(rs, &it, kind))
		return false;
	n = ynode_get(node, "append");
	if (n) {
		if (!load_bool(rs, n, "append", &it.append))
			return false;
		rule_warn(rs, ynode_pos(n), "'append' is deprecated: use 'override'");
	}
	n = ynode_get(node, "override");
	if (n)
		ok = read_override(rs, &it, n) && check_override_whole(rs, &it, kind);
	if (ok && it.append && it.overrides) {
		rule_error(rs, ynode_pos(n), "'append' and 'override' exclude each other");
		ok = false;
	}
	*ret = it;
	return ok;
}

bool item_changes(const struct item *it)
{
	return it->append || it->overrides;
}

bool item_mode(const struct item *it, const char *key, enum key_mode *ret)
{
	int ki = key_index(it, key);

	if (!ynode_get(it->node, key))
		return false;
	*ret = (it->append && it->keys[ki].can_append) || (it->append_keys >> ki & 1) ? KEY_APPEND
										      : KEY_SET;
	return true;
}

/* ---- lists and macros ---- */

static bool is_identifier(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!alpha && (i == 0 || !((c >= '0' && c <= '9') || c == '_')))
			return false;
	}
	return s.n > 0;
}

static bool is_bare(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (strchr(" \t\r\n()\"'=,", s.p[i]))
			return false;
	return s.n > 0;
}

static void warn_redefined(struct ruleset *rs, const struct ynode *now, const struct ynode *was,
			   const char *kind, struct str name)
{
	if (now->src == was->src)
		rule_warn(rs, ynode_pos(now), "%s '%s' replaces the one at line %d", kind, name.p,
			  was->line);
}

static int list_append(struct ruleset *rs, struct list *l, const struct ynode *items)
{
	struct str *v = rs_extend(rs, l->item, &l->cap, l->n, items->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	l->item = v;
	for (size_t i = 0; i < items->n; i++)
		l->item[l->n++] = items->kid[i]->text;
	return 0;
}

static void load_list(struct ruleset *rs, const struct ynode *node)
{
	static const struct key_def keys[] = { { "items", true, true } };
	struct str *v = NULL;
	const struct ynode *items;
	enum key_mode mode = KEY_SET;
	struct list *l;
	struct item it;
	size_t n = 0;

	if (!item_open(rs, node, "list", keys, ARRAY_SIZE(keys), &it))
		return;
	items = ynode_get(node, "items");
	if (!is_bare(it.name)) {
		rule_error(rs, ynode_pos(ynode_get(node, "list")),
			   "list name '%s' holds blanks, quotes or one of ( ) = ,", it.name.p);
		return;
	}
	if (!items) {
		rule_error(rs, ynode_pos(node), "list '%s' has no 'items'", it.name.p);
		return;
	}
	if (!load_strings(rs, items, "items", &v, &n))
		return;
	l = ruleset_list(rs, it.name);
	if (item_changes(&it) && !l) {
		if (!ruleset_is_broken(rs, it.name))
			rule_error(rs, ynode_pos(node),
				   "no list '%s' to change: it must come earlier", it.name.p);
		return;
	}
	item_mode(&it, "items", &mode);
	/* As if the library's had not been there: what it may refer to depends on its place. */
	if (l && l->node->src->library && !item_changes(&it))
		l = NULL;
	if (!l) {
		l = rs_alloc(rs, sizeof(*l));
		if (!l || rs_grow(rs, &rs->list, &rs->list_cap, rs->list_n, sizeof(*rs->list)) < 0)
			return;
		l->name = it.name;
		l->index = rs->next_index;
		if (ruleset_name_add(rs, 'l', it.name, l) < 0)
			return;
		rs->list[rs->list_n++] = l;
	} else if (!item_changes(&it)) {
		warn_redefined(rs, node, l->node, "list", it.name);
	}
	l->node = node;
	l->visible = rs->next_index++;
	if (mode == KEY_SET) {
		l->item = v;
		l->n = l->cap = n;
		return;
	}
	if (l->n + n > RULE_LIST_MAX) {
		rule_error(rs, ynode_pos(items), "list '%s' would have more than %d items",
			   it.name.p, RULE_LIST_MAX);
		return;
	}
	list_append(rs, l, items);
}

static void load_macro(struct ruleset *rs, const struct ynode *node)
{
	static const struct key_def keys[] = { { "condition", true, true } };
	const struct ynode *cond;
	enum key_mode mode = KEY_SET;
	struct text text;
	struct macro *m;
	struct item it;
	struct str s;

	if (!item_open(rs, node, "macro", keys, ARRAY_SIZE(keys), &it))
		return;
	cond = ynode_get(node, "condition");
	if (!is_identifier(it.name)) {
		rule_error(rs, ynode_pos(ynode_get(node, "macro")),
			   "macro name '%s' must be letters, digits and _, a letter first",
			   it.name.p);
		return;
	}
	if (!cond) {
		rule_error(rs, ynode_pos(node), "macro '%s' has no 'condition'", it.name.p);
		return;
	}
	if (!load_scalar(rs, cond, "condition", &s) || text_from_node(rs, cond, &text) < 0)
		return;
	m = ruleset_macro(rs, it.name);
	if (item_changes(&it) && !m) {
		if (!ruleset_is_broken(rs, it.name))
			rule_error(rs, ynode_pos(node),
				   "no macro '%s' to change: it must come earlier", it.name.p);
		return;
	}
	item_mode(&it, "condition", &mode);
	if (m && m->node->src->library && !item_changes(&it))
		m = NULL;
	if (!m) {
		m = rs_alloc(rs, sizeof(*m));
		if (!m ||
		    rs_grow(rs, &rs->macro, &rs->macro_cap, rs->macro_n, sizeof(*rs->macro)) < 0)
			return;
		m->name = it.name;
		m->index = rs->next_index;
		if (ruleset_name_add(rs, 'm', it.name, m) < 0)
			return;
		rs->macro[rs->macro_n++] = m;
	} else if (!item_changes(&it)) {
		warn_redefined(rs, node, m->node, "macro", it.name);
	}
	m->node = node;
	m->visible = rs->next_index++;
	if (mode == KEY_APPEND)
		text_append(rs, &m->cond, &text);
	else
		m->cond = text;
}

/* ---- versions ---- */

#define FALCO_ENGINE_MAJOR 0
#define FALCO_ENGINE_MINOR 62

/* Read and reported, never fatal: what matters is whether the rules themselves are understood. */
static void load_engine_version(struct ruleset *rs, const struct ynode *n)
{
	unsigned a = 0, b = 0, c = 0;
	char extra;
	struct str s;

	if (!load_scalar(rs, n, "required_engine_version", &s))
		return;
	if (sscanf(s.p, "%9u.%9u.%9u%c", &a, &b, &c, &extra) == 3) {
		if (a > FALCO_ENGINE_MAJOR || b > FALCO_ENGINE_MINOR)
			rule_warn(rs, ynode_pos(n),
				  "written for Falco engine %s, this one follows %d.%d.0", s.p,
				  FALCO_ENGINE_MAJOR, FALCO_ENGINE_MINOR);
	} else if (sscanf(s.p, "%9u%c", &b, &extra) == 1) {
		if (b > FALCO_ENGINE_MINOR)
			rule_warn(rs, ynode_pos(n),
				  "written for Falco engine %s, this one follows %d.%d.0", s.p,
				  FALCO_ENGINE_MAJOR, FALCO_ENGINE_MINOR);
	} else {
		rule_error(rs, ynode_pos(n), "version '%s' must be like 0.57.0 or 57", s.p);
	}
}

static void load_plugin_versions(struct ruleset *rs, const struct ynode *n)
{
	if (n->type != Y_SEQ) {
		rule_error(rs, ynode_pos(n), "'required_plugin_versions' must be a list");
		return;
	}
	for (size_t i = 0; i < n->n; i++) {
		const struct ynode *name = ynode_get(n->kid[i], "name");

		if (n->kid[i]->type != Y_MAP || !name || name->type != Y_SCALAR)
			rule_error(rs, ynode_pos(n->kid[i]), "plugin version needs a 'name'");
	}
}

/* Who refers to it is not to blame. */
static void note_broken(struct ruleset *rs, const struct ynode *name, unsigned before)
{
	if (rs->errors > before && name->type == Y_SCALAR)
		ruleset_name_add(rs, 'b', name->text, rs);
}

static void load_item(struct ruleset *rs, const struct ynode *item)
{
	unsigned before = rs->errors;
	static const char *const kinds[] = { "rule", "macro", "list", "required_engine_version",
					     "required_plugin_versions" };
	const struct ynode *n;

	if (item->type != Y_MAP) {
		rule_error(rs, ynode_pos(item), "expected a mapping such as '- rule: name'");
		return;
	}
	if ((n = ynode_get(item, "required_engine_version"))) {
		load_engine_version(rs, n);
	} else if ((n = ynode_get(item, "required_plugin_versions"))) {
		load_plugin_versions(rs, n);
	} else if ((n = ynode_get(item, "list"))) {
		load_list(rs, item);
		note_broken(rs, n, before);
	} else if ((n = ynode_get(item, "macro"))) {
		load_macro(rs, item);
		note_broken(rs, n, before);
	} else if ((n = ynode_get(item, "rule"))) {
		load_rule(rs, item);
		note_broken(rs, n, before);
	} else {
		const struct ynode *k = item->n ? item->key[0] : NULL;
		const char *word = k && k->type == Y_SCALAR ? k->text.p : "";

		const char *near = closest_name(word, kinds, ARRAY_SIZE(kinds));

		if (near) /* as with keys: a rule that nobody misses would be gone */
			rule_error(rs, ynode_pos(item), "unknown item '%s' (did you mean '%s'?)",
				   word, near);
		else
			rule_warn(rs, ynode_pos(item), "unknown item '%s': ignored", word);
	}
}

int load_source(struct ruleset *rs, struct source *src)
{
	unsigned before = rs->errors;
	struct ynode **doc = NULL;
	size_t n = 0;
	int r;

	r = yaml_read(rs, src, &doc, &n);
	if (r < 0) {
		rs->lost = true;
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		if (doc[i]->type == Y_SCALAR && !doc[i]->text.n)
			continue; /* empty document */
		if (doc[i]->type != Y_SEQ) {
			rule_error(rs, ynode_pos(doc[i]),
				   "a rule file is a list of items: '- rule: name'");
			continue;
		}
		for (size_t k = 0; k < doc[i]->n && !rs->oom; k++)
			load_item(rs, doc[i]->kid[k]);
	}
	return rs->errors > before ? -EINVAL : 0;
}
