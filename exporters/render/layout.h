/* SPDX-License-Identifier: Apache-2.0 */
/* A layout says how events of one kind are written in one format: the rows of map.h and of the format, in the
 * order of the output, with the text of every key made once. Layouts are made when first needed and kept. */
#ifndef WARDER_EXPORTERS_RENDER_LAYOUT_H
#define WARDER_EXPORTERS_RENDER_LAYOUT_H

#include <string.h>

#include "exporters/render/map.h"
#include "userspace/event/event.h"
#include "userspace/event/json_value.h"

enum render_form {
	FORM_TYPE,    /* as in native JSON */
	FORM_STRING,  /* a number as a string */
	FORM_MS,      /* a time as milliseconds since the epoch */
	FORM_COMMAND, /* a list of arguments as one line, quoted for a shell where needed */
	FORM_OCTAL,   /* permission bits of a mode, "0644" */
	FORM_HOST,    /* only what is a host name in OCSF's early versions: no '_', not empty */
	FORM_HOST_OR_UNKNOWN,
	FORM_NOT_HOST, /* only what is none */
};

/* Writes a value at d, where 256 bytes are free, and returns its end; d itself when there is nothing to
 * say, NULL when there is no room. */
typedef char *(*render_fn)(struct json_writer *w, char *d, const struct event *ev);

#define ALWAYS (-1)

struct render_row {
	const char *path; /* "actor.process.pid" */
	int when;	  /* only when this field is there; or ALWAYS */
	int unless;	  /* not when this field is there; or ALWAYS */
	int field;	  /* the value, in `form`; or -1 */
	enum render_form form;
	const char *text; /* or this, JSON text */
	render_fn fn;	  /* or what this writes */
};

/* clang-format off */
#define ROW_FIELD(p, f, m)      { (p), (f), ALWAYS, (f), (m), NULL, NULL }
#define ROW_TEXT(p, t)          { (p), ALWAYS, ALWAYS, -1, FORM_TYPE, (t), NULL }
#define ROW_TEXT_IF(p, f, t)    { (p), (f), ALWAYS, -1, FORM_TYPE, (t), NULL }
#define ROW_TEXT_UNLESS(p, f, t) { (p), ALWAYS, (f), -1, FORM_TYPE, (t), NULL }
#define ROW_FN(p, fn)           { (p), ALWAYS, ALWAYS, -1, FORM_TYPE, NULL, (fn) }
#define ROW_FN_IF(p, f, fn)     { (p), (f), ALWAYS, -1, FORM_TYPE, NULL, (fn) }
/* clang-format on */

/* A column of map.h for one field. */
struct render_column {
	const char *path; /* NULL = none, "+" = rows of the format have it */
	uint8_t since;
	uint8_t form;
};

extern const struct render_column ocsf_columns[F_COUNT], ecs_columns[F_COUNT], cef_columns[F_COUNT],
	leef_columns[F_COUNT];

/* Exceptions from a column: the first that fits. */
struct render_exception {
	uint32_t families; /* of the kind */
	uint16_t kind;	   /* 0 = any */
	uint16_t not_kind; /* 0 = none */
	int field;
	const char *path; /* as in a column */
};

#define LAYOUT_STEPS_MAX  128
#define LAYOUT_GROUPS_MAX 40
#define LAYOUT_PATH_MAX	  64
#define LAYOUT_KEY_MAX	  40

struct layout_group {
	uint8_t parent, depth, open_n;
	bool list;
	char open[LAYOUT_KEY_MAX]; /* ,"process":{ */
	char path[LAYOUT_PATH_MAX];
};

#define LAYOUT_WORDS	  (EVENT_PRESENT_WORDS + 1) /* the last one: what is always so */
#define LAYOUT_ALWAYS	  1
#define LAYOUT_NEVER	  2
#define LAYOUT_TEXTS_MAX  4096
#define LAYOUT_MEMBER_MAX 1024
#define LAYOUT_PIECE	  32

/* What is needed for each event stands in front. */
struct layout_step {
	uint64_t when_bit, unless_bit;
	uint8_t when_word, unless_word;
	uint8_t group,
		last_group; /* before the text and behind it, which may be of several members */
	uint8_t key_n, form, type;
	bool perhaps; /* there may be nothing to say */
	int16_t field;
	uint16_t text_n;
	const char *text;
	render_fn fn;
	char key[LAYOUT_KEY_MAX]; /* ,"pid": */
	int16_t when, unless;
	uint16_t max; /* bytes of the value, where the format limits it; 0 = no limit */
	char path[LAYOUT_PATH_MAX];
};

struct layout {
	uint64_t handled[EVENT_PRESENT_WORDS]; /* fields that some row carries */
	uint8_t rest;			       /* group of all other fields */
	uint16_t steps_n, groups_n;
	struct layout_step steps[LAYOUT_STEPS_MAX];
	struct layout_group groups[LAYOUT_GROUPS_MAX];
	size_t texts_n;
	char texts[LAYOUT_TEXTS_MAX]; /* of the rows */
};

/* A field under its own name: ,"proc.cwd": */
struct layout_own_key {
	uint8_t n;
	char key[LAYOUT_KEY_MAX];
};

extern struct layout_own_key layout_own_keys[F_COUNT];

/* Starts an empty layout; `rest` is the object for what no row carries ("unmapped"). */
void layout_start(struct layout *p, const char *rest);
/* Adds rows, whose texts are copied; a '$' at the start of a path is replaced by `root`. -E2BIG, -ENAMETOOLONG. */
int layout_add(struct layout *p, const struct render_row *rows, size_t n, const char *root);
/* Adds the columns of the kind's fields. */
int layout_add_columns(struct layout *p, const struct render_column *columns, int version,
		       const struct kind_def *kind, const char *root,
		       const struct render_exception *exceptions, size_t n);
/* Sorts the steps by their paths. -EEXIST when two rows that can both apply have the same path (a mistake in the
 * tables). */
int layout_sort(struct layout *p);
/* For JSON: sorts them, makes the keys, joins what is the same in every event of the kind. */
int layout_finish(struct layout *p);
/* One JSON object, appended. 0, -ENOMEM, -EMSGSIZE. */
int layout_json(const struct layout *p, const struct event *ev, struct buf *out);

/* Closes and opens objects at d, behind a member of group `from`, so that one of group `to` can follow. */
char *layout_enter(const struct layout *p, char *d, uint8_t from, uint8_t to);

/* A key or the start of an object, LAYOUT_KEY_MAX bytes of it; what is the first of its object has no comma. */
static inline char *layout_put_key(char *d, const char key[LAYOUT_KEY_MAX], size_t n)
{
	size_t skip = d[-1] == '{';

	memcpy(d - skip, key, LAYOUT_KEY_MAX);
	if (skip)
		d[-1] = '{';
	return d + n - skip;
}

/* Needs no quotes in a shell's command line. */
bool str_is_shell_safe(struct str s);
/* A list of arguments in one line, as a shell would take it. */
char *put_command(struct json_writer *w, char *d, const struct str *v, size_t n);

/* ---- layouts that are kept ---- */

#define LAYOUT_KINDS_MAX 64

struct layout_cache {
	const struct layout *layouts[LAYOUT_KINDS_MAX]; /* by __atomic_* */
};

/* The layout for the event's kind; `make` fills a new one. NULL without memory, or for a mistake in the tables
 * (*ret_code says which). */
const struct layout *
layout_get(struct layout_cache *cache, const struct event *ev, int version,
	   int (*make)(struct layout *p, const struct kind_def *kind, int version), int *ret_code);

#endif
