// SPDX-License-Identifier: Apache-2.0
/* The process table of a sandbox: (pid, start) -> image and ancestors, learned from exec and fork.
 * A child starts with its parent's image and remembers the chain it was born into: who ran what is
 * still known after the parents are gone. */
#include <errno.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/image.h"
#include "userspace/enrich/sandbox.h"

struct ancestor {
	uint64_t start;
	uint32_t pid;
	char comm[16];
	struct image *image; /* reference; NULL = unknown */
};

struct process {
	struct lru_node node; /* a = start, b = pid */
	struct image *image;
	struct image *old_image; /* before the last exec: events can come a little late */
	uint64_t image_since;	 /* mono */
	uint64_t version;	 /* of image and ancestors, unlike any other's; 0: not looked at */
	bool exited;
	uint8_t ancestors_n;
	struct ancestor ancestors[WIRE_ANCESTORS]; /* parent first */
};

static void image_drop(struct sandbox *s, struct image *image)
{
	s->image_bytes -= image_unref(image);
}

static void ancestors_drop(struct sandbox *s, struct process *p)
{
	for (size_t i = 0; i < p->ancestors_n; i++)
		image_drop(s, p->ancestors[i].image);
	p->ancestors_n = 0;
}

static void drop_process(void *ctx, struct lru_node *node)
{
	struct process *p = (struct process *)node;
	struct sandbox *s = ctx;

	image_drop(s, p->image);
	image_drop(s, p->old_image);
	ancestors_drop(s, p);
}

void processes_init(struct sandbox *s, size_t max)
{
	lru_init(&s->processes, sizeof(struct process), max, drop_process, s);
}

static struct process *process_find(struct sandbox *s, uint64_t pid, uint64_t start)
{
	struct lru_key key = key_of_ids(s, start, pid);

	return (struct process *)lru_find(&s->processes, &key);
}

static struct process *process_get(struct sandbox *s, uint64_t pid, uint64_t start)
{
	struct lru_key key = key_of_ids(s, start, pid);
	struct lru_node *node = lru_find(&s->processes, &key);

	return (struct process *)(node ? node : lru_add(&s->processes, &key));
}

static void copy_comm(char out[16], struct str comm)
{
	size_t n = MIN(comm.n, (size_t)15);

	memset(out, 0, 16);
	if (n)
		memcpy(out, comm.p, n);
}

static struct image *image_at(const struct process *p, const struct event *ev)
{
	return p->old_image && event_u64(ev, F_MONO) < p->image_since ? p->old_image : p->image;
}

static uint64_t last_version;

/* What was made of it is not true any more. */
static void changed(struct process *p)
{
	p->version = 0;
}

static uint64_t version_of(struct process *p)
{
	if (!p->version)
		p->version = __atomic_add_fetch(&last_version, 1, __ATOMIC_RELAXED);
	return p->version;
}

/* ---- filling slots ---- */

static int set_copy(struct event *ev, enum field_id f, struct str s)
{
	if (!s.p || event_has(ev, f))
		return 0;
	s = arena_strndup(ev->arena, s.p, s.n);
	if (!s.p)
		return -ENOMEM;
	event_set_str(ev, f, s);
	return 0;
}

static int set_args(struct event *ev, enum field_id f, const struct image *image)
{
	const struct str *v;
	size_t n;

	if (event_has(ev, f) || !image->has_args)
		return 0;
	if (image_args(image, ev->arena, &v, &n) < 0)
		return -ENOMEM;
	event_set_list(ev, f, v, n);
	return 0;
}

static int fill_image(struct event *ev, const struct image *image)
{
	if (!image || (ev->kind == WIRE_EXEC && event_succeeded(ev)))
		return 0;
	if (image->args_cut && !event_has(ev, F_PROC_ARGS))
		event_set_bool(ev, F_PROC_ARGS_TRUNCATED, true);
	if (set_copy(ev, F_PROC_EXE, image->exe) < 0 || set_copy(ev, F_PROC_CWD, image->cwd) < 0 ||
	    set_args(ev, F_PROC_ARGS, image) < 0)
		return -ENOMEM;
	return 0;
}

