/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The OOM killer chose a victim of ours. The tracepoint passes the task (Debian's 5.10 too); where it
 * passes a pid this program is not loaded (capture checks the prototype: the verifier would not). */
#include "bpf/lib/emit.bpf.h"
#include "bpf/lib/task.bpf.h"

#define PAGE_BYTES 4096ull

SEC("tp_btf/mark_victim")
int BPF_PROG(on_oom, struct task_struct *victim)
{
	struct task_state *st = task_state(victim);
	struct wire_oom r = {};
	struct mm_struct *mm;

	if (!st)
		return 0;
	header_of(&r.h, victim, st, WIRE_OOM);
	r.oom_score_adj = BPF_CORE_READ(victim, signal, oom_score_adj);
	mm = BPF_CORE_READ(victim, signal, oom_mm);
	if (mm) {
		r.total_vm = BPF_CORE_READ(mm, total_vm) * PAGE_BYTES;
		r.file_rss = mm_pages(mm, MM_FILEPAGES) * PAGE_BYTES;
		r.anon_rss = mm_pages(mm, MM_ANONPAGES) * PAGE_BYTES;
		r.shmem_rss = mm_pages(mm, MM_SHMEMPAGES) * PAGE_BYTES;
	}
	emit(&r, sizeof(r), WIRE_RING_URGENT);
	return 0;
}
