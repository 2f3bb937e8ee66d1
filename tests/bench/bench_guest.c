// SPDX-License-Identifier: Apache-2.0
/* What a gVisor sandbox tells of itself: CPU time to read one message and to make its record, and how many are lost when a
 * sender that behaves as gVisor's does sends 50,000 a second and one core drains them. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/gvisor/guest.h"
#include "runtime/gvisor/points.h"
#include "runtime/gvisor/sink.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/event/seccheck.h"
#include "userspace/pipeline/guest.h"

#define ROUNDS	50000
#define TURNS	20 /* of which the best counts: what else runs here is none of it */
#define RATE	50000
#define SECONDS 3

static void varint(struct buf *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		buf_addc(b, (char)(v | 0x80));
	buf_addc(b, (char)v);
}

static void num(struct buf *b, unsigned field, uint64_t v)
{
	varint(b, field << 3);
	varint(b, v);
}

static void bytes(struct buf *b, unsigned field, const void *p, size_t n)
{
	varint(b, field << 3 | 2);
	varint(b, n);
	buf_add(b, p, n);
}

/* openat(".../module.py", O_WRONLY | O_CREAT), as 20221219 sends it. */
static void make_open(struct buf *out)
{
	static const char head[8] = { 8, 0, SECCHECK_OPEN };
	auto_buf struct buf c = { 0 }, x = { 0 };

	num(&c, 1, clock_real_ns());
	num(&c, 2, 17);
	num(&c, 4, 17);
	num(&c, 5, clock_real_ns());
	bytes(&c, 7, "\x08\xe8\x07\x10\xe8\x07", 6);
	bytes(&c, 8, "/workspace/project", 18);
	bytes(&c, 9, "python3", 7);
	num(&x, 1, 5);
	buf_add(out, head, sizeof(head));
	bytes(out, 1, c.p, c.n);
	bytes(out, 2, x.p, x.n);
	num(out, 3, 257);
	num(out, 4, (uint64_t)-100);
	bytes(out, 6, "build/lib/module.py", 19);
	num(out, 7, 0101);
	num(out, 8, 0644);
}

static int nothing(void *arg, const void *rec, size_t len)
{
	__asm__ volatile("" ::"r"(rec), "r"(len) : "memory");
	(void)arg;
	return 0;
}

static void decode(void *arg, struct str packet)
{
	struct seccheck_msg m;

	(void)arg;
	seccheck_parse(packet, &m);
	__asm__ volatile("" ::"r"(&m) : "memory");
}

struct recorded {
	struct guest *g;
	uint64_t boot;
	int64_t offset;
};

static void make_record(void *arg, struct str packet)
{
	struct recorded *r = arg;

	guest_packet(r->g, packet, r->boot, r->offset);
}

static double best(void (*fn)(void *, struct str), void *arg, struct str packet)
{
	uint64_t least = UINT64_MAX, from;

	for (int turn = 0; turn < TURNS; turn++) {
		from = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
		for (int i = 0; i < ROUNDS; i++)
			fn(arg, packet);
		least = MIN(least, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - from);
	}
	return (double)least / ROUNDS;
}

static void bench_decode(struct str packet)
{
	struct guest_options opt = { .sandbox_id = 1, .feed = nothing };
	struct recorded r = { .boot = clock_boot_ns() };

	printf("gVisor: decode a message of %zu bytes\t%.0f\tns\t<= 150\n", packet.n,
	       best(decode, NULL, packet));
	opt.real_offset_ns = r.offset = (int64_t)(clock_real_ns() - r.boot);
	if (guest_new(&r.g, &opt) < 0)
		exit(1);
	printf("gVisor: its record besides\t%.0f\tns\t-\n", best(make_record, &r, packet));
	guest_free(r.g);
}

/* As pkg/sentry/seccheck/sinks/remote: a message that does not fit is tried again `retries` times, each time after twice
 * the time, and then dropped. */