/* The list and all its strings in one piece of the arena. */
static int fill_ancestors(struct event *ev, const struct process *p)
{
	struct event_ancestor *v;
	size_t bytes = 0;
	char *at;

	for (size_t i = 0; i < p->ancestors_n; i++)
		bytes += 16 + (p->ancestors[i].image ? p->ancestors[i].image->exe.n : 0);
	v = arena_alloc(ev->arena, p->ancestors_n * sizeof(*v) + bytes);
	if (!v)
		return -ENOMEM;
	at = (char *)(v + p->ancestors_n);
	for (size_t i = 0; i < p->ancestors_n; i++) {
		const struct ancestor *a = &p->ancestors[i];
		size_t k = strnlen(a->comm, sizeof(a->comm));

		v[i] = (struct event_ancestor){ .pid = a->pid, .start = a->start };
		if (k) {
			memcpy(at, a->comm, 16);
			v[i].comm = (struct str){ at, k };
			at += 16;
		}
		if (a->image && a->image->exe.p) {
			memcpy(at, a->image->exe.p, a->image->exe.n);
			v[i].exe = (struct str){ at, a->image->exe.n };
			at += a->image->exe.n;
		}
	}
	ev->v[F_PROC_ANCESTORS].ancestors.v = v;
	ev->v[F_PROC_ANCESTORS].ancestors.n = p->ancestors_n;
	event_mark(ev, F_PROC_ANCESTORS);
	if (!event_has(ev, F_PROC_PEXE))
		event_set_str(ev, F_PROC_PEXE, v[0].exe);
	if (!event_has(ev, F_PROC_PCOMM))
		event_set_str(ev, F_PROC_PCOMM, v[0].comm);
	return 0;
}

static int fill(struct event *ev, const struct process *p)
{
	const struct kind_def *kind = event_kind_by_id((uint16_t)ev->kind);
	int r = fill_image(ev, image_at(p, ev));

	if (r < 0 || p->ancestors_n == 0)
		return r;
	r = fill_ancestors(ev, p);
	if (r < 0)
		return r;
	if (kind && kind->family & FAM_PROC && p->ancestors[0].image)
		return set_args(ev, F_PROC_PARGS, p->ancestors[0].image);
	return 0;
}

/* Fields that tell who acts: from proc.pid to proc.ancestors, all of "proc". */
#define WHO_SPAN ((2ull << F_PROC_ANCESTORS) - (1ull << F_PROC_PID))
_Static_assert(F_PROC_ANCESTORS < 64, "WHO_SPAN is of one word"); /* 2 << 63 is 0: up to its end */

static bool is_same_task(const struct who *w, const struct event *ev)
{
	for (unsigned i = 0; i < w->part.n; i++) {
		enum field_id f = w->part.field[i];

		if (!(w->given >> f & 1))
			continue;
		if (event_fields[f].type == FT_STR ? !str_eq(ev->v[f].s, w->part.v[i].s)
						   : ev->v[f].u != w->part.v[i].u)
			return false;
	}
	return true;
}

/* As fill(), but with what was made for an event of the same task before, where there is that. It is made for the
 * second event only: most processes have few. Not for kinds that are about processes, each of which differs. */
static int fill_as_before(struct sandbox *s, struct event *ev, struct process *p)
{
	const struct kind_def *kind = event_kind_by_id((uint16_t)ev->kind);
	struct who *w = &s->who[(ev->hdr.tid ^ ev->hdr.tid >> 5) % WHO_KEPT];
	const struct image *image = image_at(p, ev);
	uint64_t given = ev->present[0] & WHO_SPAN;
	bool seen;
	int r;

	if (!kind || kind->family & FAM_PROC)
		return fill(ev, p);
	seen = w->version == version_of(p) && w->image == image && w->given == given;
	if (seen && w->part.serial && is_same_task(w, ev)) {
		event_part_give(&w->part, ev);
		ev->part[EVENT_PART_WHO] = &w->part;
		return 0;
	}
	r = fill(ev, p);
	if (r < 0)
		return r;
	if (!seen)
		event_part_done(&w->part);
	if (!seen || !w->hopeless)
		w->hopeless = seen && event_part_make(&w->part, ev, WHO_SPAN) < 0;
	w->version = version_of(p);
	w->image = image;
	w->given = given;
	return 0;
}

/* ---- learning ---- */

/* The image of an ancestor named by an exec record: what it runs now, else what it ran when the
 * process was born. Returns a reference. */
static struct image *ancestor_image(struct sandbox *s, const struct process *p, uint64_t pid,
				    uint64_t start)
{
	struct process *found = process_find(s, pid, start);

	if (found && found->image)
		return image_ref(found->image);
	for (size_t i = 0; i < p->ancestors_n; i++)
		if (p->ancestors[i].pid == pid && p->ancestors[i].start == start)
			return image_ref(p->ancestors[i].image);
	return NULL;
}

