// SPDX-License-Identifier: Apache-2.0
#include "runtime/seccomp_profile.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "runtime/seccomp.h"
#include "userspace/base/auto.h"
#include "userspace/event/json_tree.h"

#define TREE_MAX  (64u << 20)
#define NAME_MAX_ 64 /* bytes of a call's name */
#define ERRNO_MAX 4095

#if defined(__x86_64__)
#define ARCH	   "SCMP_ARCH_X86_64"
#define ARCH_SHORT "amd64"
#elif defined(__aarch64__)
#define ARCH	   "SCMP_ARCH_AARCH64"
#define ARCH_SHORT "arm64"
#else
#define ARCH	   "SCMP_ARCH_UNKNOWN"
#define ARCH_SHORT "unknown"
#endif

struct parser {
	struct seccomp_profile *p;
	struct arena *mem;
	const char *name, *kernel;
	struct str text;
	struct err *err;
};

static int bad(struct parser *s, const struct json_node *at, const char *what)
{
	unsigned line, col;

	json_line_col(s->text, at->at, &line, &col);
	return err_set(s->err, EBADMSG, "%s:%u:%u: %s", s->name, line, col, what);
}

static int bad_word(struct parser *s, const struct json_node *at, const char *what, struct str word)
{
	unsigned line, col;

	json_line_col(s->text, at->at, &line, &col);
	return err_set(s->err, EBADMSG, "%s:%u:%u: '%.*s' %s", s->name, line, col,
		       (int)MIN(word.n, (size_t)NAME_MAX_), word.p, what);
}

/* A key that is not known may be what somebody relies on. */
static int check_keys(struct parser *s, const struct json_node *object, const char *const *keys,
		      size_t n)
{
	if (object->type != JSON_OBJECT)
		return bad(s, object, "expected an object");
	for (const struct json_node *m = object->first; m; m = m->next) {
		bool known = false;

		for (size_t i = 0; i < n; i++)
			known |= str_eqz(m->key, keys[i]);
		if (!known)
			return bad_word(s, m, "is no key that is known here", m->key);
	}
	return 0;
}

