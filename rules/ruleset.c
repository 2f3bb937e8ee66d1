// SPDX-License-Identifier: Apache-2.0
/* Life of a rule set: memory, names, sources and their hash. */
#include "rules/state.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include "userspace/base/fd.h"

struct nametab {
	size_t n, cap;
	struct nameslot {
		struct str name;
		void *obj;
		char space; /* 'l' list, 'm' macro, 'r' rule, 'e' exception, 'b' one whose definition is broken */
	} * v;
};

void *rs_alloc(struct ruleset *rs, size_t n)
{
	void *p = arena_zalloc(&rs->arena, n ? n : 1);

	if (!p)
		rs->oom = true;
	return p;
}

struct str rs_dup(struct ruleset *rs, struct str s)
{
	struct str r = arena_strndup(&rs->arena, s.p ? s.p : "", s.n);

	if (!r.p)
		rs->oom = true;
	return r;
}

int rs_grow(struct ruleset *rs, void *pv, size_t *cap, size_t n, size_t elem)
{
	void **v = pv;
	size_t want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return 0;
	while (want <= n)
		want *= 2;
	p = rs_alloc(rs, want * elem);
	if (!p)
		return -ENOMEM;
	if (n)
		memcpy(p, *v, n * elem);
	*v = p;
	*cap = want;
	return 0;
}

void *rs_extend(struct ruleset *rs, const void *v, size_t *cap, size_t n, size_t add, size_t elem)
{
	size_t want = n ? 2 * (n + add) : add;
	void *p = (void *)v;

	if (n + add <= *cap)
		return p;
	p = rs_alloc(rs, want * elem);
	if (!p)
		return NULL;
	if (n)
		memcpy(p, v, n * elem);
	*cap = want;
	return p;
}

static struct nameslot *name_slot(const struct nametab *t, char space, struct str name)
{
	size_t i = hash_bytes(name.p, name.n, HASH_START ^ (unsigned char)space) & (t->cap - 1);

	while (t->v[i].obj && !(t->v[i].space == space && str_eq(t->v[i].name, name)))
		i = (i + 1) & (t->cap - 1);
	return &t->v[i];
}

void *ruleset_name_get(const struct ruleset *rs, char space, struct str name)
{
	return rs->names && rs->names->cap ? name_slot(rs->names, space, name)->obj : NULL;
}

int ruleset_name_add(struct ruleset *rs, char space, struct str name, void *obj)
{
	struct nametab *t = rs->names;
	struct nameslot *s;

	if (!t) {
		t = rs->names = rs_alloc(rs, sizeof(*t));
		if (!t)
			return -ENOMEM;
	}
	if (t->n * 2 >= t->cap) {
		struct nametab bigger = { .n = t->n, .cap = t->cap ? t->cap * 2 : 256 };

		bigger.v = rs_alloc(rs, bigger.cap * sizeof(*bigger.v));
		if (!bigger.v)
			return -ENOMEM;
		for (size_t i = 0; i < t->cap; i++)
			if (t->v[i].obj)
				*name_slot(&bigger, t->v[i].space, t->v[i].name) = t->v[i];
		*t = bigger;
	}
	s = name_slot(t, space, name);
	t->n += !s->obj;
	*s = (struct nameslot){ name, obj, space };
	return 0;
}

struct list *ruleset_list(const struct ruleset *rs, struct str name)
{
	return ruleset_name_get(rs, 'l', name);
}

struct macro *ruleset_macro(const struct ruleset *rs, struct str name)
{
	return ruleset_name_get(rs, 'm', name);
}

struct rule *ruleset_rule(const struct ruleset *rs, struct str name)
{
	return ruleset_name_get(rs, 'r', name);
}

bool ruleset_is_broken(const struct ruleset *rs, struct str name)
{
	return rs->lost || ruleset_name_get(rs, 'b', name);
}

int ruleset_new(struct ruleset **ret, rule_diag_fn fn, void *arg)
{
	struct ruleset *rs = calloc(1, sizeof(*rs));

	if (!rs)
		return -ENOMEM;
	arena_init(&rs->arena, RULE_ARENA_MAX);
	rs->fn = fn;
	rs->fn_arg = arg;
	rs->actions = (2u << RULE_ACT_HOLD) - 1;
	rs->sha = EVP_MD_CTX_new();
	if (!rs->sha || EVP_DigestInit_ex(rs->sha, EVP_sha256(), NULL) != 1) {
		ruleset_free(rs);
		return -ENOMEM;
	}
	*ret = rs;
	return 0;
}

