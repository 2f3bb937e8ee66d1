// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/workspace_take.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/redact/redact.h"
#include "userspace/workspace/workspace.h"

struct taken {
	bool has;
	uint8_t name[32];
	uint64_t places; /* that were redacted */
};

/* blobs/<SHA-256 of its bytes>. */
static int keep_blob(struct workspace_texts *t, const void *p, size_t n, uint8_t ret_name[32])
{
	auto_close int dir = -1;
	char name[65];

	if (t->bundle_fd < 0 || t->bytes + n > WORKSPACE_BLOBS_MAX)
		return -ENOSPC;
	crypto_hash_sha256(ret_name, p, n);
	sodium_bin2hex(name, sizeof(name), ret_name, 32);
	if (mkdirat(t->bundle_fd, "blobs", 0700) < 0 && errno != EEXIST)
		return -errno;
	dir = openat(t->bundle_fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	t->bytes += n;
	return file_replace_at(dir, name, p, n, 0600);
}

static void take_text(struct workspace_texts *t, const struct buf *b, struct taken *ret)
{
	auto_buf struct buf clean = { 0 };
	int r = t->redact ? redact_text(t->redact, (struct str){ b->p, b->n }, &clean) : 0;

	ret->places = r > 0 ? (uint64_t)r : 0;
	if (r > 0)
		r = keep_blob(t, clean.p, clean.n, ret->name);
	else if (r == 0)
		r = keep_blob(t, b->n ? b->p : "", b->n, ret->name);
	ret->has = r == 0;
	if (r < 0 && r != -ENOSPC)
		log_warn("a changed text is not kept: %s", strerror(-r));
}

/* What is left of a text and the hash of the whole would let anybody try passwords. */
static void drop_hash(struct buf *b, struct wire_change *w, const struct taken *text,
		      const struct taken *before)
{
	static const char why[] = "redacted\0\0\0\0\0\0\0";

	if (!text->places && !before->places)
		return;
	w->has &= ~(uint32_t)((text->places ? WIRE_CHANGE_SHA256 : 0) |
			      (before->places ? WIRE_CHANGE_SHA256_BEFORE : 0));
	if (w->unhashed.len || b->n > UINT16_MAX - sizeof(why))
		return;
	w->unhashed = (struct wire_str){ (uint16_t)b->n, sizeof("redacted") };
	buf_add(b, why, sizeof(why));
	w->h.len = (uint32_t)b->n;
}

static void take_record(struct pipeline *p, uint32_t sandbox_id, struct buf *b,
			const struct taken *text, const struct taken *before)
{
	struct wire_change w;
	struct wire_hdr h;

	if (b->n < sizeof(h))
		return;
	memcpy(&h, b->p, sizeof(h));
	if (h.kind != WIRE_WORKSPACE_CHANGE && h.kind != WIRE_WORKSPACE_SCAN)
		return; /* nothing else comes by this way */
	h.sandbox = sandbox_id;
	memcpy(b->p, &h, sizeof(h));
	if (h.kind == WIRE_WORKSPACE_CHANGE && b->n >= sizeof(w)) {
		memcpy(&w, b->p, sizeof(w));
		w.has &= WIRE_CHANGE_SHA256 | WIRE_CHANGE_SHA256_BEFORE;
		w.has |= (text->has ? WIRE_CHANGE_TEXT : 0) |
			 (before->has ? WIRE_CHANGE_TEXT_BEFORE : 0);
		memcpy(w.text, text->name, sizeof(w.text));
		memcpy(w.text_before, before->name, sizeof(w.text_before));
		drop_hash(b, &w, text, before);
		pipeline_redacted(p, sandbox_id, text->places + before->places);
		memcpy(b->p, &w, sizeof(w));
	}
	pipeline_feed(p, b->p, b->n);
}

void workspace_take(struct workspace_texts *t, struct pipeline *p, uint32_t sandbox_id,
		    int items_fd)
{
	struct taken text = { 0 }, before = { 0 };
	auto_buf struct buf b = { 0 };
	enum workspace_item_type type;
	auto_close int fd = items_fd;

	while (fd >= 0 && workspace_item_next(fd, &type, &b) > 0) {
		if (type == WORKSPACE_TEXT) {
			take_text(t, &b, &text);
		} else if (type == WORKSPACE_TEXT_BEFORE) {
			take_text(t, &b, &before);
		} else {
			take_record(p, sandbox_id, &b, &text, &before);
			text = before = (struct taken){ 0 };
		}
	}
}
