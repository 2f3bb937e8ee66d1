/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What requests of io_uring say, in the shapes of all kernels. */
#ifndef WARDER_BPF_URING_H
#define WARDER_BPF_URING_H

#include "bpf/lib/maps.bpf.h"

#define REQ_FIXED_FILE (1 << 0) /* IOSQE_*, which the kernel keeps as they are */
#define REQ_CQE_SKIP   (1 << 6)

/* To 6.12: an array of pointers, with flags in the lowest bits. */
struct io_file_table___612 {
	__u64 *files;
} __attribute__((preserve_access_index));

struct io_ring_ctx___612 {
	struct io_file_table___612 file_table;
} __attribute__((preserve_access_index));

/* A file that the ring knows by a number of its own. */
static __always_inline struct file *direct_file(struct io_ring_ctx *ctx, __u32 slot)
{
	struct io_ring_ctx___612 *old = (void *)ctx;
	struct io_rsrc_node **nodes, *node = NULL;
	__u64 file = 0, *files;

	if (bpf_core_field_exists(old->file_table.files)) {
		files = BPF_CORE_READ(old, file_table.files);
		bpf_probe_read_kernel(&file, sizeof(file), files + slot);
	} else {
		nodes = BPF_CORE_READ(ctx, file_table.data.nodes);
		bpf_probe_read_kernel(&node, sizeof(node), nodes + slot);
		file = BPF_CORE_READ(node, file_ptr);
	}
	return (struct file *)(file & ~7ull);
}

#endif
