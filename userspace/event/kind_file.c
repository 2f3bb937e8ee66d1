// SPDX-License-Identifier: Apache-2.0
/* file.* and mount: paths joined and cleaned, flags by name. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/names.h"
#include "userspace/event/path.h"

#define FLAGS_MAX 24

enum { OP_CHMOD = 1, OP_CHOWN = 2, OP_SETXATTR = 3, OP_TRUNCATE = 4 };

static const char *const attr_ops[] = {
	[OP_CHMOD] = "chmod",
	[OP_CHOWN] = "chown",
	[OP_SETXATTR] = "setxattr",
	[OP_TRUNCATE] = "truncate",
};
static const char *const link_ops[] = { [1] = "hard", [2] = "symbolic" };

/* The absolute path out of what a record has; *ret_raw is the caller's string where that differs. */
static struct str decode_path(struct decode_ctx *c, struct wire_str base_at,
			      struct wire_str path_at, struct str *ret_raw)
{
	struct str path = decode_string(c, path_at), base, full;

	*ret_raw = (struct str){ 0 };
	if (c->ev->hdr.flags & WIRE_F_PSEUDO || path_is_clean(path))
		return path;
	base = decode_bytes(c, base_at);
	base.n = base.p ? strnlen(base.p, base.n) : 0;
	if (!path.p && !base.n)
		return path;
	if (!base.n && path.p[0] != '/')
		decode_degrade(c, "path_base"); /* relative to nobody knows what */
	full = path_join(c->ev->arena, base, path);
	c->no_memory |= !full.p;
	if (path.p && !str_eq(full, path))
		*ret_raw = path;
	return full;
}

static void set_path(struct decode_ctx *c, struct wire_str base, struct wire_str path)
{
	struct str raw, full = decode_path(c, base, path, &raw);
	struct str name = path_name(full);

	event_set_str(c->ev, F_FILE_PATH, full);
	if (name.n)
		event_set_str(c->ev, F_FILE_NAME, name);
	event_set_str(c->ev, F_FILE_RAW_PATH, raw);
}

static void set_old_path(struct decode_ctx *c, struct wire_str base, struct wire_str path)
{
	struct str raw, full = decode_path(c, base, path, &raw);

	event_set_str(c->ev, F_FILE_OLD_PATH, full);
	if (!event_has(c->ev, F_FILE_RAW_PATH))
		event_set_str(c->ev, F_FILE_RAW_PATH, raw);
}

const char *file_type_name(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "regular";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFCHR:
		return "char";
	case S_IFBLK:
		return "block";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	}
	return NULL;
}

static void set_open_flags(struct decode_ctx *c, uint32_t flags)
{
	static const char *const modes[] = { "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE" };
	uint32_t access = flags & O_ACCMODE;
	struct str *v = arena_alloc(c->ev->arena, FLAGS_MAX * sizeof(*v));

	if (!v) {
		c->no_memory = true;
		return;
	}
	v[0] = str_from(modes[access]);
	event_set_list(c->ev, F_FILE_FLAGS, v,
		       1 + flags_list(open_flag_names, flags, v + 1, FLAGS_MAX - 1));
	event_set_bool(c->ev, F_FILE_WRITE, access != O_RDONLY && !(flags & O_PATH));
	event_set_bool(c->ev, F_FILE_CREATED, flags & O_CREAT);
}

/* By number; who knows the list puts its text there (enrich/places.c). */
static void set_watched(struct decode_ctx *c, uint32_t id)
{
	char text[16];
	struct str copy;

	if (!id)
		return;
	snprintf(text, sizeof(text), "#%u", id);
	copy = arena_strndup(c->ev->arena, text, strlen(text));
	c->no_memory |= !copy.p;
	event_set_str(c->ev, F_FILE_WATCHED, copy);
}

static void set_attr(struct decode_ctx *c, const struct wire_file *w)
{
	if (w->op < ARRAY_SIZE(attr_ops) && attr_ops[w->op])
		event_set_strz(c->ev, F_FILE_OP, attr_ops[w->op]);
	if (w->op == OP_CHMOD)
		event_set_u64(c->ev, F_FILE_MODE, w->mode & 07777);
	if (w->op == OP_CHOWN) { /* -1 leaves it as it is */
		if (w->uid != UINT32_MAX)
			event_set_u64(c->ev, F_FILE_UID, w->uid);
		if (w->gid != UINT32_MAX)
			event_set_u64(c->ev, F_FILE_GID, w->gid);
	}
	if (w->op == OP_SETXATTR)
		decode_set_string(c, F_FILE_XATTR, w->path2);
	if (w->op == OP_TRUNCATE)
		event_set_u64(c->ev, F_FILE_BYTES, w->size);
}

static const char *const write_ops[] = {
	[WIRE_WRITE_FIRST] = "first",
	[WIRE_WRITE_TOTAL] = "total",
};

static void set_write(struct decode_ctx *c, const struct wire_file *w)
{
	event_set_bool(c->ev, F_FILE_WRITE, true);
	event_set_u64(c->ev, F_FILE_BYTES, w->size);
	if (w->count)
		event_set_u64(c->ev, F_FILE_WRITES, w->count);
	event_set_i64(c->ev, F_FILE_FD, w->fd);
	if (w->op < ARRAY_SIZE(write_ops) && write_ops[w->op])
		event_set_strz(c->ev, F_FILE_OP, write_ops[w->op]);
	if (w->first_ts)
		event_set_u64(c->ev, F_FILE_FIRST_WRITE, w->first_ts);
}

