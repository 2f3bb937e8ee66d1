// SPDX-License-Identifier: Apache-2.0
// ours: pipeline
/* An agent around existing control groups, as much of the product as watching is: probes, engine without
 * privilege, the built-in rules, journal. For measuring (tests/bench/cost) and for tests with a process of
 * their own inside.
 *   watcher BUNDLE [CGROUP]        CGROUP: a v2 directory to watch; left out, no sandbox is alive
 *   watcher --latency N [CGROUP]   no engine: how long N records took from the hook to decoded
 * Prints "ready" and waits for the end of its standard input; then one JSON line with what it saw. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/ulid.h"
#include "userspace/event/decode.h"
#include "userspace/pipeline/engine.h"
#include "userspace/pipeline/privdrop.h"

#define SANDBOX_ID   1
#define LATENCY_MAX  1000000
#define DECODE_ARENA (4 << 20)
/* What wakes the reader; forks and exits come with the next of these, or with its next look. */
#define WAKES(k) ((k) == WIRE_EXEC || (k) == WIRE_ESCAPE || (k) == WIRE_OOM)

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "watcher: %s: %s\n", what,
		err && err->code ? err_text(err) : strerror(errno));
	exit(1);
}

static struct ruleset *built_in_rules(void)
{
	struct ruleset *rs = NULL;
	struct err err = { 0 };
	int r = ruleset_new(&rs, NULL, NULL);

	if (r == 0)
		ruleset_allow_state(rs);
	for (size_t i = 0; r == 0 && i < rule_packs_n; i++)
		r = ruleset_add_text(rs, rule_packs[i].name, rule_packs[i].text, &err);
	if (r == 0)
		r = ruleset_compile(rs, &err);
	if (r < 0)
		die("rules", &err);
	return rs;
}

static void watch(struct capture *c, const char *cgroup)
{
	const struct sandbox_cfg cfg = { .id = SANDBOX_ID, .flags = SANDBOX_F_WATCH };
	auto_close int fd = -1;
	struct err err = { 0 };

	if (!cgroup)
		return;
	fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		die(cgroup, NULL);
	if (capture_watch(c, fd, &cfg, &err) < 0)
		die(cgroup, &err);
}

static void wait_for_eof(void)
{
	char b[256];

	printf("ready\n");
	fflush(stdout);
	while (read(STDIN_FILENO, b, sizeof(b)) > 0)
		;
}

/* ---- the whole product ---- */

static void run_engine(struct capture *c, const char *bundle)
{
	struct ruleset *rules = built_in_rules();
	char ulid[ULID_LEN + 1], *command[] = { (char *)"watcher", NULL };
	struct engine_options eo = {
		.capture = c,
		.rules = rules,
		.bundle = bundle,
		.cursor_dirfd = -1,
		.keys_dirfd = -1,
		.status_dirfd = -1,
		.guest_fds = { -1, -1 },
		.session = { .sandbox_id = SANDBOX_ID,
			     .session = ulid,
			     .name = "watched",
			     .host = "bench",
			     .tier = capture_tier(c),
			     .real_offset_ns = (int64_t)(clock_real_ns() - clock_boot_ns()),
			     .target = { -1, -1, -1, -1 } },
		.record = { .sandbox_id = SANDBOX_ID,
			    .backend = "none",
			    .name = "watched",
			    .host = "bench",
			    .command = command },
	};
	const struct run_facts facts = { 0 };
	struct engine_result res = { 0 };
	struct err err = { 0 };
	pid_t pid;
	int fd;

	ulid_make(ulid, clock_real_ns());
	engine_ids(&eo.uid, &eo.gid);
	eo.bundle_fd = open(bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (eo.bundle_fd < 0 || fchown(eo.bundle_fd, eo.uid, eo.gid) < 0)
		die(bundle, NULL);
	if (engine_start(&pid, &fd, &eo, &err) < 0)
		die("engine", &err);
	wait_for_eof();
	if (engine_finish(fd, pid, &facts, &res, &err) < 0)
		die("engine", &err);
	printf("{\"events\":%llu,\"gaps\":%llu}\n", (unsigned long long)res.events,
	       (unsigned long long)res.gaps);
	ruleset_free(rules);
}

/* ---- latency ---- */

struct latency {
	struct decoder *decoder;
	struct arena arena;
	struct event ev;
	size_t wanted;
	struct {
		uint32_t *ns;
		size_t n;
	} ring[2]; /* urgent, rest */
};

static int on_record(void *arg, const void *rec, size_t len)
{
	struct latency *l = arg;
	size_t which;
	uint64_t ns;

	arena_reset(&l->arena);
	if (decoder_feed(l->decoder, rec, len, &l->arena, &l->ev) <= 0)
		return 0;
	ns = clock_boot_ns() - l->ev.hdr.ts;
	which = !WAKES(l->ev.hdr.kind);
	if (l->ring[which].n < LATENCY_MAX)
		l->ring[which].ns[l->ring[which].n++] = (uint32_t)MIN(ns, (uint64_t)UINT32_MAX);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *name, uint32_t *ns, size_t n)
{
	qsort(ns, n, sizeof(*ns), by_value);
	printf("\"%s\":{\"n\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f},", name, n,
	       n ? ns[n / 2] / 1e3 : 0.0, n ? ns[n * 99 / 100] / 1e3 : 0.0,
	       n ? ns[n - 1] / 1e3 : 0.0);
}

/* As the engine waits: woken for what must be acted on, and looking by itself while records come. */
static void run_latency(struct capture *c, size_t wanted)
{
	struct latency l = { .wanted = wanted };
	struct pollfd fds[] = { { .fd = capture_fd(c), .events = POLLIN },
				{ .fd = STDIN_FILENO, .events = POLLIN } };
	size_t held = 0;
	char b[256];

	arena_init(&l.arena, DECODE_ARENA);
	l.ring[0].ns = calloc(LATENCY_MAX, sizeof(uint32_t));
	l.ring[1].ns = calloc(LATENCY_MAX, sizeof(uint32_t));
	if (!l.ring[0].ns || !l.ring[1].ns || decoder_new(&l.decoder) < 0)
		die("memory", NULL);
	printf("ready\n");
	fflush(stdout);
	while (l.ring[0].n + l.ring[1].n < wanted) {
		capture_drain(c, false, on_record, &l, &held);
		poll(fds, 2, held ? 1 : CAPTURE_TICK_MS);
		if (fds[1].revents && read(STDIN_FILENO, b, sizeof(b)) <= 0)
			break;
	}
	printf("{");
	report("urgent", l.ring[0].ns, l.ring[0].n);
	report("rest", l.ring[1].ns, l.ring[1].n);
	printf("\"wanted\":%zu}\n", wanted);
	decoder_free(l.decoder);
	arena_done(&l.arena);
	free(l.ring[0].ns);
	free(l.ring[1].ns);
}

int main(int argc, char **argv)
{
	bool latency = argc > 2 && strcmp(argv[1], "--latency") == 0;
	struct capture *c = NULL;
	struct err err = { 0 };
	int at = latency ? 3 : 2;

	if (argc < 2) {
		fprintf(stderr, "usage: watcher BUNDLE [CGROUP] | watcher --latency N [CGROUP]\n");
		return 2;
	}
	if (capture_open(&c, &(struct capture_options){ .quiet_libbpf = true }, &err) < 0)
		die("probes", &err);
	watch(c, argc > at ? argv[at] : NULL);
	if (latency)
		run_latency(c, strtoul(argv[2], NULL, 10));
	else
		run_engine(c, argv[1]);
	capture_close(c);
	return 0;
}
