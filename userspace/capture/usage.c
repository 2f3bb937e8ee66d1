// SPDX-License-Identifier: Apache-2.0
#include "userspace/capture/usage.h"

#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/abi/maps.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define FDINFO_MAX 4096
#define SEEN_MAX \
	1024 /* objects of one process; each counts once, however many descriptors it has */
#define BATCH	    512
#define BATCHES_MAX 4096  /* a table that changes all the time has an end, too */
#define KEYS_MAX    65536 /* where there are no batches */
#define KEY_MAX	    512
#define VALUE_MAX   4096

/* ---- fdinfo ---- */

static bool number_after(struct str text, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);
	const char *p = text.p, *end = text.p + text.n;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);

		if (len > n && !memcmp(p, key, n)) {
			*ret = 0;
			for (const char *d = p + n; d < p + len; d++)
				if (*d >= '0' && *d <= '9' && *ret < UINT64_MAX / 16)
					*ret = *ret * 10 + (uint64_t)(*d - '0');
				else if (*d != '\t' && *d != ' ')
					return false;
			return true;
		}
		p = nl ? nl + 1 : end;
	}
	return false;
}

bool usage_fdinfo(struct str text, struct usage_fd *ret)
{
	uint64_t id, bytes = 0, type, max;

	memset(ret, 0, sizeof(*ret));
	/* A link tells of its program, too. */
	ret->is_map = number_after(text, "map_type:", &type) && number_after(text, "map_id:", &id);
	ret->is_program = !ret->is_map && number_after(text, "prog_type:", &type) &&
			  number_after(text, "prog_id:", &id);
	if (!ret->is_map && !ret->is_program)
		return false;
	number_after(text, "memlock:", &bytes);
	/* Before 6.4 the kernel counts what the entries may take, and a ring has none. */
	if (ret->is_map && type == BPF_MAP_TYPE_RINGBUF &&
	    number_after(text, "max_entries:", &max) && bytes < max)
		bytes += max;
	ret->id = (uint32_t)id;
	ret->bytes = bytes;
	return true;
}

/* ---- counting ---- */

/* Our own table of files made in sandboxes: an array whose elements are sets (bpf/lib/made.bpf.h). */
static bool is_made(const struct bpf_map_info *info)
{
	return info->type == BPF_MAP_TYPE_ARRAY && info->value_size == sizeof(struct made_set) &&
	       !strcmp(info->name, "made");
}

static bool fills_up(const struct bpf_map_info *info)
{
	uint32_t type = info->type;

	return is_made(info) || type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH ||
	       type == BPF_MAP_TYPE_LPM_TRIE || type == BPF_MAP_TYPE_RINGBUF;
}

static uint64_t count_made(int fd, uint32_t max)
{
	auto_free struct made_set *sets = calloc(BATCH, sizeof(*sets));
	auto_free uint32_t *keys = calloc(BATCH, sizeof(*keys));
	uint32_t at = 0;
	bool first = true;
	uint64_t used = 0;

	if (!sets || !keys)
		return 0;
	for (uint32_t i = 0; i <= max / BATCH; i++) {
		__u32 n = BATCH;
		int r = bpf_map_lookup_batch(fd, first ? NULL : &at, &at, keys, sets, &n, NULL);

		if (r < 0 && errno != ENOENT)
			break;
		for (__u32 k = 0; k < n; k++)
			used += sets[k].n < MADE_WAYS ? sets[k].n : MADE_WAYS;
		if (r < 0)
			break;
		first = false;
	}
	return used;
}

static uint64_t ring_bytes_used(int fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uint64_t *consumer, *producer;
	uint64_t used = 0, c;

	consumer = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	producer = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (consumer != MAP_FAILED && producer != MAP_FAILED) {
		c = __atomic_load_n(consumer, __ATOMIC_ACQUIRE);
		used = __atomic_load_n(producer, __ATOMIC_ACQUIRE) - c;
	}
	if (consumer != MAP_FAILED)
		munmap((void *)(uintptr_t)consumer, page);
	if (producer != MAP_FAILED)
		munmap((void *)(uintptr_t)producer, page);
	return used;
}

static uint64_t count_keys(int fd, uint32_t max)
{
	uint8_t a[KEY_MAX], b[KEY_MAX];
	uint8_t *key = NULL, *next = a;
	uint64_t n = 0;

	while (n < max && n < KEYS_MAX && bpf_map_get_next_key(fd, key, next) == 0) {
		n++;
		key = next;
		next = next == a ? b : a;
	}
	return n;
}

