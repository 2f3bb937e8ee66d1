// SPDX-License-Identifier: Apache-2.0
/* One set of programs for many sessions. Each is a child of whoever loaded them, made by fork: its descriptors of
 * maps and links are the same objects. In place of the rings, the counters and the sleeper that the programs were loaded
 * with it gets its own, under the same descriptor numbers, and the kernel finds them by its sandbox's id. Keys
 * and rows of enforcement come from a range of numbers for each id.
 *
 * Nobody counts who is there. A link or a map lives while anybody has it; the entries of a session that has ended are
 * taken out by capture_forget, which goes by the id alone and so does the same for one that was killed. */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

#define ROW_OF_PLACE 0x80000000u

static inline void free_link(struct bpf_link **l)
{
	bpf_link__destroy(*l);
}
#define auto_link __attribute__((cleanup(free_link)))

/* Room for many in the tables of what is under way, and of enforcement. */
#define SENDS_SHARED	 32768
#define TRANSIENT_SHARED 8192
#define PATHS_SHARED	 262144
#define EXES_SHARED	 65536
#define ADDRS_SHARED	 65536
#define NAMES_SHARED	 65536
#define ROWS_SHARED	 16384

/* Of hooks that are there only while somebody wants them. */
enum { LINK_CALLS, LINK_PREVENT, LINKS = LINK_PREVENT + HOOK_PREVENT_MAX };

/* In memory that all have; changed with its file locked. */
struct share_page {
	uint32_t links[LINKS]; /* ids; of the last one that was made */
};

struct share {
	int fd; /* memfd of the page */
	struct share_page *page;
	int links[LINKS]; /* ours; -1 */
	int alive;	  /* says that this session is still read; -1 */
};

void share_prepare(struct warder *skel)
{
	const struct {
		struct bpf_map *map;
		uint32_t max;
	} rows[] = {
		{ skel->maps.rings, 2 * SANDBOXES_MAX },
		{ skel->maps.own_counters, SANDBOXES_MAX },
		{ skel->maps.own_sleepers, SANDBOXES_MAX },
		{ skel->maps.crowds, 2 * SANDBOXES_MAX },
		{ skel->maps.made, MADE_PARTS * MADE_SETS_SHARED },
		{ skel->maps.flows, FLOWS_SHARED },
		{ skel->maps.sends, SENDS_SHARED },
		{ skel->maps.limits_seen, TRANSIENT_SHARED },
		{ skel->maps.sentenced, TRANSIENT_SHARED },
		{ skel->maps.acts, TRANSIENT_SHARED },
		{ skel->maps.misses, TRANSIENT_SHARED },
		{ skel->maps.accepting, TRANSIENT_SHARED },
		{ skel->maps.connecting, TRANSIENT_SHARED },
		{ skel->maps.enforce_paths, PATHS_SHARED },
		{ skel->maps.enforce_exes, EXES_SHARED },
		{ skel->maps.enforce_addrs4, ADDRS_SHARED },
		{ skel->maps.enforce_addrs6, ADDRS_SHARED },
		{ skel->maps.enforce_names, NAMES_SHARED },
		{ skel->maps.enforce_sets, ROWS_SHARED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		bpf_map__set_max_entries(rows[i].map, rows[i].max);
	skel->rodata->shared = true;
}

int share_init(struct capture *c, struct err *err)
{
	struct share *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ENOMEM, "probes: out of memory");
	memset(s->links, 0xff, sizeof(s->links)); /* -1 */
	s->alive = s->fd = -1;
	c->share = s;
	s->fd = memfd_create("warder-probes", MFD_CLOEXEC);
	if (s->fd < 0 || ftruncate(s->fd, sizeof(*s->page)) < 0)
		return err_set(err, errno, "probes: shared page: %m");
	s->page = mmap(NULL, sizeof(*s->page), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (s->page == MAP_FAILED) {
		s->page = NULL;
		return err_set(err, errno, "probes: shared page: %m");
	}
	return 0;
}

void share_done(struct capture *c)
{
	struct share *s = c->share;

	if (!s)
		return;
	share_detach(c);
	if (s->alive >= 0)
		close(s->alive);
	if (s->page)
		munmap(s->page, sizeof(*s->page));
	if (s->fd >= 0)
		close(s->fd);
	if (c->common)
		munmap((void *)(uintptr_t)c->common, c->counters_bytes);
	c->common = NULL;
	free(s);
	c->share = NULL;
}

/* ---- hooks that others than sandboxes pay for ---- */

static uint32_t link_of(int fd, uint32_t prog_id)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.prog_id != prog_id)
		return 0;
	return info.id;
}

