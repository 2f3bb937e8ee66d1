// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/workspace/snapshot.h"

/* The kernel's clock for times of files is behind by up to a tick. */
#define TICK_NS	     (20 * NSEC_PER_MSEC)
#define TARGET_MAX   4095
#define RECORD_WORDS 1024

struct compare {
	struct tree t;
	struct snapshot before;
	struct buf out, record;
	int fd;
	uint64_t told;
	struct wire_scan scan;
};

static struct wire_str tail(struct buf *b, struct str s)
{
	struct wire_str w = { (uint16_t)b->n, (uint16_t)s.n };

	if (!s.n || buf_add(b, s.p, s.n) < 0)
		return (struct wire_str){ 0, 0 };
	return w;
}

static struct wire_hdr header(enum wire_kind kind)
{
	return (struct wire_hdr){ .kind = (uint16_t)kind,
				  .ts = clock_boot_ns(),
				  .nr = WIRE_NR_NONE,
				  .ring = WIRE_RING_NONE,
				  .vantage = WIRE_V_RUNTIME };
}

static int put_record(struct compare *c, void *fixed, size_t n)
{
	struct wire_hdr *h = fixed;

	while (c->record.n % 8)
		buf_addc(&c->record, 0);
	if (c->record.failed)
		return -ENOMEM;
	h->len = (uint32_t)c->record.n;
	memcpy(c->record.p, fixed, n);
	return workspace_item_add(&c->out, c->fd, WORKSPACE_RECORD, c->record.p, c->record.n);
}

static struct wire_str put_path(struct compare *c, const struct entry *e)
{
	struct str inside = str_from(c->t.places[e->place].inside);
	struct wire_str w = { (uint16_t)c->record.n, 0 };

	if (inside.n == 1 && e->path.n) /* "/" */
		inside.n = 0;
	buf_add(&c->record, inside.p, inside.n);
	if (e->path.n) {
		buf_addc(&c->record, '/');
		buf_add(&c->record, e->path.p, e->path.n);
	}
	w.len = (uint16_t)(c->record.n - w.off);
	return w;
}

static int put_text(struct compare *c, enum workspace_item_type type, struct str s)
{
	return s.p ? workspace_item_add(&c->out, c->fd, type, s.p, s.n) : 0;
}

/* `e`, `b`: now and before; one may be NULL. */
static int tell(struct compare *c, enum wire_change_op op, const struct entry *e,
		const struct entry *b, struct str text, const char *unhashed)
{
	struct wire_change w = { .h = header(WIRE_WORKSPACE_CHANGE), .op = op };
	int r;

	c->scan.created += op == WIRE_CHANGE_CREATED;
	c->scan.changed += op == WIRE_CHANGE_CHANGED;
	c->scan.deleted += op == WIRE_CHANGE_DELETED;
	c->scan.unhashed += unhashed != NULL;
	if (c->told++ >= c->t.limits->changes) {
		tree_skip(&c->t, 1, "changes");
		return 0;
	}
	r = put_text(c, WORKSPACE_TEXT_BEFORE, b ? b->text : (struct str){ 0 });
	if (r == 0)
		r = put_text(c, WORKSPACE_TEXT, text);
	if (r < 0)
		return r;
	if (e) {
		w.size = e->size;
		w.mode = e->mode;
		w.has |= e->has_hash ? WIRE_CHANGE_SHA256 : 0;
		memcpy(w.sha256, e->hash, sizeof(w.sha256));
	}
	if (b) {
		w.size_before = b->size;
		w.mode_before = b->mode;
		w.has |= b->has_hash ? WIRE_CHANGE_SHA256_BEFORE : 0;
		memcpy(w.sha256_before, b->hash, sizeof(w.sha256_before));
	}
	buf_reset(&c->record);
	buf_add(&c->record, &w, sizeof(w));
	w.path = put_path(c, e ? e : b);
	w.target = tail(&c->record, e ? e->target : (struct str){ 0 });
	w.unhashed = tail(&c->record, str_from(unhashed));
	return put_record(c, &w, sizeof(w));
}

static int created(struct compare *c, struct entry *e)
{
	enum wire_change_op op = WIRE_CHANGE_CREATED;
	struct str text = { 0 };
	const char *why = NULL;

	/* It may have been there, and only not been seen. */
	if (!c->before.complete && c->before.real_ns) {
		int64_t start = (int64_t)(c->before.real_ns - TICK_NS);
		uint64_t birth;

		if (e->ctime < start)
			return 0;
		birth = tree_birth(&c->t, e);
		if (birth && (int64_t)birth < start)
			op = WIRE_CHANGE_CHANGED;
	}
	if (S_ISREG(e->mode))
		why = tree_hash(&c->t, e, &text);
	return tell(c, op, e, NULL, text, why);
}

