// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/rule_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"

DEFINE_AUTO(ruleset, ruleset_free)

struct entry {
	uint32_t name_n, text_n;
};

static bool is_library(const char *pack)
{
	return !strcmp(pack, RULE_PACK_MACROS);
}

static int add_text(struct buf *out, struct str name, struct str text, struct err *err)
{
	const struct entry e = { (uint32_t)name.n, (uint32_t)text.n };

	if (out->n + sizeof(e) + name.n + text.n > RULE_TEXTS_MAX)
		return err_set(err, EFBIG, "rule file '%.*s': all rules together exceed %zu MiB",
			       (int)name.n, name.p, RULE_TEXTS_MAX >> 20);
	if (buf_add(out, &e, sizeof(e)) < 0 || buf_add(out, name.p, name.n) < 0 ||
	    buf_add(out, text.p, text.n) < 0)
		return err_set(err, ENOMEM, "rules: out of memory");
	return 0;
}

static int add_file(struct buf *out, const char *path, bool trusted, struct err *err)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	auto_buf struct buf text = { 0 };
	struct stat st;
	int r;

	buf_init(&text, RULE_TEXTS_MAX);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "rule file '%s': %m", path);
	/* A FIFO or device could keep us waiting: for ever, and while a sandbox runs. What the shell or a
	 * person put on a descriptor (/dev/fd/63, /dev/stdin) is wanted. Asked of what is open: a name can mean
	 * something else a moment later. */
	if (!S_ISREG(st.st_mode) && strncmp(path, "/dev/", 5) != 0)
		return err_set(err, EMEDIUMTYPE, "rule file '%s': no regular file", path);
	r = trusted ? file_trusted(fd, path, err) : 0;
	if (r < 0)
		return err_wrap(err, r, "rule file");
	fcntl(fd, F_SETFL, 0);
	r = fd_read_rest(fd, &text);
	if (r < 0)
		return err_set(err, r == -EMSGSIZE ? EFBIG : -r, "rule file '%s': %m", path);
	return add_text(out, str_from(path), (struct str){ text.p, text.n }, err);
}

static int is_rule_file(const struct dirent *de)
{
	struct str s = str_from(de->d_name);

	return de->d_name[0] != '.' && (str_ends(s, STR(".yaml")) || str_ends(s, STR(".yml")));
}

/* Not by locale: the order of files decides what overrides what. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_dir(struct buf *out, const char *path, bool trusted, struct err *err)
{
	struct dirent **v = NULL;
	int n = scandir(path, &v, is_rule_file, by_name), r = 0;

	if (n < 0)
		return err_set(err, errno, "rule directory '%s': %m", path);
	if (n > RULE_DIR_MAX)
		r = err_set(err, E2BIG, "rule directory '%s': more than %d rule files", path,
			    RULE_DIR_MAX);
	if (n == 0)
		r = err_set(err, ENOENT, "rule directory '%s': no *.yaml is in it", path);
	for (int i = 0; i < n; i++) {
		char file[4096];

		if (r == 0 && (size_t)snprintf(file, sizeof(file), "%s/%s", path, v[i]->d_name) >=
				      sizeof(file))
			r = err_set(err, ENAMETOOLONG, "rule directory '%s': path too long", path);
		if (r == 0)
			r = add_file(out, file, trusted, err);
		free(v[i]);
	}
	free(v);
	return r;
}

int rule_texts_read(struct buf *out, const struct rule_files *files, struct err *err)
{
	int r = 0;

	buf_reset(out);
	/* First what rules may build on. */
	for (size_t i = 0; r == 0 && i < rule_packs_n; i++)
		if (is_library(rule_packs[i].name))
			r = add_text(out, str_from(rule_packs[i].name), rule_packs[i].text, err);
	for (size_t i = 0; r == 0 && files->builtin && i < rule_packs_n; i++)
		if (!is_library(rule_packs[i].name))
			r = add_text(out, str_from(rule_packs[i].name), rule_packs[i].text, err);
	for (size_t i = 0; r == 0 && i < files->n; i++) {
		struct stat st;

		r = stat(files->path[i], &st) == 0 && S_ISDIR(st.st_mode)
			    ? add_dir(out, files->path[i], files->trusted, err)
			    : add_file(out, files->path[i], files->trusted, err);
	}
	return r;
}

static int add_entry(struct ruleset *rs, struct str *texts, struct err *err)
{
	struct entry e;
	char name[4096];
	struct str text;

	if (texts->n < sizeof(e))
		return err_set(err, EINVAL, "rules: not a block of rule files");
	memcpy(&e, texts->p, sizeof(e));
	if (e.name_n >= sizeof(name) || e.name_n > texts->n - sizeof(e) ||
	    e.text_n > texts->n - sizeof(e) - e.name_n)
		return err_set(err, EINVAL, "rules: not a block of rule files");
	memcpy(name, texts->p + sizeof(e), e.name_n);
	name[e.name_n] = 0;
	text = (struct str){ texts->p + sizeof(e) + e.name_n, e.text_n };
	*texts = (struct str){ text.p + text.n, texts->n - sizeof(e) - e.name_n - e.text_n };
	return is_library(name) ? ruleset_add_library(rs, name, text, err)
				: ruleset_add_text(rs, name, text, err);
}

/* ---- what is wrong, in the order of the files ---- */

struct said {
	struct rule_diag *v;
	size_t n, cap;
};

static void collect(void *arg, const struct rule_diag *d)
{
	struct said *s = arg;

	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 16;
		struct rule_diag *v = reallocarray(s->v, cap, sizeof(*v));

		if (!v)
			return; /* the first error is in err all the same */
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = *d;
}

static int by_place(const void *a, const void *b)
{
	const struct rule_diag *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	if (x->col != y->col)
		return x->col < y->col ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* A macro that is compiled for both dialects says the same twice. */
static void say_all(struct said *s, rule_diag_fn fn, void *arg)
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), by_place);
	for (size_t i = 0; fn && i < s->n; i++)
		if (!i || by_place(&s->v[i - 1], &s->v[i]))
			fn(arg, &s->v[i]);
	free(s->v);
}

/* One kind of error does not hide the next: all files are read and what can be is compiled. */
static int add_all(struct ruleset *rs, struct str texts, struct err *err)
{
	struct err later = { 0 };
	int r = 0;

	while (texts.n) {
		size_t left = texts.n;
		int one = add_entry(rs, &texts, r < 0 ? &later : err);

		r = r < 0 ? r : one;
		if (texts.n == left || one == -ENOMEM)
			return r;
	}
	if (r == 0 || r == -EINVAL) {
		int one = ruleset_compile(rs, r < 0 ? &later : err);

		r = r < 0 ? r : one;
	}
	return r;
}

int rule_texts_compile(struct ruleset **ret, struct str texts, unsigned actions, rule_diag_fn fn,
		       void *arg, struct err *err)
{
	AUTO(ruleset) struct ruleset *rs = NULL;
	struct said said = { 0 };
	int r = ruleset_new(&rs, collect, &said);

	if (r < 0)
		return err_set(err, r, "rules: %m");
	ruleset_allow_state(rs);
	if (actions)
		ruleset_allow_actions(rs, actions);
	r = add_all(rs, texts, err);
	say_all(&said, fn, arg);
	if (r == 0)
		*ret = take_ptr(rs);
	return r;
}