static uint32_t prog_id(int fd)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &len) < 0 ? 0 : info.id;
}

/* A lock of this process (fcntl): it ends with it. */
static void lock(const struct share *s, short type)
{
	struct flock l = { .l_type = type, .l_whence = SEEK_SET };

	while (fcntl(s->fd, F_SETLKW, &l) < 0 && errno == EINTR)
		;
}

/* The link of a program, whoever made it: it ends with the last who has it. The file is locked. */
static int take_link(struct share *s, size_t slot, const struct bpf_program *p)
{
	uint32_t *id = &s->page->links[slot], prog = prog_id(bpf_program__fd(p));
	auto_link struct bpf_link *made = NULL;
	int fd = *id ? bpf_link_get_fd_by_id(*id) : -1;

	/* The last one who had it has closed it, and the number is another's. */
	if (fd >= 0 && !link_of(fd, prog))
		close(take_fd(fd));
	if (fd < 0) {
		made = bpf_program__attach(p);
		fd = made ? fcntl(bpf_link__fd(made), F_DUPFD_CLOEXEC, 3) : -1;
		*id = fd < 0 ? 0 : link_of(fd, prog);
	}
	s->links[slot] = fd;
	return fd < 0 ? -errno : 0;
}

int share_attach(struct capture *c, bool prevents, struct err *err)
{
	const struct bpf_program *p = c->skel->progs.on_sys_exit;
	struct share *s = c->share;
	int r = 0;

	lock(s, F_WRLCK);
	if (bpf_program__fd(p) >= 0 && s->links[LINK_CALLS] < 0)
		r = take_link(s, LINK_CALLS, p);
	for (size_t i = 0; prevents && i < HOOK_PREVENT_MAX && r == 0; i++) {
		struct bpf_program *one = hooks_prevention(&c->hooks, c->skel, i);

		if (one && s->links[LINK_PREVENT + i] < 0) {
			p = one;
			r = take_link(s, LINK_PREVENT + i, p);
		}
	}
	lock(s, F_UNLCK);
	return r < 0 ? err_set(err, r, "attach %s: %m", bpf_program__name(p)) : 0;
}

void share_detach(struct capture *c)
{
	struct share *s = c->share;
	int slow[HOOK_PREVENT_MAX];
	size_t n = 0;

	for (size_t i = LINK_PREVENT; i < LINKS; i++)
		if (s->links[i] >= 0)
			slow[n++] = s->links[i];
	if (n)
		hooks_release(slow, n);
	for (size_t i = 0; i < LINKS; i++)
		if (s->links[i] >= 0)
			close(take_fd(s->links[i]));
}

/* ---- joining ---- */

static uint32_t place_of(uint32_t id)
{
	return id % SANDBOXES_MAX;
}

uint32_t share_row(const struct capture *c, uint32_t set)
{
	return c->id ? ROW_OF_PLACE | place_of(c->id) : set;
}

uint32_t share_keys(const struct capture *c)
{
	return place_of(c->id) * SHARE_KEYS;
}

uint32_t capture_id(const struct capture *c)
{
	return c->id;
}

static int put(struct bpf_map *outer, uint32_t key, struct bpf_map *inner, struct err *err)
{
	int fd = bpf_map__fd(inner);

	if (bpf_map_update_elem(bpf_map__fd(outer), &key, &fd, BPF_ANY) < 0)
		return err_set(err, errno, "probes: table of sessions: %m");
	return 0;
}

int share_publish(struct capture *c, uint32_t id, struct err *err)
{
	uint32_t key = place_of(id);
	int r;

	r = put(c->skel->maps.rings, shared_ring(id, WIRE_RING_URGENT), c->skel->maps.urgent, err);
	if (r == 0)
		r = put(c->skel->maps.rings, shared_ring(id, WIRE_RING_BULK), c->skel->maps.bulk,
			err);
	if (r == 0)
		r = put(c->skel->maps.own_counters, key, c->skel->maps.counters, err);
	if (r == 0)
		r = put(c->skel->maps.own_sleepers, key, c->skel->maps.sleeper, err);
	return r;
}

