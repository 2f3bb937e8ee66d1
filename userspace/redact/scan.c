// SPDX-License-Identifier: Apache-2.0
/* The same pass as prefilter.c by Hyperscan (or Vectorscan, which is the same library elsewhere), for long output
 * where the build and the machine have it: it takes less than half the time for a text of kilobytes, and more for the
 * dozen short texts of an event. What it finds is looked at as there, so both tell the same. It only finds literals:
 * the rules' patterns are PCRE2's.
 *
 * Loading the library and making its tables costs some 7 ms and 4.6 MiB (1.2 MiB of its own, the rest is the library's
 * text): as much as it saves on 16 MiB. So it comes when a run has had that much, and a run without does without. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/redact/internal.h"

#if HAVE_HYPERSCAN
#include <dlfcn.h>
#include <hs.h>
#include <pthread.h>

#define LIBRARY	     "libhs.so.5"
#define TEXT_MIN     512	 /* bytes; a shorter text costs more than by our own */
#define TEXT_MAX     (64u << 20) /* of one; find.c has no longer ones either */
#define PATTERNS_MAX 4096	 /* a run with 256 known values has 2,500: 55 ms and 4 MiB */
#define WINDOW	     4 /* bytes of a known value: longer ones take much more memory, and save nothing */
#define VARIANTS_MAX 16 /* of a window: each NUL in it may be a blank */

/* What was found, when a pattern was; several may have one. */
struct entry {
	char text[WINDOW]; /* of a window; in lower case */
	const char *p;	   /* of a keyword, else NULL */
	uint16_t n;	   /* of the pattern */
	uint16_t literal;  /* index */
	uint16_t end;	   /* of the pattern in it */
	bool three;	   /* of a keyword of three bytes, with any that is printed behind it */
};

struct scan_lib {
	hs_error_t (*valid_platform)(void);
	const char *(*version)(void);
	hs_error_t (*compile)(const char *const *text, const unsigned *flags, const unsigned *ids,
			      const size_t *n, unsigned elements, unsigned mode,
			      const hs_platform_info_t *platform, hs_database_t **db,
			      hs_compile_error_t **error);
	hs_error_t (*free_error)(hs_compile_error_t *error);
	hs_error_t (*free_db)(hs_database_t *db);
	hs_error_t (*alloc)(const hs_database_t *db, hs_scratch_t **scratch);
	hs_error_t (*free)(hs_scratch_t *scratch);
	hs_error_t (*scan)(const hs_database_t *db, const char *p, unsigned n, unsigned flags,
			   hs_scratch_t *scratch, match_event_handler found, void *arg);
};

enum state { NOT_YET, READY, NEVER };

struct scan {
	pthread_mutex_t lock; /* one makes the tables, others wait for them */
	_Atomic int state;
	_Atomic uint64_t seen; /* bytes of long texts so far */
	uint64_t after;
	const struct scan_lib *lib;
	hs_database_t *db;
	struct entry *v;
	unsigned *first; /* of a pattern's entries, and one more behind the last */
};

/* ---- the library ---- */

static struct {
	pthread_once_t once;
	struct scan_lib lib;
	bool good;
	char what[160];
} library = { .once = PTHREAD_ONCE_INIT };

static void *symbol(void *so, const char *name)
{
	void *p = dlsym(so, name);

	if (!p && !library.what[0])
		snprintf(library.what, sizeof(library.what), LIBRARY " has no %s", name);
	return p;
}

/* It is never unloaded: tables and other threads may be in use until the end. */
static void load(void)
{
	struct scan_lib *lib = &library.lib;
	void *so = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!so) {
		snprintf(library.what, sizeof(library.what), LIBRARY " is not installed");
		return;
	}
	*(void **)&lib->valid_platform = symbol(so, "hs_valid_platform");
	*(void **)&lib->version = symbol(so, "hs_version");
	*(void **)&lib->compile = symbol(so, "hs_compile_lit_multi");
	*(void **)&lib->free_error = symbol(so, "hs_free_compile_error");
	*(void **)&lib->free_db = symbol(so, "hs_free_database");
	*(void **)&lib->alloc = symbol(so, "hs_alloc_scratch");
	*(void **)&lib->free = symbol(so, "hs_free_scratch");
	*(void **)&lib->scan = symbol(so, "hs_scan");
	if (library.what[0])
		return;
	if (lib->valid_platform() != HS_SUCCESS) {
		snprintf(library.what, sizeof(library.what),
			 LIBRARY " does not run on this processor");
		return;
	}
	snprintf(library.what, sizeof(library.what), "Hyperscan %.*s",
		 (int)strcspn(lib->version(), " "), lib->version());
	library.good = true;
}