void ruleset_free(struct ruleset *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < rs->atom_n; i++)
		if (rs->atom[i]->re)
			pcre2_code_free(rs->atom[i]->re);
	EVP_MD_CTX_free(rs->sha);
	arena_done(&rs->arena);
	free(rs);
}

/* Length first, so that text cannot move from one file to the next without changing the hash. */
static int hash_source(struct ruleset *rs, struct str text)
{
	uint64_t n = text.n;
	unsigned char le[8];

	for (int i = 0; i < 8; i++)
		le[i] = (unsigned char)(n >> (8 * i));
	if (EVP_DigestUpdate(rs->sha, le, sizeof(le)) != 1 ||
	    EVP_DigestUpdate(rs->sha, text.p, text.n) != 1)
		return -ENOMEM;
	return 0;
}

static int fail(struct ruleset *rs, struct err *err, unsigned errors_before)
{
	if (rs->oom)
		return err_set(err, ENOMEM, "rules: out of memory (limit %zu MiB)",
			       RULE_ARENA_MAX >> 20);
	if (rs->errors > errors_before)
		return err_set(err, EINVAL, "%s", rs->first.text);
	return 0;
}

static int add_text(struct ruleset *rs, const char *file, struct str text, bool library,
		    struct err *err)
{
	unsigned before = rs->errors;
	struct source *src;

	if (rs->compiled)
		return err_set(err, EINVAL, "rule file '%s': the rule set is already compiled",
			       file);
	if (text.n > RULE_FILE_MAX)
		return err_set(err, EFBIG, "%s: larger than %zu MiB", file, RULE_FILE_MAX >> 20);
	src = rs_alloc(rs, sizeof(*src));
	if (!src || rs_grow(rs, &rs->src, &rs->src_cap, rs->src_n, sizeof(*rs->src)) < 0)
		return fail(rs, err, before);
	src->name = rs_dup(rs, str_from(file)).p;
	src->library = library;
	/* A byte order mark is no character of the file: columns count from behind it. */
	src->raw = rs_dup(rs, str_starts(text, STR("\xef\xbb\xbf"))
				      ? (struct str){ text.p + 3, text.n - 3 }
				      : text);
	if (rs->oom)
		return fail(rs, err, before);
	src->at = (unsigned)rs->src_n;
	rs->src[rs->src_n++] = src;
	if (hash_source(rs, text) < 0)
		return err_set(err, ENOMEM, "%s: cannot hash", file);
	/* err carries the first error of this file, not of an earlier one. */
	if (!before)
		rs->first = (struct err){ 0 };
	load_source(rs, src);
	return fail(rs, err, before);
}

int ruleset_add_text(struct ruleset *rs, const char *file, struct str text, struct err *err)
{
	return add_text(rs, file, text, false, err);
}

int ruleset_add_library(struct ruleset *rs, const char *name, struct str text, struct err *err)
{
	return add_text(rs, name, text, true, err);
}

int ruleset_add_file(struct ruleset *rs, const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t n = 0;
	int r;

	r = file_read_at(AT_FDCWD, path, RULE_FILE_MAX, &text, &n);
	if (r == -EFBIG)
		return err_set(err, EFBIG, "rule file '%s': larger than %zu MiB", path,
			       RULE_FILE_MAX >> 20);
	if (r < 0)
		return err_set(err, r, "rule file '%s': %m", path);
	return ruleset_add_text(rs, path, (struct str){ text, n }, err);
}

