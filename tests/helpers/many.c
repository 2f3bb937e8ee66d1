/* SPDX-License-Identifier: Apache-2.0 */
// ours: capture
/* Many short sandboxes under one set of probes: does each event belong to the one that made it, and is
 * anything left?
 *
 *   many [--count N] [--at-once K] [--same-pids] --tiny PROGRAM
 *
 * K cgroups are alive at any time; each is made, watched, acted in and removed. The sandbox of round i has the
 * id of its place (1 to K), so ids and names of cgroups are used again and again, and with --same-pids the process
 * ids, too. It opens, writes and deletes a file f<i>, has a child, and runs PROGRAM i: what is in a record tells
 * which round it is of. Prints one JSON object: `wrong`, the records that are of another round, process or cgroup
 * than they say; `missing`, what never came; and what there is of everything before, after a tenth, and at the end. */
#include <dirent.h>
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
#include "userspace/capture/usage.h"

#define PLACES_MAX 512
#define LAST_PIDS \
	700 /* --same-pids: so far below the highest number, where the kernel seldom comes */
#define LOST_NS (20 * NSEC_PER_SEC)

enum what { OPEN, WRITE, DELETE, FORK, EXEC, EXIT, WHATS };
static const unsigned int wanted[WHATS] = { 1, 1, 1, 1, 1, 2 };
static const char *const names[WHATS] = { "open", "write", "delete", "fork", "exec", "exit" };

static struct place {
	int round; /* -1: at rest */
	pid_t pid;
	int cgroup_fd;
	uint64_t cgid;
	uint64_t began, over; /* CLOCK_BOOTTIME; over: its process was seen to have ended */
	unsigned int got[WHATS];
	bool ended;
	char leaf[512];
} places[PLACES_MAX];

static struct capture *capture;
static const char *tiny;
static int at_once = 64, count = 2000, next_round;
static bool same_pids;
static pid_t first_pid;
static char top[400];
static unsigned long records, wrong, missing, finished, reused;
static char first_wrong[256], first_missing[64];

/* Nothing may be left when a test fails, either. */
static _Noreturn void give_up(void)
{
	for (int i = 0; i < at_once; i++) {
		if (places[i].round < 0 || places[i].pid <= 0)
			continue;
		kill(places[i].pid, SIGKILL);
		waitpid(places[i].pid, NULL, 0);
	}
	for (int i = 0; i < at_once; i++)
		for (int k = 0; k < 100 && rmdir(places[i].leaf) < 0 && errno == EBUSY; k++)
			usleep(1000);
	rmdir(top);
	exit(3);
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "many: %s: %s\n", what, strerror(errno));
	give_up();
}

/* ---- in the sandbox ---- */

static _Noreturn void act(int round)
{
	char name[32], number[16], *argv[] = { (char *)"tiny", number, NULL };
	char *envp[] = { NULL };
	pid_t pid;
	int fd;

	snprintf(name, sizeof(name), "f%d", round);
	snprintf(number, sizeof(number), "%d", round);
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	if (fd < 0 || write(fd, name, strlen(name)) < 0)
		_exit(1);
	close(fd);
	unlink(name);
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	execve(tiny, argv, envp);
	_exit(1);
}

/* ---- judging ---- */

static void blame(const struct wire_hdr *h, int round, const char *why)
{
	if (!wrong++)
		snprintf(first_wrong, sizeof(first_wrong),
			 "kind %u of sandbox %u (round %d), process %u: %s", h->kind, h->sandbox,
			 round, h->tgid, why);
}

/* Bytes of a string in the record; "" when there are none. */
static const char *text_of(const uint8_t *rec, size_t len, struct wire_str s, size_t *ret_n)
{
	*ret_n = (size_t)s.off + s.len <= len ? s.len : 0;
	return (const char *)rec + s.off;
}

/* Is one of the words between `before`s and NULs PREFIX<round>? */
static bool says(const char *text, size_t n, char before, const char *prefix, int round)
{
	char want[32];
	size_t k = (size_t)snprintf(want, sizeof(want), "%s%d", prefix, round);

	for (size_t i = 0; i + k <= n; i++)
		if ((i == 0 || text[i - 1] == before) && !memcmp(text + i, want, k) &&
		    (i + k == n || text[i + k] == 0))
			return true;
	return false;
}

static void check_file(const uint8_t *rec, size_t len, struct place *p, enum what what)
{
	struct wire_file r;
	const char *text;
	size_t n;

	memcpy(&r, rec, sizeof(r));
	text = text_of(rec, len, r.path, &n);
	/* Of a write only the descriptor's number, of a name what the caller said. */
	if (what != WRITE && !says(text, n, '/', "f", p->round))
		blame(&r.h, p->round, "another name");
	if (what != WRITE || r.op == WIRE_WRITE_TOTAL)
		p->got[what]++;
}