bool redact_has_hyperscan(const char **ret_what)
{
	pthread_once(&library.once, load);
	*ret_what = library.what;
	return library.good;
}

/* ---- making ---- */

static char lower(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

struct making {
	const struct prefilter *f;
	struct entry *v;
	size_t n;
};

static bool add_entry(struct making *m, const struct entry *e)
{
	if (m->n == PATTERNS_MAX)
		return false;
	m->v[m->n++] = *e;
	return true;
}

/* A keyword is looked for as it is. */
static bool add_keyword(struct making *m, size_t i)
{
	const struct literal *l = &m->f->v[i];
	struct entry e = { .p = l->p, .n = l->n, .literal = (uint16_t)i, .end = l->n };

	if (l->of_three && i && m->f->v[i - 1].of_three && m->f->v[i - 1].rule == l->rule &&
	    !memcmp(m->f->v[i - 1].p, l->p, 3))
		return true; /* the same three with another behind them */
	e.three = l->of_three;
	if (e.three) {
		e.n = e.end = 3;
		memcpy(e.text, l->p, 3);
		e.p = NULL;
	}
	return add_entry(m, &e);
}

/* Of a known value its window is, with each NUL and blank in it as either. */
static bool add_value(struct making *m, size_t i)
{
	const struct literal *l = &m->f->v[i];
	struct entry e = { .n = WINDOW, .literal = (uint16_t)i, .end = l->at + WINDOW };
	unsigned either = 0;

	for (unsigned k = 0; k < WINDOW; k++) {
		e.text[k] = lower(l->p[l->at + k]);
		either |= (e.text[k] == 0 || e.text[k] == ' ') << k;
	}
	for (unsigned which = 0; which < VARIANTS_MAX; which++) {
		struct entry one = e;

		if (which & ~either)
			continue;
		for (unsigned k = 0; k < WINDOW; k++)
			if (either >> k & 1)
				one.text[k] = which >> k & 1 ? ' ' : 0;
		if (!add_entry(m, &one))
			return false;
	}
	return true;
}

static const char *text_of(const struct entry *e)
{
	return e->p ? e->p : e->text;
}

/* Keywords last; those of one pattern beside each other. */
static int by_pattern(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (!x->p != !y->p)
		return x->p ? 1 : -1;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	for (size_t i = 0; i < x->n; i++) {
		int c = (unsigned char)lower(text_of(x)[i]) - (unsigned char)lower(text_of(y)[i]);

		if (c)
			return c;
	}
	return 0;
}

struct patterns {
	const char *text[PATTERNS_MAX];
	size_t n[PATTERNS_MAX];
	unsigned flags[PATTERNS_MAX], id[PATTERNS_MAX];
	unsigned count;
};

static void collect(struct scan *s, struct patterns *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &s->v[i];

		if (i && !by_pattern(e - 1, e))
			continue;
		p->text[p->count] = text_of(e);
		p->n[p->count] = e->n;
		/* That a keyword is there is all that counts; of a value each place does. */
		p->flags[p->count] = HS_FLAG_CASELESS | (e->p ? HS_FLAG_SINGLEMATCH : 0);
		p->id[p->count] = p->count;
		s->first[p->count++] = (unsigned)i;
	}
	s->first[p->count] = (unsigned)n;
}

static bool compile(struct scan *s, size_t n)
{
	struct patterns *p = calloc(1, sizeof(*p));
	hs_compile_error_t *error = NULL;
	bool good;

	if (!p)
		return false;
	collect(s, p, n);
	good = s->lib->compile(p->text, p->flags, p->id, p->n, p->count, HS_MODE_BLOCK, NULL,
			       &s->db, &error) == HS_SUCCESS;
	if (error)
		s->lib->free_error(error);
	free(p);
	return good;
}

