// SPDX-License-Identifier: Apache-2.0
#include "userspace/workspace/workspace.h"

#include <errno.h>

#include "userspace/base/fd.h"

#define FLUSH_AT (256u << 10)

int workspace_items_flush(struct buf *out, int fd)
{
	int r = out->failed ? -ENOMEM : fd_write_all(fd, out->p, out->n);

	buf_reset(out);
	return r;
}

int workspace_item_add(struct buf *out, int fd, enum workspace_item_type type, const void *p,
		       size_t n)
{
	const struct workspace_item head = { type, (uint32_t)n };

	if (n > WORKSPACE_ITEM_MAX)
		return -EMSGSIZE;
	buf_add(out, &head, sizeof(head));
	buf_add(out, p, n);
	return out->n < FLUSH_AT && !out->failed ? 0 : workspace_items_flush(out, fd);
}

int workspace_item_next(int fd, enum workspace_item_type *ret_type, struct buf *ret)
{
	struct workspace_item head;
	ssize_t n = fd_read_full(fd, &head, sizeof(head));
	int r;

	if (n <= 0)
		return (int)n;
	if (n != (ssize_t)sizeof(head) || head.n > WORKSPACE_ITEM_MAX ||
	    head.type < WORKSPACE_RECORD || head.type > WORKSPACE_TEXT_BEFORE)
		return -EBADMSG;
	buf_reset(ret);
	r = buf_reserve(ret, head.n);
	if (r < 0)
		return r;
	n = fd_read_full(fd, ret->p, head.n);
	if (n < 0)
		return (int)n;
	if ((size_t)n != head.n)
		return -EBADMSG;
	ret->n = head.n;
	*ret_type = head.type;
	return 1;
}
