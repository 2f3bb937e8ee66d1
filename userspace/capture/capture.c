/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing the kernel's side: load, choose, attach, map. */
#include "userspace/capture/capture.h"

#include <bpf/bpf.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/capture/gvisor_parts.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/ktypes.h"
#include "warder.skel.h"

#define BTF_PATH      "/sys/kernel/btf/vmlinux"
#define URGENT_BYTES  ((size_t)4 << 20)
#define BULK_BYTES    ((size_t)8 << 20)
#define WAKE_BYTES    ((size_t)256 << 10)
#define WAKE_PART     8	 /* of a small ring, that is enough to wake */
#define LOAD_ROUNDS   20 /* more than there are things to find wanting one by one */
#define PRESSED_BYTES (SANDBOXES_MAX * sizeof(uint64_t))
#define READ_SLACK_NS \
	2000 /* a store and a clock read of another CPU may pass each other by that much */

DEFINE_AUTO(capture, capture_close)

static int load_error(int r, const char *why, struct err *err)
{
	if (access(BTF_PATH, R_OK) != 0)
		return err_set(err, ENOENT,
			       "this kernel gives no type information (" BTF_PATH
			       "): it needs CONFIG_DEBUG_INFO_BTF=y");
	if (r == -EPERM && geteuid() != 0)
		return err_set(
			err, EPERM,
			"loading probes needs root, or CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN");
	return err_set(err, r, "loading probes: %s%s%s", strerror(-r), *why ? ": " : "", why);
}

static int open_object(struct capture *c, const struct capture_options *opt, struct err *err)
{
	size_t urgent = opt && opt->urgent_bytes ? opt->urgent_bytes : URGENT_BYTES;
	size_t bulk = opt && opt->bulk_bytes ? opt->bulk_bytes : BULK_BYTES;
	uint64_t bits[GVISOR_PARTS][GVISOR_WORDS];
	uint32_t first[8] = { 0 };
	uint64_t seed;

	c->skel = warder__open();
	if (!c->skel)
		return err_set(err, errno, "probes: %m");
	bpf_map__set_max_entries(c->skel->maps.urgent, (uint32_t)urgent);
	bpf_map__set_max_entries(c->skel->maps.bulk, (uint32_t)bulk);
	if (opt && opt->shared)
		share_prepare(c->skel);
	choose_programs(c->hooks.types, c->skel->obj);
	c->skel->rodata->has_cast = ktypes_func(c->hooks.types, "bpf_rdonly_cast") >= 0;
	enforce_prepare(c->skel, opt && opt->enforce);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return err_set(err, errno, "probes: no random number: %m");
	c->skel->rodata->made_seed = seed;
	c->skel->rodata->wake_bytes = (__u32)MIN(WAKE_BYTES, MIN(urgent, bulk) / WAKE_PART);
	c->skel->rodata->ring_bytes[WIRE_RING_URGENT] = bpf_map__max_entries(c->skel->maps.urgent);
	c->skel->rodata->ring_bytes[WIRE_RING_BULK] = bpf_map__max_entries(c->skel->maps.bulk);
	metadata_first_bytes(first);
	memcpy((void *)c->skel->rodata->metadata_first, first, sizeof(first));
	c->skel->rodata->watchlist_mode = c->watchlist ? c->watchlist->mode : 0;
	if (opt && opt->gvisor) {
		gvisor_baseline_fill(bits, opt->gvisor_net);
		memcpy((void *)c->skel->rodata->gvisor_baseline, bits, sizeof(bits));
		c->skel->rodata->mirror_stubs = opt->gvisor_mirror;
	} else {
		bpf_program__set_autoload(c->skel->progs.on_gvisor_call, false);
		bpf_program__set_autoload(c->skel->progs.on_gvisor_end, false);
		bpf_program__set_autoload(c->skel->progs.on_mirror, false);
	}
	hooks_choose(&c->hooks, c->skel);
	return 0;
}