static int deleted(struct compare *c, const struct entry *b)
{
	/* Perhaps the walk did not come as far. */
	if (c->t.why_n && !tree_is_gone(&c->t, b))
		return 0;
	return tell(c, WIRE_CHANGE_DELETED, NULL, b, (struct str){ 0 }, NULL);
}

static bool looks_same(const struct entry *e, const struct entry *b)
{
	if (e->mode != b->mode)
		return false;
	if (S_ISLNK(e->mode))
		return str_eq(e->target, b->target);
	if (!S_ISREG(e->mode))
		return true;
	return e->size == b->size && e->ino == b->ino && e->mtime == b->mtime &&
	       e->ctime == b->ctime;
}

static int both(struct compare *c, struct entry *e, const struct entry *b)
{
	struct str text = { 0 };
	const char *why = NULL;
	int r;

	if (looks_same(e, b))
		return 0;
	if ((e->mode ^ b->mode) & S_IFMT) {
		r = tell(c, WIRE_CHANGE_DELETED, NULL, b, (struct str){ 0 }, NULL);
		return r < 0 ? r : created(c, e);
	}
	if (S_ISREG(e->mode)) {
		why = tree_hash(&c->t, e, &text);
		if (e->has_hash && b->has_hash && e->mode == b->mode &&
		    !memcmp(e->hash, b->hash, HASH_LEN))
			return 0; /* touched, or written and written back */
	}
	return tell(c, WIRE_CHANGE_CHANGED, e, b, text, why);
}

static int merge(struct compare *c)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (r == 0 && (i < c->t.n || k < c->before.n)) {
		int order = i == c->t.n	       ? 1
			    : k == c->before.n ? -1
					       : entry_compare(c->t.v[i], &c->before.v[k]);

		if (order < 0)
			r = created(c, c->t.v[i++]);
		else if (order > 0)
			r = deleted(c, &c->before.v[k++]);
		else
			r = both(c, c->t.v[i++], &c->before.v[k++]);
	}
	return r;
}

static struct wire_str tail_words(struct buf *b, const char *const *v, size_t n, size_t max)
{
	struct wire_str w = { (uint16_t)b->n, 0 };

	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(v[i]) + 1;

		if (k > max)
			break;
		max -= k;
		buf_add(b, v[i], k);
	}
	w.len = (uint16_t)(b->n - w.off);
	return w.len ? w : (struct wire_str){ 0, 0 };
}

static int tell_scan(struct compare *c, uint64_t began)
{
	const char *inside[WORKSPACE_PLACES_MAX];
	struct wire_scan *w = &c->scan;

	for (size_t i = 0; i < c->t.places_n; i++)
		inside[i] = c->t.places[i].inside;
	if (!c->before.complete && c->before.real_ns)
		tree_skip(&c->t, 0, "start");
	w->h = header(WIRE_WORKSPACE_SCAN);
	w->files = c->t.looked;
	w->bytes = c->t.hashed;
	w->skipped = c->t.skipped;
	w->duration_ns = clock_ns(CLOCK_MONOTONIC) - began;
	buf_reset(&c->record);
	buf_add(&c->record, w, sizeof(*w));
	w->places = tail_words(&c->record, inside, c->t.places_n, 16u << 10);
	w->why = tail_words(&c->record, c->t.why, c->t.why_n, RECORD_WORDS);
	return put_record(c, w, sizeof(*w));
}

int workspace_compare(const struct workspace_place *places, size_t n,
		      const struct workspace_limits *limits, int before_fd,
		      enum wire_scan_when when, int out_fd)
{
	struct compare *c = calloc(1, sizeof(*c));
	uint64_t began = clock_ns(CLOCK_MONOTONIC);
	int r;

	if (!c)
		return -ENOMEM;
	c->fd = out_fd;
	c->scan.when = when;
	buf_init(&c->out, 0);
	buf_init(&c->record, WORKSPACE_ITEM_MAX);
	r = tree_init(&c->t, places, n, limits);
	if (r == 0 && before_fd >= 0)
		r = snapshot_read(&c->before, before_fd, n);
	if (r == 0)
		r = tree_walk(&c->t);
	if (r == 0)
		r = merge(c);
	if (r == 0)
		r = tell_scan(c, began);
	if (r == 0)
		r = workspace_items_flush(&c->out, out_fd);
	tree_done(&c->t);
	snapshot_done(&c->before);
	buf_done(&c->out);
	buf_done(&c->record);
	free(c);
	return r;
}
