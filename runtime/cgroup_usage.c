// SPDX-License-Identifier: Apache-2.0
/* What a sandbox has used, from whichever hierarchy knows it. 0 = not known. */
#include "runtime/cgroup.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define FILE_MAX 8192

static uint64_t read_u64(int dir, const char *file)
{
	auto_free char *text = NULL;

	if (dir < 0 || file_read_at(dir, file, FILE_MAX, &text, NULL) < 0)
		return 0;
	return strtoull(text, NULL, 10);
}

/* The number behind `key` in a file of "key number" lines. */
static uint64_t read_key(int dir, const char *file, const char *key)
{
	auto_free char *text = NULL;
	size_t n = strlen(key);

	if (dir < 0 || file_read_at(dir, file, FILE_MAX, &text, NULL) < 0)
		return 0;
	for (char *line = text; *line;) {
		char *end = strchrnul(line, '\n');

		if (!strncmp(line, key, n) && line[n] == ' ')
			return strtoull(line + n, NULL, 10);
		line = *end ? end + 1 : end;
	}
	return 0;
}

static int open_hits(int dir, const char *file)
{
	return dir < 0 ? -1 : openat(dir, file, O_RDONLY | O_CLOEXEC);
}

void cgroup_hit_fds(const struct cgroup *c, int ret_fds[2])
{
	int pids = c->v1_fd[CONTROLLER_PIDS];

	if (pids < 0 && c->where[CONTROLLER_PIDS] == CONTROLLER_V2)
		pids = c->leaf;
	ret_fds[0] = open_hits(pids, "pids.events");
	/* v1 has memory.oom_control, which cannot be polled for: its kills show as oom events. */
	ret_fds[1] = c->where[CONTROLLER_MEMORY] == CONTROLLER_V2
			     ? open_hits(c->leaf, "memory.events")
			     : -1;
}

void cgroup_usage(const struct cgroup *c, struct cgroup_usage *ret)
{
	int memory = c->v1_fd[CONTROLLER_MEMORY], pids = c->v1_fd[CONTROLLER_PIDS];
	int cpu = c->v1_fd[CONTROLLER_CPU];

	*ret = (struct cgroup_usage){ 0 };
	/* cpu.stat is there without the cpu controller, too. */
	ret->cpu_usec = read_key(c->leaf, "cpu.stat", "usage_usec");
	if (cpu >= 0) {
		ret->cpu_throttled = read_key(cpu, "cpu.stat", "nr_throttled");
		ret->cpu_throttled_usec = read_key(cpu, "cpu.stat", "throttled_time") / 1000;
	} else if (c->where[CONTROLLER_CPU] == CONTROLLER_V2) {
		ret->cpu_throttled = read_key(c->leaf, "cpu.stat", "nr_throttled");
		ret->cpu_throttled_usec = read_key(c->leaf, "cpu.stat", "throttled_usec");
	}
	if (memory >= 0) {
		ret->mem_now = read_u64(memory, "memory.usage_in_bytes");
		ret->mem_peak = read_u64(memory, "memory.max_usage_in_bytes");
		ret->oom_kills = read_key(memory, "memory.oom_control", "oom_kill");
	} else if (c->where[CONTROLLER_MEMORY] == CONTROLLER_V2) {
		ret->mem_now = read_u64(c->leaf, "memory.current");
		ret->mem_peak = read_u64(c->leaf, "memory.peak"); /* 5.19 */
		ret->oom_kills = read_key(c->leaf, "memory.events", "oom_kill");
	}
	if (pids < 0 && c->where[CONTROLLER_PIDS] == CONTROLLER_V2)
		pids = c->leaf;
	ret->pids_now = read_u64(pids, "pids.current");
	if (ret->pids_now > 0)
		ret->pids_now--;		      /* init is ours */
	ret->pids_peak = read_u64(pids, "pids.peak"); /* 6.1 */
	ret->pids_denied = read_key(pids, "pids.events", "max");
	if (ret->pids_peak > 0)
		ret->pids_peak--; /* init is ours */
}
