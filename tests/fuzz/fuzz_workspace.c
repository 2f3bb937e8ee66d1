// SPDX-License-Identifier: Apache-2.0
/* What comes back from the process that looked at a hostile tree: the first byte says which of its two files it is, the
 * state before (0) or the items (else). */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/workspace/snapshot.h"

static void state(int fd)
{
	struct snapshot s;
	volatile char last;

	if (snapshot_read(&s, fd, 2) < 0)
		return;
	for (size_t i = 0; i < s.n; i++) {
		const struct entry *e = &s.v[i];

		if (e->place >= 2 || (i && entry_compare(&s.v[i - 1], e) >= 0))
			abort();
		last = e->path.n ? e->path.p[e->path.n - 1] : 0;
		last = e->target.n ? e->target.p[e->target.n - 1] : 0;
		last = e->text.n ? e->text.p[e->text.n - 1] : 0;
		(void)last;
	}
	snapshot_done(&s);
}

static void items(int fd)
{
	auto_buf struct buf b = { 0 };
	enum workspace_item_type type;

	while (workspace_item_next(fd, &type, &b) > 0)
		if (b.n > WORKSPACE_ITEM_MAX || type < WORKSPACE_RECORD ||
		    type > WORKSPACE_TEXT_BEFORE)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_close int fd = size ? memfd_create("fuzz", MFD_CLOEXEC) : -1;

	if (fd < 0 || fd_write_all(fd, data + 1, size - 1) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return 0;
	if (data[0])
		items(fd);
	else
		state(fd);
	return 0;
}
