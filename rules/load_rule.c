// SPDX-License-Identifier: Apache-2.0
/* The rule item: Falco's keys and ours. */
#include "rules/load.h"

#include "userspace/base/option.h"

enum {
	K_CONDITION,
	K_OUTPUT,
	K_DESC,
	K_TAGS,
	K_EXCEPTIONS,
	K_PRIORITY,
	K_ENABLED,
	K_SOURCE,
	K_WARN,
	K_SKIP,
	K_CAPTURE,
	K_CAPTURE_DURATION,
	K_ACTION,
	K_SCOPE,
	K_ATTACK,
	K_THROTTLE,
	K_DENY_FALLBACK,
	K_DRY_RUN,
	K_STATE_COUNT,
	K_STATE_WINDOW,
	K_STATE_DISTINCT,
	K_STATE_SUM,
	K_STATE_BY,
	K_STATE_SEQUENCE,
	K_STATE_WITHIN,
	K_FOR,
	K_COUNT
};

static const struct key_def keys[] = {
	[K_CONDITION] = { "condition", true, true },
	[K_OUTPUT] = { "output", true, true },
	[K_DESC] = { "desc", true, true },
	[K_TAGS] = { "tags", true, true },
	[K_EXCEPTIONS] = { "exceptions", true, true },
	[K_PRIORITY] = { "priority", false, true },
	[K_ENABLED] = { "enabled", false, true },
	[K_SOURCE] = { "source", false, false },
	[K_WARN] = { "warn_evttypes", false, true },
	[K_SKIP] = { "skip-if-unknown-filter", false, true },
	[K_CAPTURE] = { "capture", false, true },
	[K_CAPTURE_DURATION] = { "capture_duration", false, true },
	[K_ACTION] = { "action", false, true },
	[K_SCOPE] = { "scope", false, true },
	[K_ATTACK] = { "attack", true, true },
	[K_THROTTLE] = { "throttle", false, true },
	[K_DENY_FALLBACK] = { "deny_fallback", false, true },
	[K_DRY_RUN] = { "dry_run", false, true },
	[K_STATE_COUNT] = { "count", false, true },
	[K_STATE_WINDOW] = { "window", false, true },
	[K_STATE_DISTINCT] = { "distinct", false, true },
	[K_STATE_SUM] = { "sum", false, true },
	[K_STATE_BY] = { "by", false, true },
	[K_STATE_SEQUENCE] = { "sequence", false, true },
	[K_STATE_WITHIN] = { "within", false, true },
	[K_FOR] = { "for", false, true },
};

const char *load_rule_key(size_t i)
{
	return i < K_COUNT ? keys[i].name : NULL;
}

bool load_rule_key_takes(size_t i, bool append)
{
	return append ? keys[i].can_append : keys[i].can_replace;
}

/* Ours and planned. Ignoring one of them would make a rule fire where its author said it should not. */
static const char *const not_yet[] = { "budget", "baseline" };

static void set_text(struct ruleset *rs, const struct ynode *n, const char *key, enum key_mode mode,
		     struct text *t)
{
	struct text more;
	struct str s;

	if (!load_scalar(rs, n, key, &s) || text_from_node(rs, n, &more) < 0)
		return;
	if (mode == KEY_APPEND)
		text_append(rs, t, &more);
	else
		*t = more;
}

static void set_strings(struct ruleset *rs, const struct ynode *n, const char *key,
			enum key_mode mode, const struct str **v, size_t *vn, size_t *cap)
{
	struct str *add = NULL, *all;
	size_t add_n = 0;

	if (!load_strings(rs, n, key, &add, &add_n))
		return;
	if (mode != KEY_APPEND || !*vn) {
		*v = add;
		*vn = *cap = add_n;
		return;
	}
	if (*vn + add_n > RULE_LIST_MAX) {
		rule_error(rs, ynode_pos(n), "'%s' would have more than %d items", key,
			   RULE_LIST_MAX);
		return;
	}
	all = rs_extend(rs, *v, cap, *vn, add_n, sizeof(*all));
	if (!all)
		return;
	if (add_n)
		memcpy(all + *vn, add, add_n * sizeof(*all));
	*v = all;
	*vn += add_n;
}

static void set_desc(struct ruleset *rs, struct rule *r, const struct ynode *n, enum key_mode mode)
{
	set_text(rs, n, "desc", r->info.desc ? mode : KEY_SET, &r->desc);
	r->info.desc = r->desc.s.p;
}