/* -EAGAIN: a program or a way was found wanting, and there is another choice. */
static int load_once(struct capture *c, const struct capture_options *opt, struct err *err)
{
	const char *why;
	int r;

	r = open_object(c, opt, err);
	if (r < 0)
		return r;
	libbpf_log_begin(opt && opt->quiet_libbpf);
	r = warder__load(c->skel);
	if (r < 0) {
		why = libbpf_log_reason();
		if ((r == -EPERM && geteuid() != 0) ||
		    hooks_refuse(&c->hooks, c->skel, libbpf_log_program(), why) < 0)
			r = load_error(r, why, err);
		else
			r = -EAGAIN;
	}
	libbpf_log_end();
	if (r < 0)
		return r;
	r = watched_fill(bpf_map__fd(c->skel->maps.watched), err);
	if (r == 0)
		r = metadata_fill(bpf_map__fd(c->skel->maps.metadata), err);
	if (r == 0 && c->watchlist)
		r = watchlist_load(c->watchlist, bpf_map__fd(c->skel->maps.watchlist_paths),
				   bpf_map__fd(c->skel->maps.watchlist_inodes), err);
	return r < 0 ? r : hooks_attach(&c->hooks, c->skel, err);
}

/* What this kernel will not have is left out or replaced, one thing a round. */
static int load(struct capture *c, const struct capture_options *opt, struct err *err)
{
	int r = -EAGAIN;

	if (access(BTF_PATH, R_OK) != 0)
		return load_error(-ENOENT, "", err);
	r = hooks_init(&c->hooks, err);
	if (r < 0)
		return r;
	for (int i = 0; i < LOAD_ROUNDS; i++) {
		r = load_once(c, opt, err);
		if (r != -EAGAIN)
			return r;
		hooks_detach(&c->hooks);
		warder__destroy(c->skel);
		c->skel = NULL;
	}
	return err_set(err, r, "probes: too many were refused by this kernel; the last: %s",
		       c->hooks.refused_n ? c->hooks.refused[c->hooks.refused_n - 1].why : "");
}

int map_shared(struct capture *c, struct err *err)
{
	struct bpf_map *ring_maps[WIRE_RING_COUNT] = { c->skel->maps.urgent, c->skel->maps.bulk };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET };
	size_t i, page = (size_t)sysconf(_SC_PAGESIZE);
	void *p;
	int r;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0)
		return err_set(err, errno, "epoll: %m");
	for (i = 0; i < WIRE_RING_COUNT; i++) {
		int fd = bpf_map__fd(ring_maps[i]);

		r = ring_map(&c->rings[i], fd, bpf_map__max_entries(ring_maps[i]), err);
		if (r < 0)
			return r;
		/* Edge-triggered: held-back or quietly added records must not make it readable. */
		if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
			return err_set(err, errno, "epoll: %m");
	}
	c->counters_bytes = (sizeof(struct counters) + page - 1) & ~(page - 1);
	p = mmap(NULL, c->counters_bytes, PROT_READ, MAP_SHARED,
		 bpf_map__fd(c->skel->maps.counters), 0);
	if (p == MAP_FAILED)
		return err_set(err, errno, "map counters: %m");
	c->counters = p;
	p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(c->skel->maps.sleeper),
		 0);
	if (p == MAP_FAILED)
		return err_set(err, errno, "map sleeper: %m");
	c->sleeper = p;
	p = mmap(NULL, PRESSED_BYTES, PROT_READ, MAP_SHARED, bpf_map__fd(c->skel->maps.pressed), 0);
	if (p == MAP_FAILED)
		return err_set(err, errno, "map pressed: %m");
	c->pressed = p;
	r = libbpf_num_possible_cpus();
	c->cpus = r > 0 && r < COUNTER_CPUS ? (size_t)r : COUNTER_CPUS;
	return 0;
}

void unmap_shared(struct capture *c)
{
	for (size_t i = 0; i < WIRE_RING_COUNT; i++)
		ring_unmap(&c->rings[i]);
	if (c->counters)
		munmap((void *)(uintptr_t)c->counters, c->counters_bytes);
	if (c->sleeper)
		munmap(c->sleeper, (size_t)sysconf(_SC_PAGESIZE));
	if (c->pressed)
		munmap((void *)(uintptr_t)c->pressed, PRESSED_BYTES);
	if (c->epoll_fd >= 0)
		close(take_fd(c->epoll_fd));
	c->counters = NULL;
	c->sleeper = NULL;
	c->pressed = NULL;
}

/* What loading needed, a third of all memory: the kernel's type information, the programs as they stand in our own file
 * (whoever needs them again reads them again), and the holes in the heap. */
static void slim(struct capture *c)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from, to;
	size_t n;

	from = ((uintptr_t)warder__elf_bytes(&n) + page - 1) & ~(page - 1);
	to = (from + n) & ~(page - 1);
	if (n > 2 * page)
		madvise((void *)from, to - page - from, MADV_DONTNEED);
	ktypes_free(c->hooks.types);
	c->hooks.types = NULL;
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

