/* SPDX-License-Identifier: Apache-2.0 */
// ours: capture
/* Sandboxes under one set of probes, and a reader that is slow: what does the flood of one cost the other?
 *
 *   loss_pair [--drain-at PERCENT] [--hold yes] [--policy drop|stop|kill] [--urgent N] [--bulk N] -- COMMAND1...
 *             -- COMMAND2... ...
 *
 * The reader drains only when a ring is that full (default 0), when a producer was stopped or killed (not with --hold),
 * and at the end. Each starts in a directory of its own below the current one. Prints one JSON object: for each sandbox
 * (1, 2, ...) the records that came by kind, the gaps, how often it was pressed, the wait status; and how many came out
 * of order. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/helpers/v2_mount.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/capture/capture.h"

#define MANY 16

static int n_cmds;
static uint64_t got[MANY + 1][128];
static uint64_t last_ts;
static unsigned long backwards;

static void die(const char *what)
{
	fprintf(stderr, "loss_pair: %s: %s\n", what, strerror(errno));
	exit(3);
}

static const char *kind_name(unsigned int kind)
{
#define KIND_CASE(id, name, text, family) \
	case id:                          \
		return text;
	switch (kind) {
		WIRE_KINDS(KIND_CASE)
	case WIRE_CHUNK:
		return "chunk";
	}
	return "any";
}

static int count(void *arg, const void *rec, size_t len)
{
	struct wire_hdr h;

	(void)arg;
	(void)len;
	memcpy(&h, rec, sizeof(h));
	got[h.sandbox <= MANY ? h.sandbox : 0][h.kind & 127]++;
	backwards += h.ts < last_ts;
	last_ts = h.ts;
	return 0;
}

static pid_t start(int cgroup_fd, int i, char **argv)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)cgroup_fd };
	char dir[16];
	pid_t pid;

	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid != 0)
		return pid;
	snprintf(dir, sizeof(dir), "d%d", i);
	mkdir(dir, 0755);
	if (chdir(dir) == 0)
		execvp(argv[0], argv);
	_exit(127);
}

static void print_sandbox(struct json *j, struct capture *c, uint32_t id, int status,
			  const struct capture_gap *gaps, size_t gaps_n)
{
	json_object_begin(j);
	json_key(j, "status");
	json_i64(j, status);
	json_key(j, "pressed");
	json_u64(j, capture_pressed(c, id));
	for (int k = 0; k < 128; k++) {
		if (!got[id][k])
			continue;
		json_key(j, kind_name((unsigned int)k));
		json_u64(j, got[id][k]);
	}
	json_key(j, "gaps");
	json_array_begin(j);
	for (size_t i = 0; i < gaps_n; i++) {
		if (gaps[i].sandbox != id)
			continue;
		json_object_begin(j);
		json_key(j, "kind");
		json_strz(j, kind_name(gaps[i].kind));
		json_key(j, "count");
		json_u64(j, gaps[i].count);
		json_key(j, "span");
		json_u64(j, gaps[i].last_ts - gaps[i].first_ts);
		json_key(j, "rate");
		json_bool(j, gaps[i].rate);
		json_object_end(j);
	}
	json_array_end(j);
	json_object_end(j);
}

static int fullest(struct capture *c)
{
	struct capture_stats st;
	int max = 0;

	capture_stats(c, &st);
	for (int i = 0; i < WIRE_RING_COUNT; i++)
		max = MAX(max, (int)(st.ring_used[i] * 100 / st.ring_size[i]));
	return max;
}

static uint32_t pressed_all(struct capture *c)
{
	uint32_t n = 0;

	for (int i = 1; i <= n_cmds; i++)
		n += capture_pressed(c, (uint32_t)i);
	return n;
}

int main(int argc, char **argv)
{
	static struct capture_gap gaps[256];
	struct capture_options opt = { .quiet_libbpf = true };
	char **cmd[MANY] = { NULL }, leaf[MANY][512];
	int drain_at = 0, fd[MANY], status[MANY] = { 0 }, i, left;
	static const char *const words[] = { "drop", "stop", "kill" };
	uint32_t policy = 0, resumed = 0, pressed = 0, now;
	struct capture *c = NULL;
	struct err err = { 0 };
	size_t held, gaps_n;
	pid_t pid[MANY];
	bool hold = false;
	struct json j;
	struct buf out = { 0 };

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i += 2) {
		const char *v = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--drain-at"))
			drain_at = atoi(v);
		else if (!strcmp(argv[i], "--urgent"))
			opt.urgent_bytes = strtoul(v, NULL, 0);
		else if (!strcmp(argv[i], "--bulk"))
			opt.bulk_bytes = strtoul(v, NULL, 0);
		else if (!strcmp(argv[i], "--hold"))
			hold = true;
		for (uint32_t w = 0; !strcmp(argv[i], "--policy") && w < 3; w++)
			policy = !strcmp(v, words[w]) ? w : policy;
	}
	for (; i < argc && n_cmds < MANY; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		argv[i] = NULL;
		cmd[n_cmds++] = argv + i + 1;
	}
	if (n_cmds < 2)
		return 2;
	left = n_cmds;
	if (capture_open(&c, &opt, &err) < 0) {
		fprintf(stderr, "loss_pair: %s\n", err_text(&err));
		return 3;
	}
	for (i = 0; i < n_cmds; i++) {
		struct sandbox_cfg cfg = { .id = (uint32_t)i + 1,
					   .flags = SANDBOX_F_WATCH,
					   .pressure = policy };

		snprintf(leaf[i], sizeof(leaf[i]), "%s/warder-pair-%d-%d", v2_mount(), getpid(), i);
		if (mkdir(leaf[i], 0755) < 0)
			die(leaf[i]);
		fd[i] = open(leaf[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd[i] < 0 || capture_watch(c, fd[i], &cfg, &err) < 0)
			die(err_text(&err));
	}
	for (i = 0; i < n_cmds; i++) {
		pid[i] = start(fd[i], i + 1, cmd[i]);
		if (pid[i] < 0)
			die("clone3");
	}
	while (left) {
		usleep(1000);
		now = pressed_all(c);
		if (fullest(c) >= drain_at || (now != pressed && !hold))
			capture_drain(c, false, count, NULL, &held);
		if (now != pressed) {
			pressed = now;
			resumed += (uint32_t)capture_resume(c);
		}
		for (i = 0; i < n_cmds; i++)
			if (pid[i] && waitpid(pid[i], &status[i], WNOHANG) == pid[i]) {
				pid[i] = 0;
				left--;
			}
	}
	do {
		capture_drain(c, true, count, NULL, &held);
	} while (held);
	gaps_n = capture_gaps(c, gaps, ARRAY_SIZE(gaps));
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "out_of_order");
	json_u64(&j, backwards);
	json_key(&j, "resumed");
	json_u64(&j, resumed);
	for (uint32_t id = 0; id <= (uint32_t)n_cmds; id++) {
		char key[4];

		snprintf(key, sizeof(key), "%u", id);
		json_key(&j, key);
		print_sandbox(&j, c, id, id ? status[id - 1] : 0, gaps, gaps_n);
	}
	json_object_end(&j);
	printf("%.*s\n", (int)out.n, out.p);
	for (i = 0; i < n_cmds; i++) {
		capture_unwatch(c, fd[i]);
		for (int n = 0; n < 100 && rmdir(leaf[i]) < 0 && errno == EBUSY; n++)
			usleep(10000);
	}
	capture_close(c);
	return 0;
}
