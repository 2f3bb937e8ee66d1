// SPDX-License-Identifier: Apache-2.0
/* Runs of our hooks that the kernel left out: a program that would have interrupted itself on its CPU, a return
 * probe when too many calls were under way. What they would have told is not known, so it is a gap. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

/* struct bpf_link_info of a kprobe.multi link (include/uapi/linux/bpf.h, 6.7); older headers lack it, and
 * older kernels leave `missed` 0. */
struct multi_info {
	uint32_t type, id, prog_id, pad;
	uint64_t addrs;
	uint32_t count, flags;
	uint64_t missed;
	uint64_t more[4];
};

static uint64_t of_link(int fd)
{
	struct multi_info info = { 0 };
	uint32_t len = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return 0;
	return info.missed;
}

static uint64_t of_program(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return 0;
	return info.recursion_misses;
}

uint64_t missed_count(const struct capture *c)
{
	struct bpf_program *p;
	uint64_t n = 0;

	bpf_object__for_each_program(p, c->skel->obj) n += of_program(bpf_program__fd(p));
	for (size_t i = 0; i < ARRAY_SIZE(c->hooks.multi); i++)
		n += of_link(c->hooks.multi[i]);
	return n;
}

void capture_count_missed(struct capture *c)
{
	uint64_t n = missed_count(c) - c->missed_before;
	struct counters *shared;

	if (n == c->missed_counted)
		return;
	shared = mmap(NULL, c->counters_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      bpf_map__fd(c->skel->maps.counters), 0);
	if (shared == MAP_FAILED)
		return; /* told next time */
	__atomic_store_n(&shared->missed, n, __ATOMIC_RELAXED);
	munmap(shared, c->counters_bytes);
	c->missed_counted = n;
}