int capture_open(struct capture **ret, const struct capture_options *opt, struct err *err)
{
	AUTO(capture) struct capture *c = NULL;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(err, ENOMEM, "probes: out of memory");
	c->epoll_fd = -1;
	memset(c->hooks.multi, 0xff, sizeof(c->hooks.multi)); /* -1 */
	r = order_init(&c->order);
	if (r < 0)
		return err_set(err, r, "probes: out of memory");
	if (opt && opt->watch_n) {
		c->watchlist = malloc(sizeof(*c->watchlist));
		if (!c->watchlist)
			return err_set(err, ENOMEM, "watched paths: out of memory");
		r = watchlist_compile(c->watchlist, opt->watch, opt->watch_n, err);
		if (r < 0)
			return r;
	}

	r = load(c, opt, err);
	if (r == 0 && opt && opt->shared)
		r = share_init(c, err);
	if (r < 0)
		return r;
	r = map_shared(c, err);
	if (r < 0)
		return r;
	hooks_families(&c->hooks, c);
	c->missed_before = missed_count(c);
	free(c->watchlist); /* the kernel has it */
	c->watchlist = NULL;
	slim(c);
	*ret = take_ptr(c);
	return 0;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	watches_free(c);
	enforce_state_free(c->enforce);
	unmap_shared(c);
	share_done(c);
	hooks_done(&c->hooks);
	warder__destroy(c->skel);
	order_done(&c->order);
	free(c->watchlist);
	free(c);
}

size_t capture_families(const struct capture *c, struct capture_family_state *rows, size_t max)
{
	size_t n = MIN(c->families_n, max);

	memcpy(rows, c->families, n * sizeof(*rows));
	return n;
}

bool capture_sees_refused(const struct capture *c)
{
	return !c->refused_unseen;
}

bool capture_sees_refused_sockets(const struct capture *c)
{
	return !c->sockets_unseen;
}

const char *capture_tier(const struct capture *c)
{
	return c->full ? "full" : "portable";
}

int capture_fd(const struct capture *c)
{
	return c->epoll_fd;
}

static void want(struct capture *c, enum sleeper_wants wants)
{
	__atomic_store_n(&c->sleeper->wants, wants, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void capture_sleep(struct capture *c, bool asleep)
{
	c->deep = asleep;
}

uint32_t capture_pressed(const struct capture *c, uint32_t sandbox)
{
	return (uint32_t)__atomic_load_n(&c->pressed[sandbox % SANDBOXES_MAX], __ATOMIC_ACQUIRE);
}

/* CLOCK_BOOTTIME ns up to which every record is in its ring by now. A CPU says when it began to send
 * one; one that was stopped in the middle (by a hypervisor, say) holds us up for the window only. */
static uint64_t complete_until(const struct capture *c, bool *ret_busy)
{
	uint64_t now = clock_boot_ns(), limit = now - READ_SLACK_NS, since;
	size_t i;

	*ret_busy = false;
	for (i = 0; i < c->cpus; i++) {
		since = __atomic_load_n(&c->counters->cpu[i].since, __ATOMIC_SEQ_CST);
		if (!since)
			continue;
		*ret_busy = true;
		limit = MIN(limit, since == SINCE_UNKNOWN ? 0 : since - 1);
	}
	return MAX(limit, now - ORDER_WINDOW_NS);
}

int capture_drain(struct capture *c, bool flush, capture_fn fn, void *arg, size_t *ret_held)
{
	struct epoll_event ev[WIRE_RING_COUNT];
	uint64_t until;
	size_t more = 0, i;
	bool busy;
	int r;

	want(c, SLEEPER_NOTHING);
	/* Take the edge first, look afterwards: what comes in between makes a new one. */
	(void)!epoll_wait(c->epoll_fd, ev, WIRE_RING_COUNT, 0);
	until = complete_until(c, &busy);
	r = order_drain(&c->order, c->rings, WIRE_RING_COUNT, flush ? UINT64_MAX : until, fn, arg,
			&more);
	/* First say it, then look once more: either we see the record or its CPU sees that we sleep. */
	want(c, c->deep ? SLEEPER_DEEP : SLEEPER_NAP);
	(void)complete_until(c, &busy);
	more += busy;
	for (i = 0; i < WIRE_RING_COUNT; i++)
		more += ring_used(&c->rings[i]) > 0;
	if (ret_held)
		*ret_held = more;
	return r;
}
