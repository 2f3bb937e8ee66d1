// SPDX-License-Identifier: Apache-2.0
/* The guest's view in the engine: packets become records, and what is wrong with the view itself becomes an event, too.
 * A sentry that is in the guest's hands shows in what it does to its own connection. */
#include "userspace/pipeline/engine_part.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"

#define CLOSED_WAIT_NS (200 * NSEC_PER_MSEC) /* a record of the host's kernel is here long before */
#define OFFSET_TRIES   8
#define OFFSET_GOOD_NS 1000
#define LAST_MS	       5000 /* for what lies in the socket, once all of the sandbox is dead */

/* Between the readings another process may have its turn: of some the one that lasted least. */
static int64_t real_offset(void)
{
	uint64_t least = UINT64_MAX;
	int64_t offset = 0;

	for (int i = 0; i < OFFSET_TRIES && least > OFFSET_GOOD_NS; i++) {
		uint64_t from = clock_boot_ns(), real = clock_real_ns(),
			 took = clock_boot_ns() - from;

		if (took >= least)
			continue;
		least = took;
		offset = (int64_t)(real - from - took / 2);
	}
	return offset;
}

static int feed(void *arg, const void *rec, size_t len)
{
	struct engine *e = arg;

	return pipeline_feed(e->pipeline, rec, len);
}

int engine_guest_start(struct engine *e, struct err *err)
{
	const struct session_options *so = &e->opt->session;
	const struct gvisor_sink_options opt = {
		.listen_fd = e->opt->guest_fds[0],
		.news_fd = e->opt->guest_fds[1],
		.cgroup = so->session,
	};
	const struct guest_options go = {
		.sandbox_id = so->sandbox_id,
		.real_offset_ns = so->real_offset_ns,
		.since_ns = clock_boot_ns(),
		.watch = so->watch,
		.watch_n = so->watch_n,
		.has_mirror = e->opt->guest_mirror,
		.has_net = e->opt->guest_net,
		.feed = feed,
		.arg = e,
	};
	int r;

	if (opt.listen_fd < 0)
		return 0;
	r = guest_new(&e->guest.guest, &go);
	if (r < 0)
		return err_set(err, r, "guest's events: %m");
	return gvisor_sink_start(&e->guest.sink, &opt, err);
}

void engine_guest_free(struct engine *e)
{
	gvisor_sink_free(e->guest.sink);
	guest_free(e->guest.guest);
}

/* Not by a process that is known: by the connection. */
static void suspect(struct engine *e, enum wire_escape_type type, const char *what)
{
	struct {
		struct wire_escape w;
		char text[256];
	} rec = { .w = { .h = { .kind = WIRE_ESCAPE,
				.len = sizeof(rec),
				.ts = clock_boot_ns(),
				.sandbox = e->opt->session.sandbox_id,
				.nr = WIRE_NR_NONE,
				.ring = WIRE_RING_NONE,
				.vantage = WIRE_V_AGENT },
			 .type = type } };

	snprintf(rec.text, sizeof(rec.text), "%s", what);
	rec.w.detail = (struct wire_str){ sizeof(rec.w), (uint16_t)strlen(rec.text) };
	pipeline_feed(e->pipeline, &rec, sizeof(rec));
}

static void lost(struct engine *e, uint64_t n)
{
	uint64_t now = clock_boot_ns();
	const struct capture_gap gap = {
		.sandbox = e->opt->session.sandbox_id,
		.count = n,
		.first_ts = now,
		.last_ts = now,
		.guest = true,
	};

	if (n)
		pipeline_gaps(e->pipeline, &gap, 1);
}

/* A ring that was full has cost the guest time, and nothing is lost by it. */
static void waited(struct engine *e, uint64_t n)
{
	const struct limit_hit hit = { .type = WIRE_LIMIT_EVENTS,
				       .count = (uint32_t)MIN(n, (uint64_t)UINT32_MAX) };
	auto_buf struct buf rec = { 0 };

	if (n && record_limit(&rec, e->opt->session.sandbox_id, &hit) == 0)
		pipeline_feed(e->pipeline, rec.p, rec.n);
}

