// SPDX-License-Identifier: Apache-2.0
#include "runtime/gvisor/sink.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/event/seccheck.h"

/* In front of each packet in the ring. */
struct slot {
	uint32_t n;
	uint16_t wrap; /* nothing more up to the end of the ring */
	uint8_t is_answer, was_full;
	uint64_t boot_ns;
};

/* A multiple of a slot's head: one always fits in what is left of the ring. */
#define SLOT(n)		((sizeof(struct slot) + (n) + 15) & ~(size_t)15)
#define SLOT_MAX	SLOT(SECCHECK_PACKET_MAX + 1)
#define HELLO_MAX	64
#define CGROUP_TEXT_MAX 65536 /* of /proc/PID/cgroup */
#define TURN		256   /* packets before the listening socket is looked at again */

struct gvisor_sink {
	struct gvisor_sink_options opt;
	pthread_t thread;
	bool started;
	int event; /* to the reader: there is something */
	int kick;  /* to the thread: there is room, or it is to end */
	bool ending;
	char *ring;
	size_t size;
	/* Positions only grow; those of the thread and of the reader lie in lines of their own. */
	__attribute__((aligned(64))) uint64_t head; /* written up to here, by the thread */
	uint64_t at;				    /* where the next packet goes */
	int conn;
	uint64_t hello_end; /* CLOCK_MONOTONIC */
	bool waits_for_room;
	bool asked;	/* by the reader */
	size_t backlog; /* taken since the socket was empty */
	uint64_t full_at;
	struct gvisor_news who;
	struct gvisor_sink_stats stats;
	__attribute__((aligned(64))) uint64_t tail; /* read up to here, by the reader */
	uint64_t next; /* where it will be once the packet was looked at */
	bool asleep;   /* the reader wants to be woken */
	bool told_closed;
};

#define LOAD(x)	    __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define COUNT(x)    __atomic_store_n(&(x), (x) + 1, __ATOMIC_RELAXED) /* one thread writes */

static void wake(struct gvisor_sink *s)
{
	eventfd_write(s->event, 1);
}

static void tell(const struct gvisor_sink *s, const struct gvisor_news *news)
{
	if (s->opt.news_fd >= 0)
		(void)!send(s->opt.news_fd, news, sizeof(*news), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void set_state(struct gvisor_sink *s, enum gvisor_sink_state state)
{
	STORE(s->stats.state, state);
	wake(s);
}

/* ---- connections ---- */

static void hang_up(struct gvisor_sink *s)
{
	close(take_fd(s->conn));
	set_state(s, GVISOR_SINK_CLOSED);
}

static void refuse(struct gvisor_sink *s, int fd)
{
	COUNT(s->stats.strangers);
	close(fd);
	wake(s);
	if (s->stats.strangers >= GVISOR_STRANGERS_MAX)
		close(take_fd(s->opt.listen_fd));
}

/* "0::/warder/<session>" is a line of its own. Who is there is alive: it waits for our answer. */
static bool is_of_sandbox(const struct gvisor_sink *s, pid_t pid)
{
	auto_free char *text = NULL;
	char path[48], *line, *name;

	if (!s->opt.cgroup)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (pid <= 0 || file_read_at(AT_FDCWD, path, CGROUP_TEXT_MAX, &text, NULL) < 0)
		return false;
	line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	if (!line)
		return false;
	line += *line == '\n';
	line[strcspn(line, "\n")] = 0;
	name = strrchr(line, '/');
	return name && strcmp(name + 1, s->opt.cgroup) == 0;
}

static void greet(struct gvisor_sink *s)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);
	int fd = accept4(s->opt.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (s->stats.state != GVISOR_SINK_WAITING ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || !is_of_sandbox(s, peer.pid)) {
		refuse(s, fd);
		return;
	}
	s->conn = fd;
	s->who = (struct gvisor_news){ .what = GVISOR_NEWS_OPEN, .pid = peer.pid, .uid = peer.uid };
	s->hello_end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)s->opt.handshake_ms * NSEC_PER_MSEC;
	set_state(s, GVISOR_SINK_GREETED);
}

static void bad_hello(struct gvisor_sink *s)
{
	COUNT(s->stats.bad_hello);
	hang_up(s);
}

static void hear_hello(struct gvisor_sink *s)
{
	static const char answer[] = { 0x08, SECCHECK_VERSION };
	char b[HELLO_MAX];
	ssize_t n = recv(s->conn, b, sizeof(b), MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || n > (ssize_t)sizeof(b) || !seccheck_handshake((struct str){ b, (size_t)n }) ||
	    send(s->conn, answer, sizeof(answer), MSG_NOSIGNAL) != (ssize_t)sizeof(answer)) {
		bad_hello(s);
		return;
	}
	set_state(s, GVISOR_SINK_OPEN);
	tell(s, &s->who);
}

