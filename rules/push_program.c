// SPDX-License-Identifier: Apache-2.0
/* Push-down by the program that acts. What it runs is known to the kernel by the path that its exec led to, the same
 * that events have as proc.exe. Paths that all rules answer alike are one class; each class has entries of its own,
 * made with the executable known, so that it can be combined with everything else. An exec is about the program that
 * will run, which is in its own path entries. */
#include "rules/push_internal.h"

#include <stdlib.h>

#define CHECKS_MAX 65536 /* of executables, in all rules */

static size_t count_checks(const struct pred *p)
{
	size_t n = p->type == P_ATOM && push_is_program(p->atom);

	for (size_t i = 0; i < p->n; i++)
		n += count_checks(p->kid[i]);
	return n;
}

bool push_tells_programs(const struct push_rule *r)
{
	return r->kinds & ~ENFORCE_KIND(WIRE_EXEC) && count_checks(r->r->pred);
}

/* What the checks of one condition say of `k`, appended at `said`; returns how many. */
static size_t ask_checks(struct push_known *k, const struct pred *p, uint8_t *said)
{
	size_t n = 0;

	if (p->type == P_ATOM && push_is_program(p->atom))
		said[n++] = (uint8_t)(push_fold(k, p) + 1);
	for (size_t i = 0; i < p->n; i++)
		n += ask_checks(k, p->kid[i], said + n);
	return n;
}

static void ask_all(struct push *p, const struct push_text *t, uint8_t *said)
{
	/* Any act: what a check says of an executable is the same for all. */
	struct push_known k = push_known(p, WIRE_FILE_OPEN);

	k.exe = t;
	for (size_t i = 0; i < p->rules_n; i++)
		if (push_tells_programs(&p->rule[i]))
			said += ask_checks(&k, p->rule[i].r->pred, said);
}

static int class_of(struct push *p, const struct push_text *t, const uint8_t *said, size_t n,
		    uint16_t *ret)
{
	for (size_t i = 1; i <= p->classes_n; i++)
		if (!memcmp(p->class[i].said, said, n)) {
			*ret = (uint16_t)i;
			return 0;
		}
	if (p->classes_n == ENFORCE_CLASSES)
		return -E2BIG;
	p->class[p->classes_n + 1] = (struct push_class){ .t = *t, .said = malloc(n) };
	if (!p->class[p->classes_n + 1].said)
		return -ENOMEM;
	memcpy(p->class[++p->classes_n].said, said, n);
	*ret = (uint16_t)p->classes_n;
	return 0;
}

int push_classes(struct push *p, struct push_ranges *all, uint16_t *ret_class_of)
{
	auto_free uint8_t *said = NULL;
	size_t checks = 0;

	for (size_t i = 0; i < p->rules_n; i++) {
		if (!push_tells_programs(&p->rule[i]))
			continue;
		checks += count_checks(p->rule[i].r->pred);
		push_ranges_collect(&p->plan->arena, all, p->rule[i].r->pred, push_is_program_text);
	}
	if (!checks)
		return 0;
	push_range_add(all, STR(""), false);
	push_ranges_parents(all);
	if (all->full || checks > CHECKS_MAX || checks * all->n > PUSH_FOLDS_MAX)
		return -E2BIG;
	said = malloc(checks);
	if (!said)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++) {
		int r;

		ask_all(p, &all->v[i].t, said);
		r = class_of(p, &all->v[i].t, said, checks, &ret_class_of[i]);
		if (r < 0)
			return r;
	}
	if (p->classes_n == 1) /* no path makes a difference */
		push_classes_done(p);
	return 0;
}

void push_classes_done(struct push *p)
{
	for (size_t i = 1; i <= p->classes_n; i++)
		free(p->class[i].said);
	p->classes_n = 0;
}

int push_names(struct push *p, struct push_ranges *all, const uint16_t *class_of)
{
	for (size_t i = 0; p->classes_n && i < all->n; i++) {
		const struct push_range *r = &all->v[i];
		const char *path;
		struct enforce_entry e;

		if (r->parent != i && class_of[r->parent] == class_of[i])
			continue;
		path = arena_strndup(&p->plan->arena, r->t.text.p, r->t.text.n).p;
		if (!path)
			return -ENOMEM;
		e = (struct enforce_entry){
			.id = 1,
			.by = ENFORCE_BY_NAME,
			.class = class_of[i],
			.path = { .path = path, .exact = r->t.exact, .bytes = true }
		};
		if (push_add(p, &e) < 0)
			return -ENOMEM;
	}
	return 0;
}