static void look_at_sink(struct engine *e, const struct gvisor_sink_stats *now)
{
	struct gvisor_sink_stats *seen = &e->guest.seen;

	if (now->strangers > seen->strangers)
		suspect(e, WIRE_ESCAPE_HANDSHAKE,
			"somebody else connected as this sandbox's sentry");
	if (now->bad_hello > seen->bad_hello)
		suspect(e, WIRE_ESCAPE_HANDSHAKE,
			"the sentry's connection was not what it should be");
	lost(e, now->oversize - seen->oversize);
	if (now->oversize > seen->oversize && !seen->oversize)
		suspect(e, WIRE_ESCAPE_GUEST_DIVERGENCE,
			"the sentry sent a message larger than a sentry can");
	waited(e, now->full - seen->full);
	*seen = *now;
}

static void look_at_guest(struct engine *e)
{
	struct guest_stats now, *told = &e->guest.told;

	guest_stats(e->guest.guest, &now);
	lost(e, now.dropped - told->dropped);
	lost(e, now.unseen - told->unseen);
	if (now.drops_back > told->drops_back && !told->drops_back)
		suspect(e, WIRE_ESCAPE_GUEST_DIVERGENCE,
			"the sentry's count of lost messages went backwards");
	lost(e, now.bad - told->bad);
	if (now.bad > told->bad && !told->bad)
		suspect(e, WIRE_ESCAPE_GUEST_DIVERGENCE, "the sentry sent a message that is none");
	if (now.is_blind && !told->is_blind)
		pipeline_audit(e->pipeline, e->opt->session.sandbox_id, WIRE_AUDIT_DEGRADED,
			       "gvisor.mirror: from here on the two views are not compared: more "
			       "was on its way than is kept, or the guest answers calls itself",
			       NULL, 0);
	if (now.started && !told->started)
		gvisor_sink_tell(e->guest.sink, GVISOR_NEWS_STARTED, 0);
	if (now.ended && !told->ended)
		gvisor_sink_tell(e->guest.sink, GVISOR_NEWS_ENDED, now.status);
	*told = now;
}

bool engine_guest_note(struct engine *e, const void *rec, size_t len)
{
	struct wire_hdr h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, rec, sizeof(h));
	if (h.kind == WIRE_MIRROR) {
		guest_mirror(e->guest.guest, rec, len, clock_boot_ns());
		return true;
	}
	if (h.kind == WIRE_EXIT && h.vantage == WIRE_V_KERNEL &&
	    (h.flags & WIRE_F_PART) >> WIRE_PART_SHIFT == GVISOR_SENTRY)
		e->guest.sentry_ended = true;
	return false;
}

/* Its descriptors go when the last of its threads does, and that was told before: a connection that ends without is one
 * that was closed by a sentry that runs on, unseen. */
static void look_at_end(struct engine *e, const struct gvisor_sink_stats *now)
{
	struct engine_guest *g = &e->guest;

	if (now->state != GVISOR_SINK_CLOSED || g->sentry_ended || g->closed_told ||
	    !g->told.started)
		return;
	if (!g->closed_at) {
		g->closed_at = clock_boot_ns();
	} else if (clock_boot_ns() - g->closed_at >= CLOSED_WAIT_NS) {
		g->closed_told = true;
		suspect(e, WIRE_ESCAPE_GUEST_DIVERGENCE,
			"the sentry closed its connection and runs on");
	}
}

void engine_guest_check(struct engine *e)
{
	struct gvisor_sink_stats now;

	if (!e->guest.sink)
		return;
	gvisor_sink_stats(e->guest.sink, &now);
	look_at_sink(e, &now);
	look_at_end(e, &now);
	guest_tick(e->guest.guest, clock_boot_ns());
	look_at_guest(e);
}