static void set_priority(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	char hint[96], low[32];
	struct str s;

	if (!load_scalar(rs, n, "priority", &s))
		return;
	snprintf(low, sizeof(low), "%s", s.p);
	for (char *p = low; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? *p + 32 : *p;
	if (rule_priority_parse(s, &r->info.priority) < 0)
		rule_error(rs, ynode_pos(n),
			   "unknown priority '%s'%s: one of emergency alert critical error warning "
			   "notice informational debug",
			   s.p,
			   rule_hint(hint, sizeof(hint), low, rule_priority_names, RULE_DEBUG + 1));
}

static void set_action(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	char hint[96];
	struct str s;

	if (!load_scalar(rs, n, "action", &s))
		return;
	r->action_node = n;
	if (rule_action_parse(s, &r->info.action) < 0)
		rule_error(
			rs, ynode_pos(n),
			"unknown action '%s'%s: one of alert deny kill freeze hold", s.p,
			rule_hint(hint, sizeof(hint), s.p, rule_action_names, RULE_ACT_HOLD + 1));
}

static void set_scope(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	struct str s;

	if (!load_scalar(rs, n, "scope", &s))
		return;
	if (str_eqz(s, "sandbox"))
		r->info.scope = RULE_SCOPE_SANDBOX;
	else if (str_eqz(s, "process"))
		r->info.scope = RULE_SCOPE_PROCESS;
	else
		rule_error(rs, ynode_pos(n), "unknown scope '%s': sandbox or process", s.p);
}

static void set_attack(struct ruleset *rs, struct rule *r, const struct ynode *n,
		       enum key_mode mode)
{
	size_t old = mode == KEY_APPEND ? r->info.attack_n : 0;

	set_strings(rs, n, "attack", mode, &r->info.attack, &r->info.attack_n, &r->attack_cap);
	for (size_t i = old; i < r->info.attack_n; i++) {
		struct str s = r->info.attack[i];
		size_t k = 1;

		while (k < s.n && ((s.p[k] >= '0' && s.p[k] <= '9') || s.p[k] == '.'))
			k++;
		if (s.n < 5 || s.p[0] != 'T' || k != s.n)
			rule_error(rs, ynode_pos(n),
				   "'%s' is no ATT&CK technique id: like T1611 or T1059.004", s.p);
	}
}

static bool is_one_of(const char *const *names, size_t n, struct str s)
{
	for (size_t i = 0; i < n; i++)
		if (str_eqz(s, names[i]))
			return true;
	return false;
}

/* Values of `for` that can be wrong; patterns are left alone. */
static void check_for(struct ruleset *rs, enum rule_for key, const struct ynode *n, struct str s)
{
	static const char *const backends[] = { "ns", "gvisor", "null" };
	static const char *const tiers[] = { "full", "portable" };
	const char *const *names = key == RULE_FOR_BACKEND ? backends : tiers;
	size_t names_n = key == RULE_FOR_BACKEND ? ARRAY_SIZE(backends) : ARRAY_SIZE(tiers);
	char hint[96];

	if (key == RULE_FOR_POLICY && !strpbrk(s.p, "*?[") &&
	    (strspn(s.p, "0123456789abcdef") != s.n || s.n > 64))
		rule_error(rs, ynode_pos(n), "policy '%s' is not the beginning of a plan's hash",
			   s.p);
	if (key != RULE_FOR_BACKEND && key != RULE_FOR_TIER)
		return;
	if (!is_one_of(names, names_n, s) && !strpbrk(s.p, "*?["))
		rule_error(rs, ynode_pos(n), "no %s is named '%s'%s", rule_for_names[key], s.p,
			   rule_hint(hint, sizeof(hint), s.p, names, names_n));
}

/* for: {tenant: [acme, dev-*], backend: gvisor} */
static void set_for(struct ruleset *rs, struct rule *r, const struct ynode *n)
{
	char hint[96];

	if (n->type != Y_MAP || !n->n) {
		rule_error(rs, ynode_pos(n),
			   "'for' must be a mapping: {backend: ns, tenant: [a, b]}");
		return;
	}
	memset(r->info.only, 0, sizeof(r->info.only));
	r->has_for = true;
	for (size_t i = 0; i < n->n; i++) {
		const char *word = n->key[i]->type == Y_SCALAR ? n->key[i]->text.p : "";
		const struct ynode *v = n->kid[i];
		struct str *one, *all = NULL;
		size_t all_n = 0, key = 0;

		while (key < RULE_FOR_KEYS && strcmp(rule_for_names[key], word) != 0)
			key++;
		if (key == RULE_FOR_KEYS) {
			rule_error(
				rs, ynode_pos(n->key[i]), "unknown key '%s' of 'for'%s", word,
				rule_hint(hint, sizeof(hint), word, rule_for_names, RULE_FOR_KEYS));
			continue;
		}
		one = rs_alloc(rs, sizeof(*one));
		if (!one || (v->type == Y_SCALAR ? !load_scalar(rs, v, word, one)
						 : !load_strings(rs, v, word, &all, &all_n)))
			continue;
		if (v->type == Y_SCALAR) {
			all = one;
			all_n = 1;
		}
		if (!all_n)
			rule_error(rs, ynode_pos(v), "'%s' of 'for' names nothing", word);
		for (size_t k = 0; k < all_n; k++)
			check_for(rs, (enum rule_for)key, v->type == Y_SEQ ? v->kid[k] : v, all[k]);
		r->info.only[key].v = all;
		r->info.only[key].n = all_n;
	}
}

static void set_exceptions(struct ruleset *rs, struct rule *r, const struct ynode *n,
			   enum key_mode mode)
{
	if (mode == KEY_SET)
		r->ex_n = 0;
	if (n->type == Y_SCALAR && !n->text.n)
		return;
	exceptions_add(rs, r, n);
}

static void set_key(struct ruleset *rs, struct rule *r, int key, const struct ynode *n,
		    enum key_mode mode)
{
	bool flag;
	struct str s;

	switch (key) {
	case K_CONDITION:
		set_text(rs, n, "condition", mode, &r->cond);
		return;
	case K_OUTPUT:
		set_text(rs, n, "output", mode, &r->out);
		return;
	case K_DESC:
		set_desc(rs, r, n, mode);
		return;
	case K_TAGS:
		set_strings(rs, n, "tags", mode, &r->info.tags, &r->info.tags_n, &r->tags_cap);
		return;
	case K_EXCEPTIONS:
		set_exceptions(rs, r, n, mode);
		return;
	case K_PRIORITY:
		set_priority(rs, r, n);
		return;
	case K_ENABLED:
		load_bool(rs, n, "enabled", &r->enabled);
		return;
	case K_SOURCE:
		load_scalar(rs, n, "source", &r->source);
		return;
	case K_SKIP:
		load_bool(rs, n, keys[key].name, &r->skip_unknown);
		return;
	case K_WARN:
		if (load_bool(rs, n, keys[key].name, &flag))
			r->any_kind = !flag;
		return;
	case K_CAPTURE:
		load_bool(rs, n, keys[key].name, &flag);
		return;
	case K_CAPTURE_DURATION:
		load_scalar(rs, n, keys[key].name, &s);
		return;
	case K_ACTION:
		set_action(rs, r, n);
		return;
	case K_SCOPE:
		set_scope(rs, r, n);
		return;
	case K_ATTACK:
		set_attack(rs, r, n, mode);
		return;
	case K_THROTTLE:
		if (load_scalar(rs, n, "throttle", &s) &&
		    parse_duration_ns(s.p, &r->info.throttle_ns) < 0)
			rule_error(rs, ynode_pos(n), "throttle '%s' must be like 500ms, 30s or 5m",
				   s.p);
		return;
	case K_DENY_FALLBACK:
		if (!load_scalar(rs, n, "deny_fallback", &s))
			return;
		r->info.deny_fallback = str_eqz(s, "kill");
		if (!r->info.deny_fallback && !str_eqz(s, "none"))
			rule_error(rs, ynode_pos(n), "deny_fallback '%s' must be kill or none",
				   s.p);
		return;
	case K_DRY_RUN:
		load_bool(rs, n, keys[key].name, &r->info.dry_run);
		return;
	case K_STATE_COUNT:
		r->keys.count = n;
		return;
	case K_STATE_WINDOW:
		r->keys.window = n;
		return;
	case K_STATE_DISTINCT:
		r->keys.distinct = n;
		return;
	case K_STATE_SUM:
		r->keys.sum = n;
		return;
	case K_STATE_BY:
		r->keys.by = n;
		return;
	case K_STATE_SEQUENCE:
		r->keys.sequence = n;
		return;
	case K_STATE_WITHIN:
		r->keys.within = n;
		return;
	case K_FOR:
		set_for(rs, r, n);
		return;
	default:
		return;
	}
}

static bool check_planned(struct ruleset *rs, const struct ynode *node, struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_yet); i++) {
		const struct ynode *n = ynode_get(node, not_yet[i]);

		if (n) {
			rule_error(rs, ynode_pos(n),
				   "key '%s' of rule '%s' is not supported by this version",
				   not_yet[i], name.p);
			return false;
		}
	}
	return true;
}

