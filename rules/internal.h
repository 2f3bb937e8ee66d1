/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rules/ share. The way of a rule file:
 *   yaml.c    bytes -> nodes with positions
 *   load*.c   nodes -> lists, macros, rules (append, override, exceptions)
 *   text.c    condition text with a way back to file:line:col; textual list substitution
 *   parse.c   text -> expr (parse_words.c: its words)
 *   bind.c    expr -> pred: fields found, types checked, macros resolved, constants parsed
 *   compile.c pred -> one jump program a rule and event kind
 *   eval.c    runs them
 * Everything a rule set owns lies in its arena, PCRE2 codes apart. */
#ifndef WARDER_RULES_INTERNAL_H
#define WARDER_RULES_INTERNAL_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include "rules/rule.h"
#include "userspace/base/auto.h"

/* Limits: whatever a rule file can make grow. */
#define RULE_FILE_MAX	    ((size_t)8 << 20)	/* bytes of one file */
#define RULE_ARENA_MAX	    ((size_t)512 << 20) /* memory of one rule set */
#define RULE_YAML_DEPTH_MAX 32
#define RULE_YAML_NODES_MAX 1000000
#define RULE_RULES_MAX	    20000
#define RULE_LIST_MAX	    200000		 /* items of one list */
#define RULE_KEYS_MAX	    256			 /* keys of one item */
#define RULE_COND_MAX	    ((size_t)4 << 20)	 /* bytes of a condition, lists substituted */
#define RULE_DEPTH_MAX	    128			 /* nested parentheses and transformers */
#define RULE_MACRO_DEPTH    64			 /* macros within macros */
#define RULE_PRED_DEPTH	    1000		 /* levels of a condition, macros expanded */
#define RULE_TERMS_MAX	    100000		 /* checks of one rule, macros expanded */
#define RULE_CODE_MAX	    ((size_t)4 << 20)	 /* instructions of one rule set */
#define RULE_ATOMS_MAX	    32768		 /* distinct checks that one event kind can need */
#define RULE_ACCESS_MAX	    4096		 /* distinct fields with their arguments */
#define RULE_MEMO_MAX	    256			 /* of those, the ones that have to be computed */
#define RULE_PROGS_MAX	    (RULE_RULES_MAX * 2) /* conditions and steps of one kind */
#define RULE_FIELDS_MAX	    128 /* named by an alert's output; fewer than JSON_MEMBERS_MAX */
#define RULE_KINDS_MAX	    64
#define RULE_SCRATCH	    ((size_t)512 << 10) /* bytes for computed values of one event */
#define RULE_COMM_MAX	    15			/* bytes of a task's name */
#define RULE_DIAGS_MAX	    1000		/* errors, and as many warnings; more are counted */
#define RULE_REGEX_MATCH    100000		/* PCRE2 match limit: steps before giving up */
#define RULE_REGEX_SUBJECT  ((size_t)64 << 10)	/* bytes of a value that a regex looks at */

struct ynode;

/* A rule file kept in memory. */
struct source {
	unsigned at; /* in load order */
	const char *name;
	struct str raw;
	bool library; /* of names that need not be used */
	size_t *line; /* byte offsets of line starts; NULL for text without a file */
	size_t lines;
};

/* ---- positions and messages (diag.c) ---- */

struct pos {
	const struct source *src;
	int line, col; /* from 1; 0 = whole file */
};

