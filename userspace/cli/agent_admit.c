// SPDX-License-Identifier: Apache-2.0
/* Room for one more? Counted from the registry, by one at a time; who has to wait holds a numbered place. */
#include "userspace/cli/agent.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/cli/named_workspace.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/snapshots.h"

#define LOOK_MS 100

/* A named workspace counts whether a sandbox has it or not (kept_of): here by what it will grow. */
static uint64_t disk_of(const struct registry_entry *e)
{
	uint64_t has = e->workspace[0] ? named_workspace_size(e->tenant, e->workspace) : 0;

	return e->disk > has ? e->disk - has : 0;
}

static struct agent_quota use_of(const struct registry_entry *e)
{
	return (struct agent_quota){ 1, e->memory, e->cpu_milli, disk_of(e) };
}

static int add_size(void *arg, const struct named_workspace *w)
{
	*(uint64_t *)arg += w->size;
	return 0;
}

/* What stays of a tenant's sandboxes. */
static uint64_t kept_of(const char *tenant)
{
	uint64_t n = snapshots_bytes(tenant);

	named_workspace_each(tenant, add_size, &n, NULL);
	return n;
}

static const struct {
	const char *name;
	size_t at;
	uint64_t unit;
	const char *unit_name;
} PARTS[] = {
	{ "sandboxes", offsetof(struct agent_quota, sandboxes), 1, "" },
	{ "memory", offsetof(struct agent_quota, memory), 1 << 20, " MiB" },
	{ "cpu", offsetof(struct agent_quota, cpu_milli), 1, "/1000" },
	{ "disk", offsetof(struct agent_quota, disk), 1 << 20, " MiB" },
};

static uint64_t part(const struct agent_quota *q, size_t i)
{
	return *(const uint64_t *)((const char *)q + PARTS[i].at);
}

/* -EDQUOT: more than there is room for, with what there is besides. */
static int check(const struct agent_quota *quota, const struct agent_quota *used,
		 const struct registry_entry *e, struct err *err)
{
	const struct agent_quota want = use_of(e);

	for (size_t i = 0; i < ARRAY_SIZE(PARTS); i++) {
		uint64_t max = part(quota, i), need = part(&want, i);

		if (!max)
			continue;
		if (!need) /* it has no limit of its own: it could take all of it */
			need = i == 2 ? max : 0;
		if (part(used, i) + need > max)
			return err_set(
				err, EDQUOT,
				"tenant '%s' has %llu%s of %llu%s %s in use, and this needs %llu%s",
				e->tenant, (unsigned long long)(part(used, i) / PARTS[i].unit),
				PARTS[i].unit_name, (unsigned long long)(max / PARTS[i].unit),
				PARTS[i].unit_name, PARTS[i].name,
				(unsigned long long)(need / PARTS[i].unit), PARTS[i].unit_name);
	}
	return 0;
}

static int count(struct agent_quota *ret, const struct registry_entry *e, struct err *err)
{
	auto_free struct registry_entry *v = calloc(REGISTRY_MAX, sizeof(*v));
	int n = v ? registry_list(v, REGISTRY_MAX, err) : -ENOMEM;

	*ret = (struct agent_quota){ 0 };
	if (n < 0)
		return n;
	if (n == REGISTRY_MAX)
		return err_set(err, EDQUOT, "%d sandboxes run on this host: no more", n);
	ret->disk = kept_of(e->tenant);
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].tenant, e->tenant))
			continue;
		if (e->name[0] && !strcmp(v[i].name, e->name))
			return err_set(err, EEXIST, "a sandbox '%s' runs already", e->name);
		ret->sandboxes++;
		ret->memory += v[i].memory;
		ret->cpu_milli += v[i].cpu_milli;
		ret->disk += disk_of(&v[i]);
	}
	return 0;
}

int agent_disk_left(uint64_t *ret, const char *tenant, const struct agent_config *c,
		    struct err *err)
{
	const struct agent_quota *quota = agent_quota_of(c, tenant);
	struct registry_entry e = { 0 };
	struct agent_quota used;
	int r;

	snprintf(e.tenant, sizeof(e.tenant), "%s", tenant);
	*ret = UINT64_MAX;
	r = quota->disk ? count(&used, &e, err) : 0;
	if (r < 0 || !quota->disk)
		return r;
	*ret = quota->disk > used.disk ? quota->disk - used.disk : 0;
	return *ret ? 0
		    : err_set(err, EDQUOT, "tenant '%s' has all of its %llu MiB disk in use",
			      tenant, (unsigned long long)(quota->disk >> 20));
}