static struct rule *rule_add(struct ruleset *rs, struct str name)
{
	struct rule *r = rs_alloc(rs, sizeof(*r));

	if (!r || rs_grow(rs, &rs->rule, &rs->rule_cap, rs->rule_n, sizeof(*rs->rule)) < 0 ||
	    ruleset_name_add(rs, 'r', name, r) < 0)
		return NULL;
	rs->rule[rs->rule_n++] = r;
	return r;
}

static void rule_reset(struct rule *r, struct ruleset *rs, const struct item *it)
{
	*r = (struct rule){
		.info = { .name = it->name.p, .file = it->node->src->name, .line = it->node->line },
		.node = it->node,
		.source = STR("syscall"),
		.enabled = true,
		.rs = rs,
	};
}

static bool check_required(struct ruleset *rs, const struct item *it)
{
	static const int required[] = { K_CONDITION, K_OUTPUT, K_DESC, K_PRIORITY };
	bool ok = true;

	for (size_t i = 0; i < ARRAY_SIZE(required); i++) {
		if (ynode_get(it->node, keys[required[i]].name))
			continue;
		rule_error(rs, ynode_pos(it->node), "rule '%s' has no '%s'", it->name.p,
			   keys[required[i]].name);
		ok = false;
	}
	return ok;
}