void rule_error(struct ruleset *rs, struct pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void rule_warn(struct ruleset *rs, struct pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* " (did you mean 'x'?)" into out, or "". Returns out. */
const char *rule_hint(char *out, size_t n, const char *word, const char *const *names,
		      size_t names_n);

/* ---- YAML (yaml.c) ---- */

enum ytype { Y_SCALAR, Y_SEQ, Y_MAP };
enum ystyle { Y_PLAIN, Y_SINGLE, Y_DOUBLE, Y_BLOCK };

struct ynode {
	enum ytype type;
	enum ystyle style;
	const struct source *src;
	int line, col;	    /* from 1 */
	struct str text;    /* scalar */
	struct ynode **kid; /* sequence: items; map: values */
	struct ynode **key; /* map */
	size_t n;
};

/* All documents of a file as one list of top-level nodes. 0 or -EINVAL (said through rule_error). */
int yaml_read(struct ruleset *rs, struct source *src, struct ynode ***ret_docs, size_t *ret_n);
struct ynode *ynode_get(const struct ynode *map, const char *key);
struct pos ynode_pos(const struct ynode *n);
/* Where byte `off` of the scalar stands in the file. */
struct pos ynode_pos_at(const struct ynode *n, size_t off);

/* ---- condition text (text.c) ---- */

struct piece {
	uint32_t off; /* in the text, ascending */
	uint32_t node_off;
	const struct ynode *node; /* NULL: position of the whole item, `at` */
	struct pos at;
	bool fixed; /* substituted: every byte stands at node_off */
};

struct text {
	struct str s;
	struct piece *piece;
	size_t n;
	size_t s_cap,
		piece_cap; /* room behind both, of a text that was appended to; 0: they are others' */
	const struct source *made; /* text without a file: positions are line 1, column off + 1 */
};

struct pos text_pos(const struct text *t, size_t off);
int text_from_node(struct ruleset *rs, const struct ynode *n, struct text *ret);
/* a + " " + b, as Falco appends: in place, with room for as much again, since texts may be put together of thousands of
 * parts. Of two copies of a text only one may be appended to. */
int text_append(struct ruleset *rs, struct text *a, const struct text *b);
/* Replace bare words that are list names by the items, as text. */
int text_subst_lists(struct ruleset *rs, const struct text *in, struct text *ret);

/* ---- expressions (parse.c, parse_words.c) ---- */

enum expr_type { E_AND, E_OR, E_NOT, E_CHECK, E_MACRO };
enum rule_op {
	OP_EXISTS,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_CONTAINS,
	OP_ICONTAINS,
	OP_BCONTAINS,
	OP_STARTSWITH,
	OP_BSTARTSWITH,
	OP_ENDSWITH,
	OP_GLOB,
	OP_IGLOB,
	OP_REGEX,
	OP_IN,
	OP_INTERSECTS,
	OP_PMATCH,
	OP_COUNT
};
enum quant { Q_NONE, Q_ANY, Q_ALL, Q_ONE };
enum transformer { TR_VAL, TR_TOLOWER, TR_TOUPPER, TR_B64, TR_BASENAME, TR_LEN, TR_COUNT };

#define TRANSFORMERS_MAX 8

struct lhs {
	struct str name;
	struct str arg;
	bool has_arg;
	uint8_t tr[TRANSFORMERS_MAX]; /* innermost first */
	uint8_t tr_n;
	uint32_t pos;
};

struct word {
	struct str s;
	uint32_t pos;
	bool quoted;
};

struct expr {
	enum expr_type type;
	uint32_t pos;
	const struct text *text;
	/* E_AND, E_OR, E_NOT */
	struct expr **kid;
	size_t n;
	/* E_MACRO */
	struct str name;
	/* E_CHECK */
	enum rule_op op;
	enum quant quant;
	uint32_t op_pos;
	struct lhs lhs;
	struct lhs *rhs_field;
	struct word *val;
	size_t val_n;
	bool is_list;
};

/* NULL after an error, which was reported. */
struct expr *expr_parse(struct ruleset *rs, const struct text *t);
/* A field alone, transformers and argument included. False after an error, which was reported. */
bool field_parse(struct ruleset *rs, const struct text *t, struct lhs *ret);
const char *op_name(enum rule_op op);
const char *transformer_name(enum transformer t);

/* ---- fields (field.c, field_get*.c) ---- */

enum rtype { RT_STR, RT_U64, RT_I64, RT_BOOL, RT_IP, RT_TIME };

enum vtype { V_NONE, V_STR, V_U64, V_I64, V_IP, V_LIST };

/* A value read from an event. Lists are strided so that no array has to be built. */
struct val {
	enum vtype t;
	union {
		struct str s;
		uint64_t u;
		int64_t i;
		const struct ip_addr *ip;
		struct {
			const char *base;
			uint32_t n, stride;
			enum vtype et;
		} list;
	};
};

struct eval;
struct access;
typedef void (*field_get_fn)(struct eval *e, const struct access *a, struct val *v);

enum field_flag {
	FR_LIST = 1, /* several values: `in` wants all of them, others any */
	FR_ANY = 2,  /* several values: every operator wants any */
	FR_ARG = 4,  /* takes an index: field[2] */
	FR_NEEDS_ARG = 8,
	FR_ABSENT = 16,	 /* known to Falco, never present here */
	FR_PARTIAL = 32, /* present only for some values; `doc` says which */
	FR_MEMO = 64,	 /* computed: remember it for the event */
	FR_CONST = 128,	 /* same for every event of a kind */
	FR_OLD = 256,	 /* accepted, without meaning */
	FR_LOW = 512,	 /* few values: no use to look rules up by it */
};

struct field_row {
	const char *name;
	enum rtype type;
	uint32_t flags;
	uint32_t fams;
	int slot; /* enum field_id or -1 */
	field_get_fn get;
	const char *doc;
};

extern const struct field_row falco_fields[];
extern const size_t falco_fields_n;
extern struct field_row native_fields[F_COUNT];

/* The row of a name. `falco`: Falco's meaning first. NULL when unknown. */
const struct field_row *field_find(struct str name, bool falco);
/* Do the two languages mean different things by it? */
bool field_is_ambiguous(struct str name);
void field_hint(char *out, size_t n, struct str name);
void native_fields_init(void);

/* A field with its argument and transformers: unique in a rule set. */
struct access {
	const struct field_row *row;
	field_get_fn get;
	int slot;
	uint32_t idx; /* in the rule set */
	int memo;     /* slot of the per-event memory, -1 = direct */
	long arg;     /* -1 = none */
	uint8_t tr[TRANSFORMERS_MAX];
	uint8_t tr_n;
	enum rtype type; /* after transformers */
	bool list;
};

/* ---- predicates (bind.c) ---- */

enum pred_type { P_CONST, P_ATOM, P_NOT, P_AND, P_OR };

struct strset; /* value.c */
struct netset;

struct net {
	uint8_t family, bits;
	uint8_t b[16];
};

/* One check: unique in a rule set, so that it runs once an event whatever number of rules ask. */
struct atom {
	enum rule_op op;
	uint32_t idx;
	const struct access *a;
	const struct access *rhs; /* field against field */
	struct str s;		  /* first value */
	const struct strset *set; /* strings: more than one value */
	const struct net *net;
	size_t net_n;
	const uint64_t *num; /* sorted; signed ones are biased, see num_key */
	size_t num_n;
	pcre2_code *re;
	uint64_t hash;
	struct atom *next; /* hash chain */
	uint8_t cost;
};

struct pred {
	enum pred_type type;
	bool value;	/* P_CONST */
	int8_t fold;	/* -1 unknown, 0, 1: result for the kind being compiled */
	uint32_t stamp; /* kind that `fold` is for */
	uint32_t cost;
	uint32_t terms; /* checks below, macros expanded */
	uint32_t depth;
	struct atom *atom;
	struct pred **kid;
	size_t n;
};

/* ---- the rule set ---- */

struct list {
	struct str name;
	struct str *item;
	size_t n, cap;
	const struct ynode *node;
	uint32_t index, visible;
	bool used;
};

struct macro {
	struct str name;
	struct text cond;
	const struct ynode *node;
	uint32_t index, visible;
	bool used, parsed, resolving;
	struct expr *expr;
	struct pred *pred[2]; /* by dialect */
	bool bound[2];
	const char *absent[2]; /* first field that is never there */
	uint8_t uses_evt;      /* 0 unknown, 1 no, 2 yes */
};

struct out_part {
	struct str text; /* literal when a is NULL */
	const struct access *a;
	uint32_t width;
	bool absent;	/* prints <NA> */
	struct str key; /* in the fields of an alert, as it is written; empty: named before */
};

struct exception {
	struct str name;
	const struct ynode *node, *fields, *comps;
	const struct ynode **values;
	size_t values_n, values_cap;
};

struct stateful;

/* Keys of rules that remember, as they stand in the file. Only pointers to nodes. */
struct state_keys {
	const struct ynode *count, *window, *distinct, *sum, *by, *sequence, *within;
};

struct rule {
	struct rule_info info; /* first: rule_info * is rule * */
	const struct ynode *node;
	struct text cond;
	struct text out;
	struct text desc;
	struct exception *ex;
	size_t ex_n, ex_cap;
	size_t tags_cap, attack_cap;
	struct str source;
	const struct ynode *action_node;
	bool enabled, skip_unknown, falco, failed, has_for;
	bool any_kind; /* warn_evttypes: false, it is meant for all events */
	uint32_t terms;
	uint32_t visible;
	struct pred *pred;
	struct state_keys keys;
	struct stateful *st; /* NULL: each event is judged by itself */
	size_t throttle_off; /* of its struct throttle in a sandbox's memory */
	uint64_t print;	     /* of a rule with state: what it remembers, see carry.c */
	struct out_part *part;
	size_t part_n;
	uint32_t at;		   /* position in the set */
	uint64_t kinds;		   /* bit = dense kind index */
	uint64_t kill_escapes;	   /* as in ruleset_kernel_kill_escapes */
	const char *absent;	   /* first field that is never there */
	const char *output_absent; /* the same of the output */
	struct str tags_store;
	struct ruleset *rs;
};

struct insn {
	uint32_t atom; /* local number in the bucket */
	uint32_t t, f; /* next instruction, or one of PC_* */
};

#define PC_TRUE	 UINT32_MAX
#define PC_FALSE (UINT32_MAX - 1)
#define PC_LAST	 (UINT32_MAX - 2)

struct prog {
	uint32_t rule;
	uint32_t entry;
	uint32_t step; /* of a sequence; 0 = the rule's condition */
	struct pred *pred;
};

struct bucket_index;

/* What runs for one event kind. */
struct bucket {
	const struct atom **atom; /* by local number */
	uint32_t atoms_n;
	struct prog *prog;
	uint32_t progs_n;
	struct bucket_index *index;
};

struct ruleset {
	struct arena arena;
	rule_diag_fn fn;
	void *fn_arg;
	struct err first;
	unsigned errors, warnings;
	bool compiled, oom;
	bool lost; /* a file could not be read at all: what others miss may have been in it */
	unsigned actions; /* that the caller can do */
	bool has_state;
	size_t state_size; /* bytes a sandbox */
	void *sha;	   /* EVP_MD_CTX */
	char hash[65];

	struct source **src;
	size_t src_n, src_cap;
	struct list **list;
	size_t list_n, list_cap;
	struct macro **macro;
	size_t macro_n, macro_cap;
	struct rule **rule;
	size_t rule_n, rule_cap;
	uint32_t next_index;
	struct nametab *names; /* list, macro and rule names */

	struct access **access;
	size_t access_n, access_cap;
	int memo_n;
	struct atom **atom;
	size_t atom_n, atom_cap;
	struct atom **atom_tab;
	size_t atom_tab_n;

	struct insn *code;
	size_t code_n, code_cap;
	struct bucket bucket[RULE_KINDS_MAX];
	uint64_t kinds; /* buckets with programs */
	uint64_t kill_escapes;
	bool is_filter;
};

/* Arena with the rule set's out-of-memory flag. */
void *rs_alloc(struct ruleset *rs, size_t n);
struct str rs_dup(struct ruleset *rs, struct str s);
/* Grow an arena array to hold one more. */
int rs_grow(struct ruleset *rs, void *pv, size_t *cap, size_t n, size_t elem);

/* Room for `add` more elements behind v[0..n): in place, or in a copy with as much again. *cap: 0 = v is another's.
 * NULL when memory is out. */
void *rs_extend(struct ruleset *rs, const void *v, size_t *cap, size_t n, size_t add, size_t elem);

struct list *ruleset_list(const struct ruleset *rs, struct str name);
struct macro *ruleset_macro(const struct ruleset *rs, struct str name);
struct rule *ruleset_rule(const struct ruleset *rs, struct str name);
void *ruleset_name_get(const struct ruleset *rs, char space, struct str name);
int ruleset_name_add(struct ruleset *rs, char space, struct str name, void *obj);
/* Is something missing only because its own definition has an error, which was told? */
bool ruleset_is_broken(const struct ruleset *rs, struct str name);

/* load.c */
int load_source(struct ruleset *rs, struct source *src);

/* exception.c: condition with the rule's exceptions added. */
int rule_full_condition(struct ruleset *rs, struct rule *r, struct text *ret);

/* bind.c */
struct pred *bind_expr(struct ruleset *rs, struct rule *r, const struct expr *e, bool falco);
bool expr_uses_evt(struct ruleset *rs, const struct expr *e, int depth);
/* Field with argument and transformers -> access; NULL when it was an error. *ret_absent: known, but
 * never present here. */
const struct access *bind_access(struct ruleset *rs, struct rule *r, const struct text *t,
				 const struct lhs *l, bool falco);

/* value.c: constants of a check, typed. False when it was an error. */
bool bind_values(struct ruleset *rs, const struct expr *e, struct atom *a);
bool strset_has(const struct strset *set, struct str s);
size_t strset_count(const struct strset *set);
struct str strset_at(const struct strset *set, size_t i);
const struct strset *strset_make(struct ruleset *rs, const struct str *v, size_t n);
bool pathset_match(const struct strset *set, struct str path);

/* closed.c: is the value one that the field can have? If not, why. */
bool closed_has(int slot, struct str value, char *ret, size_t size);
bool closed_check_event(const struct event *ev, char *ret, size_t size);

/* compile.c */
int compile_buckets(struct ruleset *rs);
size_t kind_index(uint16_t kind);
/* What a check gives when only the kind is known (and the escape type, when not 0): 0, 1, or -1 = it
 * depends. `ev` is of that kind and else empty. */
int atom_fold(struct event *ev, const struct kind_def *kind, uint32_t escape, const struct atom *a);
/* index.c: shared look-ups of a bucket's checks. */
void bucket_index(struct ruleset *rs, struct bucket *b, uint32_t *local);

/* output.c */
bool output_compile(struct ruleset *rs, struct rule *r);

/* eval.c */
struct eval {
	const struct event *ev;
	char *scratch;
	size_t scratch_n;
	uint64_t memo_known[RULE_MEMO_MAX / 64];
	uint64_t memo_hold[1]; /* keeps memo[] apart from the part that is cleared */
	struct val memo[RULE_MEMO_MAX];
};

/* The same result without look-ups: what the index is tested against. */
size_t ruleset_eval_plain(const struct ruleset *rs, const struct event *ev,
			  struct rule_matches *ret);
void eval_init(struct eval *e, const struct event *ev);
const struct val *eval_value(struct eval *e, const struct access *a, struct val *tmp);
bool atom_eval(struct eval *e, const struct atom *a);
/* Number of a value as value.c writes the constants: signed ones are biased. */
uint64_t val_num_key(const struct val *v, enum rtype type);
/* Element of a list; false when it is missing. */
bool val_list_at(const struct val *list, uint32_t i, struct val *ret);
char *eval_scratch(struct eval *e, size_t n);

/* match.c */
bool str_contains(struct str hay, struct str needle);
bool str_icontains(struct str hay, struct str needle);
bool str_glob(struct str pattern, struct str s, bool icase);

/* names.c */
int rule_priority_parse(struct str s, enum rule_priority *ret);
int rule_action_parse(struct str s, enum rule_action *ret);
extern const char *const rule_priority_names[];
extern const char *const rule_action_names[];
extern const char *const rule_for_names[RULE_FOR_KEYS];

static inline uint64_t hash_bytes(const void *p, size_t n, uint64_t h)
{
	const unsigned char *b = p;

	while (n--)
		h = (h ^ *b++) * 0x100000001b3ull;
	return h;
}

#define HASH_START 0xcbf29ce484222325ull

#endif