/* ---- the queue: a locked file each, by age ---- */

struct ticket {
	int dir, fd;
	char name[ULID_LEN + 1];
};

/* A tenant that waits keeps nobody else waiting: it has a queue of its own. FNV-1a: any name as a file's. */
static int queue_open(struct ticket *t, const char *tenant, struct err *err)
{
	uint64_t h = 0xcbf29ce484222325ull;
	char path[PATH_MAX];

	for (; *tenant; tenant++)
		h = (h ^ (unsigned char)*tenant) * 0x100000001b3ull;
	if ((size_t)snprintf(path, sizeof(path), "%s/keepers/.queue-%016llx", run_dir(),
			     (unsigned long long)h) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "'%s': %m", path);
	t->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return t->dir < 0 ? err_set(err, errno, "'%s': %m", path) : 0;
}

static bool is_dead(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	unlinkat(dir, name, 0);
	return true;
}

/* How many wait, how many of them before this one. Under the lock. */
static uint64_t queue_count(const struct ticket *t, uint64_t *ret_before)
{
	int copy = openat(t->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;
	uint64_t n = 0;

	*ret_before = 0;
	if (!dir && copy >= 0)
		close(copy);
	while (dir && (de = readdir(dir))) {
		if (!ulid_is_valid(de->d_name) || !strcmp(de->d_name, t->name) ||
		    is_dead(t->dir, de->d_name))
			continue;
		n++;
		*ret_before += strcmp(de->d_name, t->name) < 0;
	}
	return n;
}

static int ticket_take(struct ticket *t, struct err *err)
{
	ulid_make(t->name, clock_real_ns());
	t->fd = openat(t->dir, t->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (t->fd < 0 || flock(t->fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, errno, "queue: %m");
	return 0;
}

static void ticket_done(struct ticket *t)
{
	if (t->fd >= 0) {
		unlinkat(t->dir, t->name, 0);
		close(t->fd);
	}
	if (t->dir >= 0)
		close(t->dir);
}

/* Who waits may go away. */
static bool has_left(int client)
{
	struct pollfd p = { .fd = client, .events = 0 };

	return poll(&p, 1, LOOK_MS) == 1 && p.revents & (POLLHUP | POLLERR);
}

static int try(int *ret_lock, int *ret_hub, const struct registry_entry *e,
	       const struct agent_config *c, struct ticket *t, struct err *err)
{
	const struct agent_quota none = { 0 }, *quota = agent_quota_of(c, e->tenant);
	struct agent_quota used;
	auto_close int lock = -1;
	uint64_t before, n;
	int r = registry_lock(&lock, err);

	if (r == 0)
		r = check(quota, &none, e, err);
	if (r < 0)
		return r == -EDQUOT ? err_wrap(err, -E2BIG, "it can never be started") : r;
	if (t->dir < 0)
		r = queue_open(t, e->tenant, err);
	if (r == 0)
		r = count(&used, e, err);
	if (r < 0)
		return r;
	n = queue_count(t, &before);
	r = check(quota, &used, e, err);
	if (r == 0 && (t->fd >= 0 ? before : n))
		r = -EDQUOT; /* others came first */
	if (r == 0)
		return registry_add(ret_lock, ret_hub, e, err);
	if (t->fd >= 0)
		return r;
	if (n >= c->queue)
		return err_wrap(err, -EBUSY, "%llu wait already, and no more may",
				(unsigned long long)n);
	return ticket_take(t, err) < 0 ? -EIO : r;
}

int agent_admit(int *ret_lock, int *ret_hub, const struct registry_entry *e,
		const struct agent_config *c, int client, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + c->queue_wait_ns;
	struct ticket t = { .dir = -1, .fd = -1 };
	int r;

	for (;;) {
		*err = (struct err){ 0 };
		r = try(ret_lock, ret_hub, e, c, &t, err);
		if (r != -EDQUOT)
			break;
		if (clock_ns(CLOCK_MONOTONIC) >= end) {
			r = err_wrap(err, -ETIMEDOUT, "no room for so long");
			break;
		}
		if (has_left(client)) {
			r = err_set(err, EPIPE, "who waited has left");
			break;
		}
	}
	ticket_done(&t);
	return r;
}