static void set_mmap(struct decode_ctx *c, const struct wire_file *w)
{
	static const char *const prots[] = { "read", "write", "exec" };
	struct str *v = arena_alloc(c->ev->arena, ARRAY_SIZE(prots) * sizeof(*v));
	size_t n = 0;

	if (!v) {
		c->no_memory = true;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(prots); i++)
		if (w->op >> i & 1)
			v[n++] = str_from(prots[i]);
	event_set_list(c->ev, F_FILE_PROT, v, n);
	event_set_bool(c->ev, F_FILE_WRITE, true);
	event_set_u64(c->ev, F_FILE_BYTES, w->size);
	event_set_i64(c->ev, F_FILE_FD, w->fd);
}

/* The device is in the form that the system call takes: 12 bits of major, 20 of minor, interleaved. */
static void set_mknod(struct decode_ctx *c, const struct wire_file *w)
{
	uint32_t dev = (uint32_t)w->size, type = w->mode & S_IFMT;

	if (type == S_IFBLK || type == S_IFCHR)
		decode_set_dev(c, F_FILE_RDEV,
			       (dev & 0xfff00) << 12 | (dev & 0xff) | (dev >> 12 & 0xfff00));
	if (!type) /* mknod's default */
		event_set_strz(c->ev, F_FILE_TYPE, "regular");
}

static void set_common(struct decode_ctx *c, const struct wire_file *w)
{
	const char *type = file_type_name(w->mode);
	struct event *ev = c->ev;

	if (w->mode)
		event_set_u64(ev, F_FILE_MODE, w->mode & 07777);
	if (type)
		event_set_strz(ev, F_FILE_TYPE, type);
	if (w->ino) {
		event_set_u64(ev, F_FILE_INO, w->ino);
		decode_set_dev(c, F_FILE_DEV, w->dev);
	}
	if (w->id)
		event_set_u64(ev, F_FILE_OPEN_ID, w->id);
	if (ev->hdr.flags & WIRE_F_TRUNC)
		event_set_bool(ev, F_FILE_PATH_TRUNCATED, true);
	if (ev->hdr.flags & WIRE_F_DELETED)
		event_set_bool(ev, F_FILE_DELETED, true);
	if (ev->hdr.flags & WIRE_F_UNREACH)
		event_set_bool(ev, F_FILE_UNREACHABLE, true);
}

/* One object: open, write, delete, attr, mkdir. */
void decode_file_object(struct decode_ctx *c)
{
	const struct wire_file w = DECODE_FIXED(c, wire_file);
	struct event *ev = c->ev;

	set_path(c, w.base, w.path);
	set_common(c, &w);
	switch (ev->kind) {
	case WIRE_FILE_OPEN:
		set_open_flags(c, w.open_flags);
		set_watched(c, w.op);
		if (ev->hdr.ret >= 0)
			event_set_i64(ev, F_FILE_FD, w.fd);
		break;
	case WIRE_FILE_WRITE:
		set_write(c, &w);
		break;
	case WIRE_FILE_MMAP:
		set_mmap(c, &w);
		break;
	case WIRE_FILE_MKNOD:
		set_mknod(c, &w);
		break;
	case WIRE_FILE_ATTR:
		set_attr(c, &w);
		break;
	default:
		break;
	}
}

/* The record's second path is the new name; the event's path is what is there afterwards. */
void decode_file_rename(struct decode_ctx *c)
{
	const struct wire_file w = DECODE_FIXED(c, wire_file);

	set_path(c, w.base2, w.path2);
	set_old_path(c, w.base, w.path);
	set_common(c, &w);
}

/* The event's path is the new name; the second one is what it leads to. */
void decode_file_link(struct decode_ctx *c)
{
	const struct wire_file w = DECODE_FIXED(c, wire_file);
	struct event *ev = c->ev;

	set_path(c, w.base, w.path);
	if (w.op != 2)
		set_old_path(c, w.base2, w.path2);
	else /* the text of a symlink is no path to clean */
		decode_set_string(c, F_FILE_OLD_PATH, w.path2);
	if (w.op < ARRAY_SIZE(link_ops) && link_ops[w.op])
		event_set_strz(ev, F_FILE_OP, link_ops[w.op]);
	set_common(c, &w);
}

/* The event's path is the mount point, the other one what was mounted there ("tmpfs" is no path to
 * clean). */
void decode_mount(struct decode_ctx *c)
{
	static const char *const ops[] = {
		[WIRE_MOUNT_NEW] = "mount",    [WIRE_MOUNT_REMOVE] = "umount",
		[WIRE_MOUNT_MOVE] = "move",    [WIRE_MOUNT_PIVOT] = "pivot_root",
		[WIRE_MOUNT_ATTR] = "setattr",
	};
	const struct wire_mount w = DECODE_FIXED(c, wire_mount);
	struct event *ev = c->ev;

	set_path(c, w.base, w.path);
	decode_set_string(c, F_FILE_OLD_PATH, w.source);
	decode_set_string(c, F_MOUNT_TYPE, w.fstype);
	if (w.op < ARRAY_SIZE(ops) && ops[w.op])
		event_set_strz(ev, F_MOUNT_OP, ops[w.op]);
	if (w.op == WIRE_MOUNT_NEW)
		event_set_str(ev, F_MOUNT_FLAGS, flags_text(ev->arena, mount_flag_names, w.flags));
}