/* ---- the ring ---- */

static struct slot *slot_at(const struct gvisor_sink *s, uint64_t pos)
{
	return (struct slot *)(void *)(s->ring + (pos & (s->size - 1)));
}

/* Room for the largest packet in one piece at s->at, or NULL. What is in front of it is published with the packet. */
static struct slot *room(struct gvisor_sink *s)
{
	size_t free_n = s->size - (s->head - LOAD(s->tail));
	size_t to_end = s->size - (s->head & (s->size - 1));

	s->at = s->head;
	if (to_end < SLOT_MAX) {
		if (free_n < to_end + SLOT_MAX)
			return NULL;
		*slot_at(s, s->head) = (struct slot){ .wrap = 1 };
		s->at += to_end;
		return slot_at(s, s->at);
	}
	return free_n < SLOT_MAX ? NULL : slot_at(s, s->at);
}

/* 1: took one; 0: nothing there; -1: the end. */
static int take(struct gvisor_sink *s, struct slot *at)
{
	ssize_t n = recv(s->conn, at + 1, SECCHECK_PACKET_MAX + 1, MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	if (n > (ssize_t)SECCHECK_PACKET_MAX) {
		COUNT(s->stats.oversize);
		return 1;
	}
	*at = (struct slot){ .n = (uint32_t)n, .boot_ns = clock_boot_ns() };
	s->backlog += (size_t)n + GVISOR_FULL_PACKET;
	COUNT(s->stats.packets);
	__atomic_store_n(&s->stats.bytes, s->stats.bytes + (uint64_t)n, __ATOMIC_RELAXED);
	STORE(s->head, s->at + SLOT((size_t)n));
	if (LOAD(s->asleep)) {
		STORE(s->asleep, false);
		wake(s);
	}
	return 1;
}

/* The socket was empty at `boot_ns`, or there will be nothing more. */
static void answer(struct gvisor_sink *s, uint64_t boot_ns)
{
	struct slot *at = room(s);

	if (!at)
		return; /* once there is room */
	STORE(s->asked, false);
	*at = (struct slot){ .is_answer = 1,
			     .was_full = s->full_at && boot_ns - s->full_at < GVISOR_FULL_NS,
			     .boot_ns = boot_ns };
	STORE(s->head, s->at + SLOT(0));
	STORE(s->asleep, false);
	wake(s);
}

static void emptied(struct gvisor_sink *s, uint64_t boot_ns)
{
	if (s->backlog >= GVISOR_FULL_BYTES)
		STORE(s->full_at, clock_boot_ns());
	s->backlog = 0;
	if (boot_ns)
		answer(s, boot_ns);
}

static void take_packets(struct gvisor_sink *s)
{
	for (int i = 0; i < TURN; i++) {
		struct slot *at = room(s);
		uint64_t before = LOAD(s->asked) ? clock_boot_ns() : 0;
		int got;

		if (!at) {
			COUNT(s->stats.full);
			STORE(s->waits_for_room, true);
			if (!room(s)) { /* else: it was made just before the reader knew */
				wake(s);
				return;
			}
			STORE(s->waits_for_room, false);
			continue;
		}
		got = take(s, at);
		if (got < 0)
			hang_up(s);
		if (got <= 0) {
			emptied(s, before);
			return;
		}
	}
}

static int wait_ms(const struct gvisor_sink *s)
{
	uint64_t now;

	if (s->stats.state != GVISOR_SINK_GREETED)
		return -1;
	now = clock_ns(CLOCK_MONOTONIC);
	return s->hello_end > now ? (int)((s->hello_end - now) / NSEC_PER_MSEC + 1) : 0;
}

static void *run(void *arg)
{
	struct gvisor_sink *s = arg;

	while (!LOAD(s->ending)) {
		struct pollfd fds[] = {
			{ .fd = s->kick, .events = POLLIN },
			{ .fd = s->opt.listen_fd, .events = POLLIN },
			{ .fd = LOAD(s->waits_for_room) ? -1 : s->conn, .events = POLLIN },
		};
		eventfd_t n;

		if (poll(fds, ARRAY_SIZE(fds), wait_ms(s)) < 0 && errno != EINTR)
			break;
		if (fds[0].revents)
			eventfd_read(s->kick, &n);
		if (fds[2].revents && s->stats.state == GVISOR_SINK_GREETED)
			hear_hello(s);
		else if (fds[2].revents || (LOAD(s->asked) && s->stats.state == GVISOR_SINK_OPEN))
			take_packets(s);
		else if (LOAD(s->asked) && s->stats.state == GVISOR_SINK_CLOSED)
			answer(s, clock_boot_ns());
		else if (wait_ms(s) == 0)
			bad_hello(s);
		if (fds[1].revents)
			greet(s);
	}
	return NULL;
}

/* ---- for the engine ---- */

int gvisor_sink_start(struct gvisor_sink **ret, const struct gvisor_sink_options *opt,
		      struct err *err)
{
	struct gvisor_sink *s = aligned_alloc(64, (sizeof(*s) + 63) & ~(size_t)63);
	int e;

	if (!s)
		return err_set(err, ENOMEM, "guest's events: %m");
	memset(s, 0, sizeof(*s));
	s->opt = *opt;
	s->conn = -1;
	s->size = opt->ring ? opt->ring : GVISOR_RING_DEFAULT;
	if (!s->opt.handshake_ms)
		s->opt.handshake_ms = GVISOR_HANDSHAKE_MS;
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->ring = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	e = s->ring == MAP_FAILED || s->event < 0 || s->kick < 0
		    ? errno
		    : pthread_create(&s->thread, NULL, run, s);
	if (e) {
		gvisor_sink_free(s);
		return err_set(err, e, "guest's events: %m");
	}
	s->started = true;
	*ret = s;
	return 0;
}

void gvisor_sink_free(struct gvisor_sink *s)
{
	int fds[5];

	if (!s)
		return;
	if (s->started) {
		STORE(s->ending, true);
		eventfd_write(s->kick, 1);
		pthread_join(s->thread, NULL);
	}
	memcpy(fds, (int[]){ s->event, s->kick, s->conn, s->opt.listen_fd, s->opt.news_fd },
	       sizeof(fds));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (s->ring != MAP_FAILED)
		munmap(s->ring, s->size);
	free(s);
}

int gvisor_sink_fd(const struct gvisor_sink *s)
{
	return s ? s->event : -1;
}

/* What was looked at makes room. */
static void give_back(struct gvisor_sink *s)
{
	if (s->tail == s->next)
		return;
	STORE(s->tail, s->next);
	if (LOAD(s->waits_for_room)) {
		STORE(s->waits_for_room, false);
		eventfd_write(s->kick, 1);
	}
}

void gvisor_sink_ask(struct gvisor_sink *s)
{
	STORE(s->asked, true);
	eventfd_write(s->kick, 1);
}

bool gvisor_sink_was_full(const struct gvisor_sink *s)
{
	uint64_t at = LOAD(s->full_at);

	return at && clock_boot_ns() - at < GVISOR_FULL_NS;
}

void gvisor_sink_tell(const struct gvisor_sink *s, enum gvisor_news_what what, uint32_t status)
{
	tell(s, &(struct gvisor_news){ .what = what, .status = status });
}

bool gvisor_sink_next(struct gvisor_sink *s, struct gvisor_packet *ret)
{
	const struct slot *at;
	bool closed;
	eventfd_t n;

	give_back(s);
	if (s->tail == LOAD(s->head)) {
		eventfd_read(s->event, &n);
		STORE(s->asleep, true);
		closed = LOAD(s->stats.state) == GVISOR_SINK_CLOSED;
		if (s->tail == LOAD(s->head)) {
			/* Behind all that was said before. */
			if (closed && !s->told_closed)
				gvisor_sink_tell(s, GVISOR_NEWS_CLOSED, 0);
			s->told_closed |= closed;
			return false;
		}
		STORE(s->asleep, false);
	}
	at = slot_at(s, s->next);
	if (at->wrap) {
		s->next += s->size - (s->next & (s->size - 1));
		at = slot_at(s, s->next);
	}
	*ret = (struct gvisor_packet){
		{ (const char *)(at + 1), at->n }, at->boot_ns, at->is_answer, at->was_full
	};
	s->next += SLOT(at->n);
	return true;
}

void gvisor_sink_stats(const struct gvisor_sink *s, struct gvisor_sink_stats *ret)
{
	*ret = (struct gvisor_sink_stats){
		.state = LOAD(s->stats.state),
		.packets = __atomic_load_n(&s->stats.packets, __ATOMIC_RELAXED),
		.bytes = __atomic_load_n(&s->stats.bytes, __ATOMIC_RELAXED),
		.strangers = __atomic_load_n(&s->stats.strangers, __ATOMIC_RELAXED),
		.bad_hello = __atomic_load_n(&s->stats.bad_hello, __ATOMIC_RELAXED),
		.oversize = __atomic_load_n(&s->stats.oversize, __ATOMIC_RELAXED),
		.full = __atomic_load_n(&s->stats.full, __ATOMIC_RELAXED),
	};
}
