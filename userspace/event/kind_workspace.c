// SPDX-License-Identifier: Apache-2.0
/* session.snapshot and .restore, and workspace.*: what a comparison of the writable places found, by the launcher's helper, which has read a
 * hostile tree: its records are taken like any other. */
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/event/decode_ctx.h"
#include "userspace/event/path.h"

static void set_hash(struct decode_ctx *c, enum field_id f, const uint8_t hash[32])
{
	static const char digits[] = "0123456789abcdef";
	char *d = arena_alloc(c->ev->arena, 64);

	c->no_memory |= !d;
	for (size_t i = 0; d && i < 32; i++) {
		d[2 * i] = digits[hash[i] >> 4];
		d[2 * i + 1] = digits[hash[i] & 15];
	}
	event_set_str(c->ev, f, (struct str){ d, 64 });
}

static void set_now(struct decode_ctx *c, const struct wire_change *w)
{
	struct event *ev = c->ev;

	event_set_u64(ev, F_FILE_MODE, w->mode & 07777);
	if (S_ISREG(w->mode)) {
		event_set_u64(ev, F_FILE_SIZE, w->size);
		event_set_bool(ev, F_FILE_EXECUTABLE, w->mode & 0111);
	}
}

static void set_before(struct decode_ctx *c, const struct wire_change *w)
{
	struct event *ev = c->ev;

	event_set_u64(ev, F_FILE_MODE_BEFORE, w->mode_before & 07777);
	if (S_ISREG(w->mode_before)) {
		event_set_u64(ev, F_FILE_SIZE_BEFORE, w->size_before);
		event_set_bool(ev, F_FILE_EXECUTABLE_BEFORE, w->mode_before & 0111);
	}
}

void decode_workspace_change(struct decode_ctx *c)
{
	static const char *const ops[] = {
		[WIRE_CHANGE_CREATED] = "created",
		[WIRE_CHANGE_CHANGED] = "changed",
		[WIRE_CHANGE_DELETED] = "deleted",
	};
	static const struct {
		uint32_t bit;
		enum field_id field;
		size_t offset;
	} hashes[] = {
		{ WIRE_CHANGE_SHA256, F_FILE_SHA256, offsetof(struct wire_change, sha256) },
		{ WIRE_CHANGE_SHA256_BEFORE, F_FILE_SHA256_BEFORE,
		  offsetof(struct wire_change, sha256_before) },
		{ WIRE_CHANGE_TEXT, F_FILE_TEXT, offsetof(struct wire_change, text) },
		{ WIRE_CHANGE_TEXT_BEFORE, F_FILE_TEXT_BEFORE,
		  offsetof(struct wire_change, text_before) },
	};
	const struct wire_change w = DECODE_FIXED(c, wire_change);
	const char *type = file_type_name(w.mode ? w.mode : w.mode_before);
	struct event *ev = c->ev;
	struct str path = decode_string(c, w.path), name = path_name(path);

	event_set_str(ev, F_FILE_PATH, path);
	if (name.n)
		event_set_str(ev, F_FILE_NAME, name);
	if (type)
		event_set_strz(ev, F_FILE_TYPE, type);
	if (w.op < ARRAY_SIZE(ops) && ops[w.op])
		event_set_strz(ev, F_FILE_CHANGE, ops[w.op]);
	if (w.mode)
		set_now(c, &w);
	if (w.mode_before)
		set_before(c, &w);
	for (size_t i = 0; i < ARRAY_SIZE(hashes); i++)
		if (w.has & hashes[i].bit)
			set_hash(c, hashes[i].field, (const uint8_t *)&w + hashes[i].offset);
	decode_set_string(c, F_FILE_TARGET, w.target);
	decode_set_string(c, F_FILE_UNHASHED, w.unhashed);
}

void decode_workspace_scan(struct decode_ctx *c)
{
	const struct wire_scan w = DECODE_FIXED(c, wire_scan);
	struct event *ev = c->ev;

	if (w.when == WIRE_SCAN_STOP || w.when == WIRE_SCAN_DEMAND)
		event_set_strz(ev, F_WORKSPACE_WHEN, w.when == WIRE_SCAN_STOP ? "stop" : "demand");
	decode_set_words(c, F_WORKSPACE_PLACES, decode_bytes(c, w.places));
	event_set_u64(ev, F_WORKSPACE_FILES, w.files);
	event_set_u64(ev, F_WORKSPACE_BYTES, w.bytes);
	event_set_u64(ev, F_WORKSPACE_CREATED, w.created);
	event_set_u64(ev, F_WORKSPACE_CHANGED, w.changed);
	event_set_u64(ev, F_WORKSPACE_DELETED, w.deleted);
	event_set_u64(ev, F_WORKSPACE_SKIPPED, w.skipped);
	event_set_u64(ev, F_WORKSPACE_UNHASHED, w.unhashed);
	event_set_u64(ev, F_WORKSPACE_NS, w.duration_ns);
	decode_set_words(c, F_WORKSPACE_WHY, decode_bytes(c, w.why));
}

void decode_snapshot(struct decode_ctx *c)
{
	const struct wire_snapshot w = DECODE_FIXED(c, wire_snapshot);
	struct event *ev = c->ev;

	decode_set_string(c, F_SNAPSHOT_NAME, w.name);
	decode_set_string(c, F_SNAPSHOT_SESSION, w.session);
	decode_set_string(c, F_SNAPSHOT_WHO, w.who);
	if (w.h.ret < 0)
		return; /* there is none */
	set_hash(c, F_SNAPSHOT_SHA256, w.sha256);
	event_set_u64(ev, F_SNAPSHOT_FILES, w.files);
	event_set_u64(ev, F_SNAPSHOT_BYTES, w.bytes);
	event_set_u64(ev, F_SNAPSHOT_STORED, w.stored);
}