/* Another map of the same shape under the same descriptor number. 6.1 takes it for the same only if both have types,
 * or neither. */
static int renew(struct capture *c, struct bpf_map *map, struct err *err)
{
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = bpf_map__map_flags(map));
	auto_close int fd = -1;

	if (bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF) {
		o.btf_fd = (__u32)bpf_object__btf_fd(c->skel->obj);
		o.btf_key_type_id = bpf_map__btf_key_type_id(map);
		o.btf_value_type_id = bpf_map__btf_value_type_id(map);
	}
	fd = bpf_map_create(bpf_map__type(map), bpf_map__name(map), bpf_map__key_size(map),
			    bpf_map__value_size(map), bpf_map__max_entries(map), &o);
	if (fd < 0 || dup3(fd, bpf_map__fd(map), O_CLOEXEC) < 0)
		return err_set(err, errno, "probes: own '%s': %m", bpf_map__name(map));
	return 0;
}

/* The place is now this session's; 0: nobody's. */
static void empty_guard(struct capture *c, uint32_t place, uint32_t id)
{
	const struct guard g = { .sandbox = id };
	const uint64_t never = 0;

	bpf_map_update_elem(bpf_map__fd(c->skel->maps.guards), &place, &g, BPF_ANY);
	bpf_map_update_elem(bpf_map__fd(c->skel->maps.pressed), &place, &never, BPF_ANY);
}

static void empty_crowds(struct capture *c, uint32_t id)
{
	const uint64_t none = 0;

	for (uint32_t r = 0; r < WIRE_RING_COUNT; r++) {
		uint32_t key = shared_ring(id, r);

		bpf_map_update_elem(bpf_map__fd(c->skel->maps.crowds), &key, &none, BPF_ANY);
	}
}

int capture_alive_fd(const struct capture *c)
{
	return c->share ? c->share->alive : -1;
}

int capture_join(struct capture *c, uint32_t id, int alive_fd, struct err *err)
{
	struct bpf_map *own[] = { c->skel->maps.urgent, c->skel->maps.bulk, c->skel->maps.counters,
				  c->skel->maps.sleeper };
	int r = 0;

	if (!c->share || c->id || place_of(id) == 0 || place_of(id) > CAPTURE_SESSIONS_MAX)
		return err_set(err, EINVAL, "probes: session %u is not one to join", id);
	c->id = id;
	c->share->alive = alive_fd;
	c->hooks.shared = true;
	capture_leave(c);
	enforce_state_free(c->enforce);
	c->enforce = NULL;
	c->common = mmap(NULL, c->counters_bytes, PROT_READ, MAP_SHARED,
			 bpf_map__fd(c->skel->maps.counters), 0);
	if (c->common == MAP_FAILED) {
		c->common = NULL;
		return err_set(err, errno, "map counters: %m");
	}
	for (size_t i = 0; i < ARRAY_SIZE(own) && r == 0; i++)
		r = renew(c, own[i], err);
	empty_guard(c, place_of(id), id);
	empty_crowds(c, id);
	if (r == 0)
		r = share_publish(c, id, err);
	if (r == 0)
		r = map_shared(c, err);
	if (r < 0)
		return r;
	order_done(&c->order);
	r = order_init(&c->order);
	if (r < 0)
		return err_set(err, r, "probes: out of memory");
	c->made = c->missing_told = c->missed_counted = c->missed_told = 0;
	c->missed_before = missed_count(c);
	memset(c->drops_seen, 0, sizeof(c->drops_seen));
	memset(c->drops_last, 0, sizeof(c->drops_last));
	__atomic_store_n(&c->skel->bss->usage_bytes[place_of(id)], 0, __ATOMIC_RELAXED);
	return 0;
}

void capture_leave(struct capture *c)
{
	unmap_shared(c);
}

/* ---- those that have ended ---- */

/* A table, and where it says whose an entry is. */
struct table {
	const struct bpf_map *map;
	bool in_value;
	size_t at;
	bool (*is_of)(uint32_t v, uint32_t id);
	void (*ended)(struct capture *c, const void *value);
};