static void check_exec(const uint8_t *rec, size_t len, struct place *p)
{
	struct wire_exec r;
	const char *text;
	size_t n;

	memcpy(&r, rec, sizeof(r));
	text = text_of(rec, len, r.args, &n);
	if (!says(text, n, '\0', "", p->round))
		blame(&r.h, p->round, "another argument");
	p->got[EXEC]++;
}

static int take(void *arg, const void *rec, size_t len)
{
	struct wire_hdr h;
	struct place *p;

	(void)arg;
	memcpy(&h, rec, sizeof(h));
	records++;
	p = h.sandbox && h.sandbox <= (uint32_t)at_once ? &places[h.sandbox - 1] : NULL;
	if (!p || p->round < 0) {
		blame(&h, -1, "no such sandbox now");
		return 0;
	}
	if (h.cgid != p->cgid)
		blame(&h, p->round, "another cgroup");
	if (h.start < p->began)
		blame(&h, p->round, "a process from before it");
	if ((h.kind == WIRE_FILE_OPEN || h.kind == WIRE_EXEC || h.kind == WIRE_FORK) &&
	    h.tgid != (uint32_t)p->pid)
		blame(&h, p->round, "another process");
	if (h.kind == WIRE_FILE_OPEN)
		check_file(rec, len, p, OPEN);
	else if (h.kind == WIRE_FILE_WRITE)
		check_file(rec, len, p, WRITE);
	else if (h.kind == WIRE_FILE_DELETE)
		check_file(rec, len, p, DELETE);
	else if (h.kind == WIRE_EXEC)
		check_exec(rec, len, p);
	else if (h.kind == WIRE_FORK)
		p->got[FORK]++;
	else if (h.kind == WIRE_EXIT)
		p->got[EXIT]++;
	return 0;
}

/* ---- life of a sandbox ---- */

static void begin(int i)
{
	struct place *p = &places[i];
	struct sandbox_cfg cfg = { .id = (uint32_t)i + 1, .flags = SANDBOX_F_WATCH };
	pid_t pid = first_pid + i;
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	struct err err = { 0 };
	struct stat st;

	snprintf(p->leaf, sizeof(p->leaf), "%s/s%d", top, i);
	if (mkdir(p->leaf, 0755) < 0)
		die(p->leaf);
	p->cgroup_fd = open(p->leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->cgroup_fd < 0 || fstat(p->cgroup_fd, &st) < 0)
		die(p->leaf);
	memset(p->got, 0, sizeof(p->got));
	p->cgid = st.st_ino;
	p->round = next_round++;
	p->ended = false;
	p->began = clock_boot_ns();
	if (capture_watch(capture, p->cgroup_fd, &cfg, &err) < 0) {
		fprintf(stderr, "many: %s\n", err_text(&err));
		give_up();
	}
	args.cgroup = (uint64_t)p->cgroup_fd;
	if (same_pids) {
		args.set_tid = (uintptr_t)&pid;
		args.set_tid_size = 1;
	}
	p->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (p->pid < 0 && errno == EEXIST) { /* somebody else's just now */
		args.set_tid_size = 0;
		p->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	}
	if (p->pid < 0)
		die("clone3");
	if (p->pid == 0)
		act(p->round);
	reused += same_pids && p->pid == pid;
}

static bool is_complete(const struct place *p)
{
	for (int k = 0; k < WHATS; k++)
		if (p->got[k] < wanted[k])
			return false;
	return true;
}

static void end(struct place *p)
{
	for (int k = 0; k < WHATS; k++) {
		if (p->got[k] < wanted[k] && !missing)
			snprintf(first_missing, sizeof(first_missing), "%s of round %d", names[k],
				 p->round);
		missing += p->got[k] < wanted[k] ? wanted[k] - p->got[k] : 0;
		if (p->got[k] > wanted[k])
			blame(&(struct wire_hdr){ .sandbox = (uint32_t)(p - places) + 1 }, p->round,
			      "more than was done");
	}
	if (capture_unwatch(capture, p->cgroup_fd) < 0)
		die("unwatch");
	close(p->cgroup_fd);
	for (int i = 0; rmdir(p->leaf) < 0; i++) {
		if (errno != EBUSY || i == 1000)
			die(p->leaf);
		usleep(1000);
	}
	p->round = -1;
	finished++;
}

/* One look at all places. */
static void turn(void)
{
	size_t held;
	int status;

	for (int i = 0; i < at_once; i++) {
		struct place *p = &places[i];

		if (p->round >= 0 && !p->ended && waitpid(p->pid, &status, WNOHANG) == p->pid) {
			p->ended = true;
			p->over = clock_boot_ns();
			if (status)
				die("the sandbox's process failed");
		}
	}
	if (capture_drain(capture, false, take, NULL, &held) == 0)
		usleep(2000);
	for (int i = 0; i < at_once; i++) {
		struct place *p = &places[i];

		if (p->round >= 0 && p->ended &&
		    (is_complete(p) || clock_boot_ns() > p->over + LOST_NS))
			end(p);
		if (p->round < 0 && next_round < count)
			begin(i);
	}
}