uint64_t engine_guest_deadline(const struct engine *e)
{
	const struct engine_guest *g = &e->guest;

	if (g->closed_at && !g->closed_told && !g->sentry_ended)
		return g->closed_at + CLOSED_WAIT_NS;
	return g->guest ? guest_deadline(g->guest) : UINT64_MAX;
}

void engine_guest_processes(struct engine *e, int fd)
{
	auto_close int own = fd;
	auto_free char *text = NULL;
	size_t n = 0;
	int r = e->guest.guest && own >= 0 ? 0 : -ENOENT;

	if (r == 0 && lseek(own, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = fd_read_text(own, GUEST_KNOWN_MAX, &text, &n);
	if (r == 0)
		r = guest_known(e->guest.guest, (struct str){ text, n }, clock_boot_ns());
	if (r < 0) /* and they do not go on */
		suspect(e, WIRE_ESCAPE_GUEST_DIVERGENCE,
			"the sentry did not say which processes were kept");
	else
		look_at_guest(e);
}

void engine_guest_died(struct engine *e, const struct run_facts *facts, const struct outcome *o)
{
	if (e->guest.sink && facts->died && !strcmp(o->reason, "signal"))
		suspect(e, WIRE_ESCAPE_RUNTIME_KILLED,
			"somebody killed gVisor while its guest ran");
}

/* All but what is still on its way. */
static bool read_some(struct engine *e, size_t max)
{
	int64_t offset = real_offset();
	struct gvisor_packet p;

	for (size_t i = 0; i < max; i++) {
		if (!gvisor_sink_next(e->guest.sink, &p))
			return false;
		if (p.is_answer) {
			guest_quiet(e->guest.guest, p.was_full, false);
			continue;
		}
		guest_packet(e->guest.guest, p.bytes, p.boot_ns, offset);
		/* The sink tells of its end when it is asked for what is not there: all else is told before. */
		if (guest_stage(e->guest.guest) !=
		    (unsigned)e->guest.told.started + e->guest.told.ended)
			look_at_guest(e);
	}
	return true;
}

/* The thread sees the end of the connection only behind all that was sent. */
static void read_all(struct engine *e)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + LAST_MS * NSEC_PER_MSEC;
	struct pollfd pfd = { .fd = gvisor_sink_fd(e->guest.sink), .events = POLLIN };
	struct gvisor_sink_stats st;
	uint64_t now;

	for (;;) {
		gvisor_sink_stats(e->guest.sink, &st);
		read_some(e, SIZE_MAX);
		now = clock_ns(CLOCK_MONOTONIC);
		if (st.state == GVISOR_SINK_CLOSED || st.state == GVISOR_SINK_WAITING || now >= end)
			return;
		poll(&pfd, 1, (int)((end - now) / NSEC_PER_MSEC + 1));
	}
}

/* Nobody is left on either side. */
static void settle(struct engine *e)
{
	struct gvisor_sink_stats st;

	gvisor_sink_stats(e->guest.sink, &st);
	guest_host_read(e->guest.guest, UINT64_MAX);
	if (st.state == GVISOR_SINK_CLOSED)
		guest_quiet(e->guest.guest, gvisor_sink_was_full(e->guest.sink), true);
}

void engine_guest_host_read(struct engine *e, uint64_t boot_ns)
{
	if (e->guest.guest)
		guest_host_read(e->guest.guest, boot_ns);
}

bool engine_guest_read(struct engine *e, bool all)
{
	bool more = false;

	if (!e->guest.sink)
		return false;
	if (all) {
		read_all(e);
		settle(e);
	} else {
		more = read_some(e, GUEST_PACKETS_TURN);
		if (guest_wants_quiet(e->guest.guest, clock_boot_ns()))
			gvisor_sink_ask(e->guest.sink);
	}
	engine_guest_check(e);
	return more;
}