/* `- rule: name` with nothing but `enabled`: switches an earlier rule, as old files do. */
static bool is_toggle(const struct ynode *node)
{
	return node->n == 2 && ynode_get(node, "enabled");
}

static struct rule *find_target(struct ruleset *rs, const struct item *it, bool changes)
{
	struct rule *r = ruleset_rule(rs, it->name);

	if (changes) {
		if (!r && !ruleset_is_broken(rs, it->name))
			rule_error(rs, ynode_pos(it->node),
				   "no rule '%s' to change: it must come earlier", it->name.p);
		return r;
	}
	/* Without all of them it is an error; with a condition that is looked at all the same. */
	if (!check_required(rs, it) && !ynode_get(it->node, keys[K_CONDITION].name))
		return NULL;
	if (!r) {
		if (rs->rule_n >= RULE_RULES_MAX) {
			rule_error(rs, ynode_pos(it->node), "more than %d rules", RULE_RULES_MAX);
			return NULL;
		}
		r = rule_add(rs, it->name);
	} else if (r->node->src == it->node->src) {
		rule_warn(rs, ynode_pos(it->node), "rule '%s' replaces the one at line %d",
			  it->name.p, r->node->line);
	}
	if (r)
		rule_reset(r, rs, it);
	return r;
}

void load_rule(struct ruleset *rs, const struct ynode *node)
{
	struct item it;
	struct rule *r;
	bool toggle;

	if (!item_open(rs, node, "rule", keys, ARRAY_SIZE(keys), &it) ||
	    !check_planned(rs, node, it.name))
		return;
	toggle = !item_changes(&it) && is_toggle(node);
	r = find_target(rs, &it, item_changes(&it) || toggle);
	if (!r)
		return;
	for (int k = 0; k < K_COUNT; k++) {
		enum key_mode mode;

		if (item_mode(&it, keys[k].name, &mode))
			set_key(rs, r, k, ynode_get(node, keys[k].name), mode);
	}
	if (r->info.throttle_ns && r->info.action != RULE_ACT_ALERT)
		rule_warn(rs, ynode_pos(node),
			  "'throttle' of rule '%s' is ignored: an action is told each time",
			  it.name.p);
	r->info.state = r->enabled ? RULE_LOADED : RULE_DISABLED;
	if (!str_eqz(r->source, "syscall") && !str_eqz(r->source, "warder")) {
		r->info.state = RULE_REFUSED;
		r->info.why =
			arena_printf(&rs->arena, "source '%s' is not supported", r->source.p).p;
		rule_warn(rs, ynode_pos(node), "rule '%s' skipped: source '%s' is not supported",
			  it.name.p, r->source.p);
	}
}