#define KEY_MAX	  sizeof(struct enforce_path_key)
#define VALUE_MAX 512
/* The kernel fills all of it. A struct flow is a record and a pointer. */
_Static_assert(sizeof(struct sandbox_cfg) <= VALUE_MAX && sizeof(struct wire_net) + 8 <= VALUE_MAX,
	       "room for a value of each table");

static bool is_id(uint32_t v, uint32_t id)
{
	return v == id;
}

static bool is_of_keys(uint32_t v, uint32_t id)
{
	return v / SHARE_KEYS == place_of(id);
}

static bool is_of_row(uint32_t v, uint32_t id)
{
	if (v & ROW_OF_PLACE)
		return (v & ~ROW_OF_PLACE) == place_of(id);
	return v >= SHARE_CLASS_ROWS && is_of_keys(v - SHARE_CLASS_ROWS, id);
}

static void sandbox_ended(struct capture *c, const void *value)
{
	const struct sandbox_cfg *cfg = value;

	if (cfg->doomed)
		__atomic_fetch_sub(&c->skel->bss->alarm, 1, __ATOMIC_RELAXED);
}

static bool is_theirs(const struct table *t, const char *entry, const uint32_t *ids, size_t n)
{
	uint32_t v;

	memcpy(&v, entry + t->at, sizeof(v));
	for (size_t i = 0; i < n; i++)
		if (t->is_of(v, ids[i]))
			return true;
	return false;
}

static void forget_in(struct capture *c, const struct table *t, const uint32_t *ids, size_t n)
{
	_Alignas(8) char key[KEY_MAX], next[KEY_MAX], value[VALUE_MAX];
	int fd = bpf_map__fd(t->map);
	bool more;

	for (more = bpf_map_get_next_key(fd, NULL, next) == 0; more;) {
		memcpy(key, next, sizeof(key));
		more = bpf_map_get_next_key(fd, key, next) == 0;
		if ((t->in_value && bpf_map_lookup_elem(fd, key, value) < 0) ||
		    !is_theirs(t, t->in_value ? value : key, ids, n))
			continue;
		if (t->ended)
			t->ended(c, value);
		bpf_map_delete_elem(fd, key);
	}
}

/* Whoever is at a place by then: nobody. */
static void leave_place(struct capture *c, uint32_t id)
{
	uint32_t key = place_of(id);

	for (uint32_t r = 0; r < WIRE_RING_COUNT; r++) {
		uint32_t ring = shared_ring(id, r);

		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.rings), &ring);
	}
	bpf_map_delete_elem(bpf_map__fd(c->skel->maps.own_counters), &key);
	bpf_map_delete_elem(bpf_map__fd(c->skel->maps.own_sleepers), &key);
}

#define KEYED(name, type)                                                                         \
	{                                                                                         \
		.map = c->skel->maps.name, .at = offsetof(struct type, keys), .is_of = is_of_keys \
	}

void capture_forget(struct capture *c, const uint32_t *ids, size_t n)
{
	const struct table tables[] = {
		{ .map = c->skel->maps.sandboxes,
		  .in_value = true,
		  .at = offsetof(struct sandbox_cfg, id),
		  .is_of = is_id,
		  .ended = sandbox_ended },
		{ .map = c->skel->maps.enforce_sets, .is_of = is_of_row },
		KEYED(enforce_names, enforce_path_key),
		KEYED(enforce_paths, enforce_path_key),
		KEYED(enforce_exes, enforce_exe_key),
		KEYED(enforce_addrs4, enforce_addr4_key),
		KEYED(enforce_addrs6, enforce_addr6_key),
		{ .map = c->skel->maps.limits_seen, .is_of = is_id },
		/* struct flow: it begins with its record */
		{ .map = c->skel->maps.flows,
		  .in_value = true,
		  .at = offsetof(struct wire_hdr, sandbox),
		  .is_of = is_id },
	};

	/* First what lets anybody in. Taking out a map waits until no program runs that has found it (or the guard) yet. */
	for (size_t i = 0; i < n; i++)
		empty_guard(c, place_of(ids[i]), 0);
	for (size_t i = 0; i < n; i++)
		leave_place(c, ids[i]);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		forget_in(c, &tables[i], ids, n);
}
