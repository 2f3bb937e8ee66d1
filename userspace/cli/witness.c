// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/witness.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"

static int grow(struct witness *w)
{
	size_t cap = w->cap ? 2 * w->cap : 256;
	void *p;

	if (w->n < w->cap)
		return 0;
	if (cap > WITNESS_MAX)
		return -E2BIG;
	p = reallocarray(w->v, cap, sizeof(*w->v));
	if (!p)
		return -ENOMEM;
	w->v = p;
	w->cap = cap;
	return 0;
}

static bool read_string(struct str object, const char *key, struct str *ret)
{
	struct str v;

	return scan_find(object, key, &v) && scan_string(v, ret);
}

static bool read_line(struct str line, struct verify_witness *ret)
{
	struct str session, checkpoint, head, seq;
	size_t n;

	*ret = (struct verify_witness){ 0 };
	if (!read_string(line, "session", &session) || session.n >= sizeof(ret->session) ||
	    !scan_find(line, "checkpoint", &checkpoint) || !scan_find(checkpoint, "seq", &seq) ||
	    !scan_u64(seq, &ret->seq) || !read_string(checkpoint, "head", &head) ||
	    sodium_hex2bin(ret->head, sizeof(ret->head), head.p, head.n, NULL, &n, NULL) != 0 ||
	    n != sizeof(ret->head))
		return false;
	memcpy(ret->session, session.p, session.n);
	return true;
}

static int add_line(struct witness *w, struct str line)
{
	struct str kind;
	int r;

	if (!line.n || !read_string(line, "kind", &kind))
		return line.n ? -EBADMSG : 0;
	if (!str_eqz(kind, "checkpoint"))
		return 0;
	r = grow(w);
	if (r < 0)
		return r;
	if (!read_line(line, &w->v[w->n]))
		return -EBADMSG;
	w->n++;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct verify_witness *x = a, *y = b;
	int c = strcmp(x->session, y->session);

	return c ? c : (x->seq > y->seq) - (x->seq < y->seq);
}

static int read_lines(struct witness *w, FILE *f, const char *path, struct err *err)
{
	auto_free char *line = malloc(WITNESS_LINE_MAX);
	unsigned long long number = 0;

	if (!line)
		return err_set(err, ENOMEM, "%m");
	while (fgets(line, WITNESS_LINE_MAX, f)) {
		size_t n = strlen(line);
		bool whole = n && line[n - 1] == '\n';
		int r;

		number++;
		if (!whole && !feof(f))
			return err_set(err, EBADMSG, "%s:%llu: a line of more than %d bytes", path,
				       number, WITNESS_LINE_MAX);
		r = add_line(w, (struct str){ line, n - whole });
		/* The last may be half there: its writer is not done, or was cut off. */
		if (r == -EBADMSG && !whole)
			break;
		if (r == -EBADMSG)
			return err_set(err, EBADMSG, "%s:%llu: no checkpoint", path, number);
		if (r < 0)
			return err_set(err, r, "%s: %m", path);
	}
	return ferror(f) ? err_set(err, EIO, "%s: %m", path) : 0;
}

int witness_read(struct witness *ret, const char *path, struct err *err)
{
	auto_file FILE *f = fopen(path, "re");
	int r;

	*ret = (struct witness){ 0 };
	if (!f)
		return err_set(err, errno, "witness '%s': %m", path);
	if (grow(ret) < 0 || sodium_init() < 0)
		return err_set(err, ENOMEM, "%m");
	r = read_lines(ret, f, path, err);
	if (r < 0)
		return err_wrap(err, r, "witness");
	qsort(ret->v, ret->n, sizeof(*ret->v), compare);
	return 0;
}

void witness_done(struct witness *w)
{
	free(w->v);
}
