// SPDX-License-Identifier: Apache-2.0
/* Which files were written inside the sandbox, so that running one of them can be told from running
 * what the image brought along. Known by (device, inode) and by path: on an overlay the two ends do
 * not always show the same inode. */
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/sandbox.h"
#include "userspace/event/path.h"

#define COMM_LEN 16

struct file {
	struct lru_node node;
	char by[COMM_LEN]; /* task name of who wrote it last */
};

void files_init(struct sandbox *s, size_t max)
{
	lru_init(&s->files, sizeof(struct file), max, NULL, NULL);
}

static struct file *known(struct sandbox *s, const struct lru_key *key)
{
	struct lru_node *node = lru_find(&s->files, key);

	if (node)
		lru_touch(&s->files, node);
	return (struct file *)node;
}

static void remember(struct sandbox *s, const struct lru_key *key, struct str by)
{
	struct file *f = known(s, key);

	if (!f)
		f = (struct file *)lru_add(&s->files, key);
	if (!f)
		return; /* out of memory: one mark less, nothing else breaks */
	memset(f->by, 0, sizeof(f->by));
	if (by.n)
		memcpy(f->by, by.p, MIN(by.n, sizeof(f->by) - 1));
}

static void forget(struct sandbox *s, const struct lru_key *key)
{
	struct lru_node *node = lru_find(&s->files, key);

	if (node)
		lru_remove(&s->files, node);
}

/* "major:minor" and inode. False: the event does not have them. */
static bool inode_key(struct sandbox *s, const struct event *ev, enum field_id dev,
		      enum field_id ino, struct lru_key *ret)
{
	struct {
		char dev[24];
		uint64_t ino;
	} in = { .ino = event_u64(ev, ino) };
	struct str d = event_str(ev, dev);

	if (!in.ino || !d.n || d.n > sizeof(in.dev))
		return false;
	memcpy(in.dev, d.p, d.n);
	*ret = key_of_bytes(s, &in, sizeof(in));
	return true;
}

static bool path_key(struct sandbox *s, struct str path, struct lru_key *ret)
{
	if (!path.n || path.p[0] != '/')
		return false;
	*ret = key_of_bytes(s, path.p, path.n);
	return true;
}

static void written(struct sandbox *s, const struct event *ev)
{
	struct str by = event_str(ev, F_PROC_COMM);
	struct lru_key key;

	if (inode_key(s, ev, F_FILE_DEV, F_FILE_INO, &key))
		remember(s, &key, by);
	if (path_key(s, event_str(ev, F_FILE_PATH), &key))
		remember(s, &key, by);
}

/* A new name for a file that may be one of ours; a rename takes the old name away. */
static void renamed(struct sandbox *s, const struct event *ev)
{
	struct lru_key from, to, inode;
	bool has_from = path_key(s, event_str(ev, F_FILE_OLD_PATH), &from);
	bool has_to = path_key(s, event_str(ev, F_FILE_PATH), &to);
	struct file *f = has_from ? known(s, &from) : NULL;
	char by[COMM_LEN];

	if (!f && inode_key(s, ev, F_FILE_DEV, F_FILE_INO, &inode))
		f = known(s, &inode);
	if (f)
		memcpy(by, f->by, sizeof(by)); /* adding may throw it out */
	if (has_to && f)
		remember(s, &to, str_from(by));
	else if (has_to && ev->kind == WIRE_FILE_RENAME)
		forget(s, &to); /* replaced by a file that was not written here */
	if (has_from && ev->kind == WIRE_FILE_RENAME)
		forget(s, &from);
}

static struct file *was_written(struct sandbox *s, const struct event *ev)
{
	struct str script = event_str(ev, F_PROC_SCRIPT);
	struct file *f = NULL;
	struct lru_key key;

	if (inode_key(s, ev, F_PROC_EXE_DEV, F_PROC_EXE_INO, &key))
		f = known(s, &key);
	if (!f && path_key(s, event_str(ev, F_PROC_EXE), &key))
		f = known(s, &key);
	if (f || !script.n)
		return f;
	if (!path_is_clean(script))
		script = path_join(ev->arena, event_str(ev, F_PROC_CWD), script);
	return path_key(s, script, &key) ? known(s, &key) : NULL;
}

static int mark_dropped(struct sandbox *s, struct event *ev)
{
	struct file *f = was_written(s, ev);
	struct str by;

	if (!f)
		return 0;
	event_set_bool(ev, F_PROC_DROPPED, true);
	if (!f->by[0])
		return 0;
	by = arena_strndup(ev->arena, f->by, strlen(f->by));
	if (!by.p)
		return -ENOMEM;
	event_set_str(ev, F_PROC_DROPPED_BY, by);
	return 0;
}

int files_apply(struct sandbox *s, struct event *ev)
{
	struct lru_key key;

	if (!event_succeeded(ev))
		return 0;
	switch (ev->kind) {
	case WIRE_EXEC:
		return mark_dropped(s, ev);
	case WIRE_FILE_OPEN:
		if (event_u64(ev, F_FILE_WRITE))
			written(s, ev);
		break;
	case WIRE_FILE_WRITE:
		written(s, ev);
		break;
	case WIRE_FILE_RENAME:
	case WIRE_FILE_LINK:
		renamed(s, ev);
		break;
	case WIRE_FILE_DELETE:
		if (path_key(s, event_str(ev, F_FILE_PATH), &key))
			forget(s, &key);
		break;
	default:
		break;
	}
	return 0;
}