static void learn_ancestors(struct sandbox *s, struct process *p, const struct event *ev)
{
	const struct event_ancestor *v = ev->v[F_PROC_ANCESTORS].ancestors.v;
	size_t n = MIN(ev->v[F_PROC_ANCESTORS].ancestors.n, (size_t)WIRE_ANCESTORS);
	struct ancestor fresh[WIRE_ANCESTORS];

	for (size_t i = 0; i < n; i++) {
		fresh[i] = (struct ancestor){ .pid = (uint32_t)v[i].pid, .start = v[i].start };
		copy_comm(fresh[i].comm, v[i].comm);
		fresh[i].image = ancestor_image(s, p, v[i].pid, v[i].start);
	}
	ancestors_drop(s, p);
	changed(p);
	memcpy(p->ancestors, fresh, n * sizeof(fresh[0]));
	p->ancestors_n = (uint8_t)n;
}

static int learn_exec(struct sandbox *s, const struct event *ev)
{
	struct image *image = image_new(ev);
	struct process *p;

	if (!image)
		return -ENOMEM;
	s->image_bytes += image->size;
	while (s->image_bytes > IMAGE_BYTES_MAX && s->processes.n)
		lru_evict(&s->processes);
	p = process_get(s, ev->v[F_PROC_PID].u, event_u64(ev, F_PROC_START));
	if (!p) {
		image_drop(s, image);
		return -ENOMEM;
	}
	image_drop(s, p->old_image);
	changed(p);
	p->old_image = p->image;
	p->image = image;
	p->image_since = event_u64(ev, F_MONO);
	if (event_has(ev, F_PROC_ANCESTORS))
		learn_ancestors(s, p, ev);
	return 0;
}

static int learn_fork(struct sandbox *s, const struct event *ev)
{
	uint64_t pid = ev->v[F_PROC_PID].u, start = event_u64(ev, F_PROC_START);
	struct process *child, *parent;

	child = process_get(s, event_u64(ev, F_CHILD_PID), event_u64(ev, F_CHILD_START));
	if (!child)
		return -ENOMEM;
	if (child->image || child->ancestors_n) /* its exec came first */
		return 0;
	changed(child);
	parent = process_find(s, pid, start); /* after the add, which may have evicted it */
	child->ancestors[0] = (struct ancestor){ .pid = (uint32_t)pid, .start = start };
	copy_comm(child->ancestors[0].comm, event_str(ev, F_PROC_COMM));
	child->ancestors_n = 1;
	if (!parent || parent == child)
		return 0;
	child->image = image_ref(image_at(parent, ev));
	child->ancestors[0].image = image_ref(child->image);
	if (event_u64(ev, F_PROC_NSPID) == 1) /* the list ends at the sandbox's pid 1 */
		return 0;
	for (size_t i = 0; i < parent->ancestors_n && child->ancestors_n < WIRE_ANCESTORS; i++) {
		child->ancestors[child->ancestors_n] = parent->ancestors[i];
		image_ref(parent->ancestors[i].image);
		child->ancestors_n++;
	}
	return 0;
}

/* Not forgotten at once: records of the other ring may still be on their way. */
static void learn_exit(struct sandbox *s, struct process *p)
{
	struct exited *slot = &s->exited[s->exited_at];
	struct process *old;

	if (p->exited)
		return;
	p->exited = true;
	s->exited_at = (s->exited_at + 1) % EXITED_KEPT;
	old = slot->start ? process_find(s, slot->pid, slot->start) : NULL;
	*slot = (struct exited){ p->node.key.a, p->node.key.b };
	if (old && old != p)
		lru_remove(&s->processes, &old->node);
}

int processes_apply(struct sandbox *s, struct event *ev)
{
	struct process *p;
	int r = 0;

	if (!event_has(ev, F_PROC_PID))
		return 0;
	if (ev->kind == WIRE_EXEC && event_succeeded(ev)) {
		r = learn_exec(s, ev);
		if (r < 0)
			return r;
	}
	p = process_find(s, ev->v[F_PROC_PID].u, event_u64(ev, F_PROC_START));
	if (p) {
		lru_touch(&s->processes, &p->node);
		r = fill_as_before(s, ev, p);
		if (r < 0)
			return r;
	}
	if (ev->kind == WIRE_FORK)
		return learn_fork(s, ev);
	if (ev->kind == WIRE_EXIT && p)
		learn_exit(s, p);
	return 0;
}