static bool make(struct scan *s, const struct prefilter *f)
{
	struct making m = { .f = f, .v = calloc(PATTERNS_MAX, sizeof(*m.v)) };
	const char *what;
	bool good = true;

	s->v = m.v;
	s->first = calloc(PATTERNS_MAX + 1, sizeof(*s->first));
	if (!s->v || !s->first || !f->n || !redact_has_hyperscan(&what))
		return false;
	s->lib = &library.lib;
	for (size_t i = 0; good && i < f->n; i++)
		good = f->v[i].value ? add_value(&m, i) : add_keyword(&m, i);
	if (!good)
		return false;
	qsort(m.v, m.n, sizeof(*m.v), by_pattern);
	return compile(s, m.n);
}

int scan_new(struct scan **ret)
{
	struct scan *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	s->after = SCAN_AFTER;
	*ret = s;
	return 0;
}

void scan_free(struct scan *s)
{
	if (!s)
		return;
	if (s->db)
		library.lib.free_db(s->db);
	free(s->v);
	free(s->first);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

void scan_set_after(struct scan *s, uint64_t bytes)
{
	s->after = bytes;
}

bool scan_is_used(const struct scan *s)
{
	return atomic_load(&s->state) == READY;
}

/* Once for all threads. */
static enum state ready(struct scan *s, const struct prefilter *f)
{
	int state = atomic_load(&s->state);

	if (state != NOT_YET)
		return state;
	pthread_mutex_lock(&s->lock);
	state = atomic_load(&s->state);
	if (state == NOT_YET) {
		state = make(s, f) ? READY : NEVER;
		atomic_store(&s->state, state);
	}
	pthread_mutex_unlock(&s->lock);
	return state;
}

/* ---- looking ---- */

struct looking {
	struct redact *x;
	const struct scan *s;
	struct str text;
	bool found;
};

static bool is_there(const struct looking *k, const struct entry *e, uint64_t to)
{
	const struct literal *l = &k->x->r->pre.v[e->literal];
	size_t from;

	if (e->p)
		return true;
	if (e->three)
		return to < k->text.n && (unsigned char)k->text.p[to] >= 0x20 &&
		       (unsigned char)k->text.p[to] < 0x7f;
	if (to < e->end)
		return false;
	from = to - e->end;
	return k->text.n - from >= l->n && literal_is_at(l, k->text.p + from);
}

static int found(unsigned id, unsigned long long from, unsigned long long to, unsigned flags,
		 void *arg)
{
	struct looking *k = arg;

	(void)from;
	(void)flags;
	for (unsigned i = k->s->first[id]; i < k->s->first[id + 1]; i++) {
		const struct entry *e = &k->s->v[i];
		const struct literal *l = &k->x->r->pre.v[e->literal];

		if (!is_there(k, e, to))
			continue;
		k->found = true;
		literal_found(k->x, l, to - e->end);
	}
	return 0;
}

enum scan_result scan_run(struct redact *x, struct str text)
{
	struct scan *s = x->r->scan;
	struct looking k = { x, s, text, false };

	if (text.n < TEXT_MIN || text.n > TEXT_MAX || x->no_scan)
		return SCAN_NOT;
	if (!x->scratch) {
		if (s->after && atomic_fetch_add(&s->seen, text.n) + text.n < s->after)
			return SCAN_NOT;
		x->no_scan = ready(s, &x->r->pre) != READY ||
			     s->lib->alloc(s->db, &x->scratch) != HS_SUCCESS;
		if (x->no_scan)
			return SCAN_NOT;
	}
	if (s->lib->scan(s->db, text.p, (unsigned)text.n, 0, x->scratch, found, &k) == HS_SUCCESS)
		return k.found ? SCAN_FOUND : SCAN_NOTHING;
	x->no_scan = x->any = true; /* what was found so far is forgotten */
	return SCAN_NOT;
}

void scan_done(struct redact *x)
{
	if (x->scratch)
		library.lib.free(x->scratch);
}

#else

int scan_new(struct scan **ret)
{
	*ret = NULL;
	return 0;
}

void scan_free(struct scan *s)
{
	(void)s;
}

void scan_set_after(struct scan *s, uint64_t bytes)
{
	(void)s;
	(void)bytes;
}

bool scan_is_used(const struct scan *s)
{
	(void)s;
	return false;
}

enum scan_result scan_run(struct redact *x, struct str text)
{
	(void)x;
	(void)text;
	return SCAN_NOT;
}

void scan_done(struct redact *x)
{
	(void)x;
}

bool redact_has_hyperscan(const char **ret_what)
{
	*ret_what = "built without Hyperscan";
	return false;
}

#endif