static void finish_hash(struct ruleset *rs)
{
	unsigned char md[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	if (EVP_DigestFinal_ex(rs->sha, md, &n) != 1 || n != 32)
		n = 0;
	for (unsigned int i = 0; i < n; i++)
		snprintf(rs->hash + 2 * i, 3, "%02x", md[i]);
}

void ruleset_allow_actions(struct ruleset *rs, unsigned actions)
{
	rs->actions = actions;
}

void ruleset_allow_state(struct ruleset *rs)
{
	rs->has_state = true;
}

/* A rule that was to prevent or stop something and only alerts would be worse than none. */
static void check_action(struct ruleset *rs, struct rule *r)
{
	char can[64];
	size_t n = 0;

	if (!r->enabled || (rs->actions >> r->info.action & 1))
		return;
	can[0] = 0;
	for (int a = RULE_ACT_ALERT; a <= RULE_ACT_HOLD; a++)
		if (rs->actions >> a & 1)
			n += (size_t)snprintf(can + n, sizeof(can) - n, "%s%s", n ? ", " : "",
					      rule_action_names[a]);
	rule_error(rs, ynode_pos(r->action_node ? r->action_node : r->node),
		   "action '%s' of rule '%s' is not available here (%s)",
		   rule_action_name(r->info.action), r->info.name, can);
	r->failed = true;
}

static void bind_rule(struct ruleset *rs, struct rule *r)
{
	struct text full;
	struct expr *e;

	if (r->info.state == RULE_REFUSED)
		return;
	check_action(rs, r);
	if (rule_full_condition(rs, r, &full) < 0 || !(e = expr_parse(rs, &full))) {
		r->failed = true;
	} else {
		r->falco = expr_uses_evt(rs, e, 0);
		r->pred = bind_expr(rs, r, e, r->falco);
		if (!r->pred || !stateful_bind(rs, r))
			r->failed = true;
		else if (r->st)
			r->print = stateful_print(r);
		throttle_bind(rs, r);
	}
	if (!output_compile(rs, r))
		r->failed = true;
	if (r->skip_unknown && r->info.state == RULE_REFUSED)
		return;
	if (r->failed) {
		r->info.state = RULE_REFUSED;
		if (!r->info.why)
			r->info.why = "has errors";
		if (!rs->errors && !rs->oom)
			rule_error(rs, ynode_pos(r->node), "rule '%s' cannot be compiled",
				   r->info.name);
	}
}

/* Names that nothing refers to: often a typing error on the other side. */
static void warn_unused(struct ruleset *rs)
{
	for (size_t i = 0; i < rs->macro_n; i++)
		if (!rs->macro[i]->used && !rs->macro[i]->node->src->library)
			rule_warn(rs, ynode_pos(rs->macro[i]->node), "macro '%s' is not used",
				  rs->macro[i]->name.p);
	for (size_t i = 0; i < rs->list_n; i++)
		if (!rs->list[i]->used && !rs->list[i]->node->src->library)
			rule_warn(rs, ynode_pos(rs->list[i]->node), "list '%s' is not used",
				  rs->list[i]->name.p);
}

bool rule_falco_field(size_t i, struct rule_field *ret)
{
	static const char *const types[] = {
		[RT_STR] = "string", [RT_U64] = "number", [RT_I64] = "number",
		[RT_BOOL] = "bool",  [RT_IP] = "ip",	  [RT_TIME] = "time"
	};
	const struct field_row *row;

	if (i >= falco_fields_n)
		return false;
	row = &falco_fields[i];
	*ret = (struct rule_field){
		.name = row->name,
		.type = row->flags & (FR_LIST | FR_ANY) ? "list" : types[row->type],
		.doc = row->doc,
		.takes_arg = row->flags & FR_ARG,
		.absent = row->flags & FR_ABSENT,
		.partial = row->flags & FR_PARTIAL,
	};
	return true;
}

int ruleset_compile(struct ruleset *rs, struct err *err)
{
	unsigned before = rs->errors;

	if (rs->compiled)
		return err_set(err, EINVAL, "rules: already compiled");
	native_fields_init();
	for (size_t i = 0; i < rs->rule_n; i++)
		bind_rule(rs, rs->rule[i]);
	/* Macros are checked even when no rule uses them. */
	for (size_t i = 0; i < rs->macro_n; i++) {
		struct macro *m = rs->macro[i];
		struct text t;

		if (!m->parsed && text_subst_lists(rs, &m->cond, &t) == 0)
			expr_parse(rs, &t);
	}
	if (rs->errors == before && !rs->oom && !rs->is_filter)
		warn_unused(rs);
	if (rs->errors == before && !rs->oom)
		compile_buckets(rs);
	if (!rs->hash[0])
		finish_hash(rs);
	if (rs->errors == before && !rs->oom)
		rs->compiled = true;
	rs->fn = NULL; /* it need not live on */
	return fail(rs, err, before);
}

size_t ruleset_count(const struct ruleset *rs)
{
	return rs->rule_n;
}

const struct rule_info *ruleset_get(const struct ruleset *rs, size_t i)
{
	return i < rs->rule_n ? &rs->rule[i]->info : NULL;
}

const char *ruleset_hash(const struct ruleset *rs)
{
	return rs->hash;
}

uint64_t ruleset_kernel_kill_escapes(const struct ruleset *rs)
{
	return rs->compiled ? rs->kill_escapes : 0;
}
