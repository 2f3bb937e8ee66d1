// SPDX-License-Identifier: Apache-2.0
/* Push-down of execs by the file itself: its inode (proc.exe_ino), alone or with its device (proc.exe_dev). Whatever
 * it is called and wherever it is mounted. */
#include "rules/push_internal.h"

#include <stdio.h>
#include <stdlib.h>

struct files {
	uint64_t ino[PUSH_INOS_MAX];
	struct str dev[PUSH_DEVS_MAX];
	uint32_t nr[PUSH_DEVS_MAX]; /* of dev, as the kernel has it; 0: none can have this name */
	size_t inos_n, devs_n;
	bool full;
};

static void add_ino(struct files *f, uint64_t ino)
{
	for (size_t i = 0; i < f->inos_n; i++)
		if (f->ino[i] == ino)
			return;
	if (f->inos_n == PUSH_INOS_MAX)
		f->full = true;
	else
		f->ino[f->inos_n++] = ino;
}

static uint32_t dev_nr(struct str s)
{
	unsigned int major, minor;
	char text[24], again[24];

	if (s.n >= sizeof(text))
		return 0;
	memcpy(text, s.p, s.n);
	text[s.n] = 0;
	if (sscanf(text, "%u:%u", &major, &minor) != 2 || major > 0xfff || minor > 0xfffff)
		return 0;
	snprintf(again, sizeof(again), "%u:%u", major, minor);
	return strcmp(text, again) ? 0 : major << 20 | minor;
}

static void add_dev(struct files *f, struct str dev)
{
	for (size_t i = 0; i < f->devs_n; i++)
		if (str_eq(f->dev[i], dev))
			return;
	if (f->devs_n == PUSH_DEVS_MAX) {
		f->full = true;
		return;
	}
	f->nr[f->devs_n] = dev_nr(dev);
	f->dev[f->devs_n++] = dev;
}

static void collect(struct files *f, const struct pred *p)
{
	const struct atom *a = p->atom;

	if (p->type == P_ATOM && push_is_ino(a))
		for (size_t i = 0; i < a->num_n; i++)
			add_ino(f, a->num[i]);
	if (p->type == P_ATOM && push_is_dev(a)) {
		for (size_t i = 0; a->set && i < strset_count(a->set); i++)
			add_dev(f, strset_at(a->set, i));
		if (!a->set)
			add_dev(f, a->s);
	}
	for (size_t i = 0; i < p->n; i++)
		collect(f, p->kid[i]);
}

static int ask(struct push *p, const struct push_rule *r, const struct push_file *file)
{
	struct push_known k = push_known(p, WIRE_EXEC);

	k.file = *file;
	return push_ask(p, r, &k);
}

/* One inode: of any device, else of those that are named. Whether that is all there is to say. */
static bool judge_ino(struct push *p, const struct push_rule *r, const struct files *f,
		      uint64_t ino, struct push_choice *any, struct push_choice *of)
{
	struct push_file file = { .ino_known = true, .ino = ino };
	int v = ask(p, r, &file);
	bool whole;

	if (v == TRI_TRUE)
		push_choose(any, r);
	if (v != TRI_UNKNOWN)
		return true;
	file.dev_other = true;
	whole = ask(p, r, &file) == TRI_FALSE;
	file.dev_other = false;
	file.dev_known = true;
	for (size_t d = 0; d < f->devs_n; d++) {
		if (!f->nr[d])
			continue;
		file.dev = f->dev[d];
		v = ask(p, r, &file);
		if (v == TRI_TRUE)
			push_choose(&of[d], r);
		whole &= v != TRI_UNKNOWN;
	}
	return whole;
}

static int put(struct push *p, const struct push_choice *c, uint32_t dev, uint64_t ino)
{
	const struct enforce_entry e = { .id = c->id,
					 .verdict = c->verdict,
					 .by = ENFORCE_BY_EXE,
					 .kinds = ENFORCE_KIND(WIRE_EXEC),
					 .exe = { .dev = dev, .ino = ino } };

	return c->id ? push_add(p, &e) : 0;
}

static bool takes_part(const struct push *p, const struct push_rule *r)
{
	uint64_t can = r->verdict == ENFORCE_KILL ? p->means->kill : p->means->deny;

	return r->kinds & can & ~r->out->whole & ENFORCE_KIND(WIRE_EXEC);
}

static int judge_all(struct push *p, const struct files *f)
{
	static const struct push_file other = { .ino_other = true };
	auto_free bool *whole = calloc(p->rules_n + 1, sizeof(*whole));
	int rc = 0;

	if (!whole)
		return -ENOMEM;
	for (size_t i = 0; i < p->rules_n; i++)
		whole[i] = takes_part(p, &p->rule[i]) && ask(p, &p->rule[i], &other) == TRI_FALSE;
	for (size_t n = 0; n < f->inos_n; n++) {
		struct push_choice any = { 0 }, of[PUSH_DEVS_MAX] = { { 0 } };

		for (size_t i = 0; i < p->rules_n; i++)
			if (takes_part(p, &p->rule[i]))
				whole[i] &= judge_ino(p, &p->rule[i], f, f->ino[n], &any, of);
		rc = put(p, &any, 0, f->ino[n]);
		for (size_t d = 0; d < f->devs_n && rc == 0; d++)
			rc = put(p, &of[d], f->nr[d], f->ino[n]);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < p->rules_n; i++)
		if (whole[i])
			p->rule[i].out->whole |= ENFORCE_KIND(WIRE_EXEC);
	return 0;
}

int push_files(struct push *p)
{
	struct files f = { .inos_n = 0 };

	for (size_t i = 0; i < p->rules_n; i++)
		if (takes_part(p, &p->rule[i]))
			collect(&f, p->rule[i].r->pred);
	return f.inos_n && !f.full ? judge_all(p, &f) : 0;
}