/* -errno where this kind of map knows no batches. */
static int64_t count_batches(int fd, const struct bpf_map_info *info)
{
	auto_free uint8_t *keys = malloc((size_t)BATCH * info->key_size);
	auto_free uint8_t *values = malloc((size_t)BATCH * ((info->value_size + 7) & ~7u));
	uint8_t at[KEY_MAX];
	int64_t total = 0;
	bool first = true;

	if (!keys || !values)
		return -ENOMEM;
	for (int i = 0; i < BATCHES_MAX; i++) {
		__u32 n = BATCH;
		int r = bpf_map_lookup_batch(fd, first ? NULL : at, at, keys, values, &n, NULL);

		if (r < 0 && errno != ENOENT)
			return first ? -errno : total;
		total += n;
		if (r < 0) /* that was the last */
			return total;
		first = false;
	}
	return total;
}

static void count(int fd, struct capture_map *m)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int64_t n;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return;
	m->max = info.max_entries;
	m->is_ring = info.type == BPF_MAP_TYPE_RINGBUF;
	if (m->is_ring) {
		m->used = ring_bytes_used(fd);
		return;
	}
	if (is_made(&info)) {
		m->max = (uint64_t)info.max_entries * MADE_WAYS;
		m->used = count_made(fd, info.max_entries);
		return;
	}
	if (info.key_size > KEY_MAX || info.value_size > VALUE_MAX)
		return;
	n = info.type == BPF_MAP_TYPE_LPM_TRIE ? -1 : count_batches(fd, &info);
	m->used = n >= 0 ? (uint64_t)n : count_keys(fd, info.max_entries);
	if (m->used > m->max) /* counted while it changed */
		m->used = m->max;
}

/* ---- all of a process ---- */

struct walk {
	uint64_t seen[SEEN_MAX];
	size_t seen_n;
};

static bool is_new(struct walk *w, const struct usage_fd *o)
{
	uint64_t key = (uint64_t)o->is_map << 32 | o->id;

	for (size_t i = 0; i < w->seen_n; i++)
		if (w->seen[i] == key)
			return false;
	if (w->seen_n == SEEN_MAX)
		return false;
	w->seen[w->seen_n++] = key;
	return true;
}

static void add_map(struct capture_usage *u, const struct usage_fd *o)
{
	auto_close int fd = bpf_map_get_fd_by_id(o->id);
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	struct capture_map *m = &u->maps[u->maps_n];

	u->map_bytes += o->bytes;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || !fills_up(&info) ||
	    u->maps_n == CAPTURE_MAPS_MAX)
		return;
	memset(m, 0, sizeof(*m));
	snprintf(m->name, sizeof(m->name), "%s", info.name);
	m->id = o->id;
	m->bytes = o->bytes;
	count(fd, m);
	u->maps_n++;
}

static void add_program(struct capture_usage *u, const struct usage_fd *o)
{
	auto_close int fd = bpf_prog_get_fd_by_id(o->id);
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);

	u->program_bytes += o->bytes;
	if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0)
		u->program_bytes += info.jited_prog_len;
}

static int by_name(const void *a, const void *b)
{
	const struct capture_map *x = a, *y = b;

	return x->is_ring != y->is_ring ? (x->is_ring ? -1 : 1) : strcmp(x->name, y->name);
}

int capture_usage(pid_t pid, struct capture_usage *ret, struct err *err)
{
	auto_free struct walk *w = calloc(1, sizeof(*w));
	struct capture_usage u = { .maps_n = 0 };
	auto_dir DIR *dir = NULL;
	struct dirent *de;
	char path[64];

	if (!w)
		return err_set(err, ENOMEM, "maps in the kernel: out of memory");
	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	if (!dir)
		return err_set(err, errno == ENOENT ? ESRCH : errno, "'%s': %m", path);
	while ((de = readdir(dir))) {
		auto_free char *text = NULL;
		struct usage_fd o;
		size_t n;

		if (de->d_name[0] == '.' ||
		    file_read_at(dirfd(dir), de->d_name, FDINFO_MAX, &text, &n) < 0 ||
		    !usage_fdinfo((struct str){ text, n }, &o) || !is_new(w, &o))
			continue;
		if (o.is_map)
			add_map(&u, &o);
		else
			add_program(&u, &o);
	}
	if (!u.maps_n)
		return err_set(err, ENOENT, "process %d has no maps in the kernel", (int)pid);
	qsort(u.maps, u.maps_n, sizeof(*u.maps), by_name);
	*ret = u;
	return 0;
}

void capture_usage_again(struct capture_usage *u)
{
	for (size_t i = 0; i < u->maps_n; i++) {
		auto_close int fd = bpf_map_get_fd_by_id(u->maps[i].id);

		if (fd >= 0)
			count(fd, &u->maps[i]);
	}
}