static const struct {
	const char *name;
	uint32_t action;
	bool has_errno;
} actions[] = {
	{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW, false },
	{ "SCMP_ACT_LOG", SCMP_ACT_ALLOW, false }, /* the record tells of it */
	{ "SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(EPERM), true },
	{ "SCMP_ACT_KILL", SCMP_ACT_KILL_PROCESS,
	  false }, /* a thread less is a program that hangs */
	{ "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_PROCESS, false },
	{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS, false },
	{ "SCMP_ACT_TRAP", SCMP_ACT_TRAP, false },
};

static int get_action(struct parser *s, const struct json_node *object, const char *key,
		      const char *errno_key, uint32_t *ret)
{
	const struct json_node *word = json_given(object, key),
			       *number = json_given(object, errno_key);
	uint64_t code = EPERM;

	if (!word || word->type != JSON_STRING)
		return bad(s, word ? word : object, "expected an action, SCMP_ACT_...");
	if (number && (!json_u64_of(number, &code) || code > ERRNO_MAX))
		return bad(s, number, "expected an error number, 0 to 4095");
	for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
		if (str_eqz(word->text, actions[i].name)) {
			*ret = actions[i].has_errno ? SCMP_ACT_ERRNO((uint32_t)code)
						    : actions[i].action;
			return 0;
		}
	return bad_word(s, word,
			"is no action that can be taken here (ALLOW, LOG, ERRNO, KILL, "
			"KILL_PROCESS, TRAP)",
			word->text);
}

/* ---- for whom ---- */

static bool list_has(const struct json_node *list, const char *word)
{
	for (const struct json_node *c = list ? list->first : NULL; c; c = c->next)
		if (c->type == JSON_STRING && str_eqz(c->text, word))
			return true;
	return false;
}

static bool kernel_is(const char *kernel, struct str least, bool *ret)
{
	char text[32];
	unsigned a = 0, b = 0, x = 0, y = 0;

	if (least.n >= sizeof(text))
		return false;
	memcpy(text, least.p, least.n);
	text[least.n] = 0;
	if (sscanf(text, "%u.%u", &a, &b) != 2 || sscanf(kernel, "%u.%u", &x, &y) != 2)
		return false;
	*ret = x > a || (x == a && y >= b);
	return true;
}

/* `includes`: each that is said must hold; `excludes`: none may. A payload has no capability at all. */
static int holds(struct parser *s, const struct json_node *filter, bool excludes, bool *ret)
{
	static const char *const keys[] = { "caps", "arches", "minKernel" };
	const struct json_node *caps, *arches, *kernel;
	bool recent = false, in = true, any = false;
	int r;

	*ret = !excludes;
	if (!filter || filter->type == JSON_NULL)
		return *ret = true, 0;
	r = check_keys(s, filter, keys, ARRAY_SIZE(keys));
	if (r < 0)
		return r;
	caps = json_given(filter, "caps");
	arches = json_given(filter, "arches");
	kernel = json_given(filter, "minKernel");
	if ((caps && caps->type != JSON_ARRAY) || (arches && arches->type != JSON_ARRAY))
		return bad(s, filter, "'caps' and 'arches' are lists");
	if (kernel && (kernel->type != JSON_STRING || !kernel_is(s->kernel, kernel->text, &recent)))
		return bad(s, kernel, "expected a kernel's version, \"4.8\"");
	if (caps && caps->n)
		in = false;
	if (arches && arches->n) {
		in &= list_has(arches, ARCH_SHORT);
		any |= list_has(arches, ARCH_SHORT);
	}
	if (kernel) {
		in &= recent;
		any |= recent;
	}
	*ret = excludes ? !any : in;
	return 0;
}

/* ---- rules ---- */

static const struct {
	const char *name;
	enum scmp_compare op;
} compares[] = {
	{ "SCMP_CMP_NE", SCMP_CMP_NE },
	{ "SCMP_CMP_LT", SCMP_CMP_LT },
	{ "SCMP_CMP_LE", SCMP_CMP_LE },
	{ "SCMP_CMP_EQ", SCMP_CMP_EQ },
	{ "SCMP_CMP_GE", SCMP_CMP_GE },
	{ "SCMP_CMP_GT", SCMP_CMP_GT },
	{ "SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ },
};

static int get_arg(struct parser *s, const struct json_node *arg, struct scmp_arg_cmp *ret)
{
	static const char *const keys[] = { "index", "value", "valueTwo", "op" };
	const struct json_node *op, *two;
	uint64_t index = 0, value = 0, value_two = 0;
	int r = check_keys(s, arg, keys, ARRAY_SIZE(keys));

	if (r < 0)
		return r;
	op = json_given(arg, "op");
	two = json_given(arg, "valueTwo");
	if (!json_u64_of(json_given(arg, "index"), &index) || index >= SECCOMP_ARGS_MAX)
		return bad(s, arg, "'index' of an argument: 0 to 5");
	if (!json_u64_of(json_given(arg, "value"), &value) ||
	    (two && !json_u64_of(two, &value_two)))
		return bad(s, arg, "'value' and 'valueTwo' are whole numbers");
	if (!op || op->type != JSON_STRING)
		return bad(s, arg, "'op': SCMP_CMP_EQ or another comparison");
	for (size_t i = 0; i < ARRAY_SIZE(compares); i++)
		if (str_eqz(op->text, compares[i].name)) {
			*ret = (struct scmp_arg_cmp){ .arg = (unsigned)index,
						      .op = compares[i].op,
						      .datum_a = value,
						      .datum_b = value_two };
			return 0;
		}
	return bad_word(s, op, "is no comparison", op->text);
}

static int add_rule(struct parser *s, const struct json_node *at, const char *call, uint32_t action,
		    const struct scmp_arg_cmp *args, unsigned n)
{
	struct seccomp_profile *p = s->p;

	if (p->n == SECCOMP_RULES_MAX)
		return bad(s, at, "more rules than may be");
	p->rules[p->n] = (struct seccomp_rule){ .call = call, .action = action, .n = n };
	memcpy(p->rules[p->n].args, args, n * sizeof(*args));
	p->n++;
	return 0;
}

/* One argument twice means "or", as runc reads it: a rule for each then. */
static bool has_twice(const struct scmp_arg_cmp *args, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < i; k++)
			if (args[i].arg == args[k].arg)
				return true;
	return false;
}

static int add_call(struct parser *s, const struct json_node *name, uint32_t action,
		    const struct scmp_arg_cmp *args, unsigned n)
{
	const char *call;
	int r = 0;

	if (name->type != JSON_STRING || !name->text.n || name->text.n > NAME_MAX_)
		return bad(s, name, "expected the name of a system call");
	call = arena_strndup(s->mem, name->text.p, name->text.n).p;
	if (!call)
		return err_set(s->err, ENOMEM, "%s: %m", s->name);
	s->p->unknown += seccomp_call(call) < 0;
	if (!has_twice(args, n))
		return add_rule(s, name, call, action, args, n);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = add_rule(s, name, call, action, &args[i], 1);
	return r;
}

static int get_args(struct parser *s, const struct json_node *list, struct scmp_arg_cmp *ret,
		    unsigned *ret_n)
{
	*ret_n = 0;
	if (!list)
		return 0;
	if (list->type != JSON_ARRAY || list->n > SECCOMP_ARGS_MAX)
		return bad(s, list, "'args': a list of at most 6");
	for (const struct json_node *c = list->first; c; c = c->next) {
		int r = get_arg(s, c, &ret[(*ret_n)++]);

		if (r < 0)
			return r;
	}
	return 0;
}

static int get_row(struct parser *s, const struct json_node *row)
{
	static const char *const keys[] = { "names", "name",	"action",   "errnoRet",
					    "args",  "comment", "includes", "excludes" };
	const struct json_node *names, *name;
	struct scmp_arg_cmp args[SECCOMP_ARGS_MAX] = { 0 };
	bool in, out;
	uint32_t action = 0;
	unsigned n = 0;
	int r = check_keys(s, row, keys, ARRAY_SIZE(keys));

	if (r == 0)
		r = get_action(s, row, "action", "errnoRet", &action);
	if (r == 0)
		r = get_args(s, json_given(row, "args"), args, &n);
	if (r == 0)
		r = holds(s, json_given(row, "includes"), false, &in);
	if (r == 0)
		r = holds(s, json_given(row, "excludes"), true, &out);
	if (r < 0)
		return r;
	names = json_given(row, "names");
	name = json_given(row, "name");
	if (!names == !name || (names && names->type != JSON_ARRAY))
		return bad(s, row, "expected 'names', a list");
	if (!in || !out) {
		s->p->left_out++;
		return 0;
	}
	if (name)
		return add_call(s, name, action, args, n);
	for (const struct json_node *c = names->first; r == 0 && c; c = c->next)
		r = add_call(s, c, action, args, n);
	return r;
}

/* ---- the whole ---- */

/* Another machine's profile would leave this one's calls to its default. */
static int check_arches(struct parser *s, const struct json_node *root)
{
	const struct json_node *list = json_given(root, "architectures"),
			       *map = json_given(root, "archMap");
	bool ours = false;

	if ((list && list->type != JSON_ARRAY) || (map && map->type != JSON_ARRAY))
		return bad(s, list ? list : map, "expected a list of architectures");
	for (const struct json_node *m = map ? map->first : NULL; m; m = m->next) {
		static const char *const keys[] = { "architecture", "subArchitectures" };
		struct str arch;
		int r = check_keys(s, m, keys, ARRAY_SIZE(keys));

		if (r < 0)
			return r;
		if (!json_text_of(m, "architecture", &arch))
			return bad(s, m, "'architecture' is not a text");
		ours |= str_eqz(arch, ARCH);
	}
	ours |= list_has(list, ARCH) || (!(list && list->n) && !(map && map->n));
	return ours ? 0 : bad(s, list && list->n ? list : map, "nothing for " ARCH);
}

/* A whole runtime-spec is taken, too. */
static const struct json_node *find_profile(const struct json_node *root)
{
	const struct json_node *in = json_given(json_given(root, "linux"), "seccomp");

	return in ? in : root;
}

static int parse(struct parser *s, const struct json_node *root)
{
	static const char *const keys[] = { "defaultAction", "defaultErrnoRet", "architectures",
					    "archMap",	     "flags",		"syscalls" };
	const struct json_node *rows;
	int r = check_keys(s, root, keys, ARRAY_SIZE(keys));

	if (r == 0)
		r = get_action(s, root, "defaultAction", "defaultErrnoRet", &s->p->action);
	if (r == 0)
		r = check_arches(s, root);
	if (r < 0)
		return r;
	rows = json_given(root, "syscalls");
	if (rows && rows->type != JSON_ARRAY)
		return bad(s, rows, "'syscalls' is a list");
	for (const struct json_node *c = rows ? rows->first : NULL; r == 0 && c; c = c->next)
		r = get_row(s, c);
	return r;
}

static int hash(struct seccomp_profile *p, struct str text)
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;

	if (EVP_Digest(text.p, text.n, sum, &n, EVP_sha256(), NULL) != 1 || n != 32)
		return -EIO;
	for (unsigned i = 0; i < n; i++)
		snprintf(p->sha256 + i * 2, 3, "%02x", sum[i]);
	return 0;
}

int seccomp_profile_parse(struct seccomp_profile *ret, struct arena *mem, const char *name,
			  struct str text, const char *kernel, struct err *err)
{
	struct parser s = {
		.p = ret, .mem = mem, .name = name, .kernel = kernel, .text = text, .err = err
	};
	struct seccomp_rule *rules = NULL;
	struct json_node *root = NULL;
	struct arena tree;
	int r;

	*ret = (struct seccomp_profile){ 0 };
	if (text.n > SECCOMP_PROFILE_BYTES)
		return err_set(err, EFBIG, "%s: more than %u bytes", name, SECCOMP_PROFILE_BYTES);
	arena_init(&tree, TREE_MAX);
	ret->rules = arena_alloc(&tree, SECCOMP_RULES_MAX * sizeof(*ret->rules));
	r = ret->rules ? json_tree_parse(&root, &tree, name, text, err)
		       : err_set(err, ENOMEM, "%s: %m", name);
	if (r == 0)
		r = parse(&s, find_profile(root));
	if (r == 0 && hash(ret, text) < 0)
		r = err_set(err, EIO, "%s: cannot be hashed", name);
	if (r == 0) {
		rules = arena_alloc(mem, (ret->n + 1) * sizeof(*rules));
		if (rules)
			memcpy(rules, ret->rules, ret->n * sizeof(*rules));
		else
			r = err_set(err, ENOMEM, "%s: %m", name);
	}
	ret->rules = rules;
	arena_done(&tree);
	return r;
}