static void send_all(const char *path, struct str packet)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char *copy = malloc(packet.n);
	uint32_t dropped = 0;
	uint64_t begun;
	char b[8];

	memcpy(copy, packet.p, packet.n);
	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || send(fd, "\x08\x01", 2, 0) != 2 ||
	    recv(fd, b, sizeof(b), 0) != 2)
		_exit(1);
	begun = clock_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; i < RATE * SECONDS; i++) {
		uint64_t wait = 25000;
		int tries;

		while (clock_ns(CLOCK_MONOTONIC) < begun + i * (NSEC_PER_SEC / RATE))
			sched_yield();
		memcpy(copy + 4, &dropped, sizeof(dropped));
		for (tries = 0; send(fd, copy, packet.n, MSG_DONTWAIT) < 0; tries++) {
			if (tries == GVISOR_SINK_RETRIES) {
				dropped++;
				break;
			}
			nanosleep(&(struct timespec){ .tv_nsec = (long)wait }, NULL);
			wait = MIN(wait * 2, 10 * NSEC_PER_MSEC);
		}
	}
	memcpy(copy + 4, &dropped, sizeof(dropped)); /* one more, to tell of the last ones */
	send(fd, copy, packet.n, 0);
	_exit(0);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void bench_drain(struct str packet)
{
	struct guest_options go = { .sandbox_id = 1, .feed = nothing };
	char dir[] = "/tmp/bench-guest-XXXXXX", sub[64];
	struct gvisor_sink_options so = { 0 };
	struct gvisor_sink_stats st = { 0 };
	struct gvisor_guest *made = NULL;
	struct gvisor_sink *sink = NULL;
	struct guest_stats gs = { 0 };
	struct gvisor_packet p;
	struct err err = { 0 };
	struct guest *g = NULL;
	uint64_t from, cpu;
	pid_t pid;

	if (!mkdtemp(dir))
		exit(1);
	snprintf(sub, sizeof(sub), "%s/g", dir);
	go.real_offset_ns = (int64_t)(clock_real_ns() - clock_boot_ns());
	if (gvisor_guest_new(&made, sub, 0, &err) < 0 || guest_new(&g, &go) < 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		pin(1);
		send_all(gvisor_guest_view(made)->sink, packet);
	}
	pin(0); /* the thread, too */
	so.listen_fd = dup(gvisor_guest_listen_fd(made));
	so.news_fd = -1;
	if (gvisor_sink_start(&sink, &so, &err) < 0)
		exit(1);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	from = clock_ns(CLOCK_MONOTONIC);
	while (st.state != GVISOR_SINK_CLOSED) {
		struct pollfd pfd = { .fd = gvisor_sink_fd(sink), .events = POLLIN };

		gvisor_sink_stats(sink, &st);
		while (gvisor_sink_next(sink, &p))
			guest_packet(g, p.bytes, p.boot_ns, go.real_offset_ns);
		if (st.state != GVISOR_SINK_CLOSED)
			poll(&pfd, 1, 1000);
	}
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	from = clock_ns(CLOCK_MONOTONIC) - from;
	waitpid(pid, NULL, 0);
	guest_stats(g, &gs);
	printf("gVisor: messages a second that one core drained\t%.0f\t1/s\t>= 49000\n",
	       (double)gs.packets * NSEC_PER_SEC / (double)from);
	printf("gVisor: of %d, dropped at `retries` %d\t%llu\t-\t<= 0\n", RATE * SECONDS,
	       GVISOR_SINK_RETRIES, (unsigned long long)gs.dropped);
	printf("gVisor: CPU time of a message, off the socket to its record\t%.0f\tns\t-\n",
	       (double)cpu / (double)gs.packets);
	gvisor_sink_free(sink);
	guest_free(g);
	gvisor_guest_free(made);
	rmdir(dir);
}

int main(void)
{
	auto_buf struct buf packet = { 0 };

	make_open(&packet);
	bench_decode((struct str){ packet.p, packet.n });
	fflush(stdout);
	bench_drain((struct str){ packet.p, packet.n });
	return 0;
}