/* ---- what is left ---- */

static uint64_t file_number(const char *path, const char *key)
{
	auto_file FILE *f = fopen(path, "re");
	char line[256];
	unsigned long long v = 0;

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) &&
		    sscanf(line + strlen(key), "%*[: \t]%llu", &v) == 1)
			return v;
	return 0;
}

static uint64_t open_files(void)
{
	auto_dir DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (dir && readdir(dir))
		n++;
	return n;
}

static uint64_t dying(void)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/cgroup.stat", top);
	return file_number(path, "nr_dying_descendants");
}

static void tell_state(struct json *j, const char *key)
{
	struct capture_usage u = { .maps_n = 0 };
	char stat[600];

	snprintf(stat, sizeof(stat), "%s/cgroup.stat", top);
	json_key(j, key);
	json_object_begin(j);
	json_key(j, "fds");
	json_u64(j, open_files());
	json_key(j, "rss_kb");
	json_u64(j, file_number("/proc/self/status", "VmRSS"));
	json_key(j, "cgroups");
	json_u64(j, file_number(stat, "nr_descendants"));
	json_key(j, "dying_cgroups");
	json_u64(j, dying());
	if (capture_usage(getpid(), &u, NULL) == 0) {
		json_key(j, "kernel_bytes");
		json_u64(j, u.map_bytes + u.program_bytes);
	}
	json_key(j, "maps");
	json_object_begin(j);
	for (size_t i = 0; i < u.maps_n; i++) {
		json_key(j, u.maps[i].name);
		json_u64(j, u.maps[i].used);
	}
	json_object_end(j);
	json_object_end(j);
}

static long pid_max(void)
{
	auto_file FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
	long v;

	return f && fscanf(f, "%ld", &v) == 1 ? v : 32768;
}

static uint64_t lost(void)
{
	struct capture_gap gaps[64];
	uint64_t n = 0;
	size_t k;

	capture_count_missed(capture);
	do {
		k = capture_gaps(capture, gaps, ARRAY_SIZE(gaps));
		for (size_t i = 0; i < k; i++)
			n += gaps[i].count;
	} while (k == ARRAY_SIZE(gaps));
	return n;
}

static void run_all(struct json *j)
{
	bool told = false;

	tell_state(j, "start");
	while (finished < (unsigned long)count) {
		turn();
		if (!told && finished >= (unsigned long)count / 10) {
			tell_state(j, "early");
			told = true;
		}
	}
	/* The kernel takes cgroups apart when it has time. */
	for (int i = 0; i < 300 && dying(); i++)
		usleep(100000);
	tell_state(j, "end");
}

int main(int argc, char **argv)
{
	auto_buf struct buf out = { 0 };
	struct err err = { 0 };
	struct json j;

	for (int i = 1; i < argc; i++) {
		const char *v = i + 1 < argc ? argv[i + 1] : "0";

		if (!strcmp(argv[i], "--same-pids"))
			same_pids = true;
		else if (!strcmp(argv[i], "--count"))
			count = (int)strtol(v, NULL, 10), i++;
		else if (!strcmp(argv[i], "--at-once"))
			at_once = (int)strtol(v, NULL, 10), i++;
		else if (!strcmp(argv[i], "--tiny"))
			tiny = v, i++;
	}
	if (!tiny || count < 1 || at_once < 1 || at_once > PLACES_MAX) {
		fprintf(stderr,
			"usage: many [--count N] [--at-once K] [--same-pids] --tiny PROGRAM\n");
		return 2;
	}
	first_pid = (pid_t)pid_max() - LAST_PIDS;
	snprintf(top, sizeof(top), "%s/warder-many-%d", v2_mount(), (int)getpid());
	if (mkdir(top, 0755) < 0)
		die(top);
	if (capture_open(&capture, &(struct capture_options){ .quiet_libbpf = true }, &err) < 0) {
		fprintf(stderr, "many: %s\n", err_text(&err));
		rmdir(top);
		return 3;
	}
	for (int i = 0; i < at_once; i++)
		places[i].round = -1;
	json_init(&j, &out);
	json_object_begin(&j);
	run_all(&j);
	json_key(&j, "records");
	json_u64(&j, records);
	json_key(&j, "wrong");
	json_u64(&j, wrong);
	json_key(&j, "first_wrong");
	json_strz(&j, first_wrong);
	json_key(&j, "missing");
	json_u64(&j, missing);
	json_key(&j, "first_missing");
	json_strz(&j, first_missing);
	json_key(&j, "reused_pids");
	json_u64(&j, reused);
	json_key(&j, "lost");
	json_u64(&j, lost());
	json_object_end(&j);
	printf("%.*s\n", (int)out.n, out.p);
	capture_close(capture);
	rmdir(top);
	return 0;
}
