/* SPDX-License-Identifier: Apache-2.0 */
/* Registering sandboxes: the entry in `sandboxes`, the cgroup programs on the leaf, and for existing
 * cgroups the tasks that are there already. */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "warder.skel.h"

#define SEED_DEPTH 12

int cgroup_id(int fd, uint64_t *ret, struct err *err)
{
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "sandbox cgroup: %m");
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return err_set(err, EINVAL, "sandbox cgroup: not a cgroup v2 directory");
	*ret = st.st_ino; /* of a cgroup directory the inode number is the id */
	return 0;
}

static void watch_done(struct watch *w)
{
	size_t i;

	for (i = 0; i < w->links_n; i++)
		close(w->links[i]);
	w->links_n = 0;
}

/* The one hook that every call of the host pays for is there only while a sandbox is. */
static int calls_attach(struct capture *c, bool enforces, struct err *err)
{
	if (c->share)
		return share_attach(c, enforces, err);
	if (c->calls || bpf_program__fd(c->skel->progs.on_sys_exit) < 0)
		return 0;
	c->calls = bpf_program__attach(c->skel->progs.on_sys_exit);
	return c->calls ? 0 : err_set(err, errno, "attach on_sys_exit: %m");
}

static void calls_detach(struct capture *c)
{
	if (c->share)
		share_detach(c);
	bpf_link__destroy(c->calls);
	c->calls = NULL;
}

void watches_free(struct capture *c)
{
	size_t i;

	for (i = 0; i < c->watches_n; i++)
		watch_done(&c->watches[i]);
	free(c->watches);
	c->watches = NULL;
	c->watches_n = 0;
	calls_detach(c);
}

static bool is_cgroup_prog(enum bpf_prog_type type)
{
	return type == BPF_PROG_TYPE_CGROUP_SKB || type == BPF_PROG_TYPE_CGROUP_SOCK_ADDR ||
	       type == BPF_PROG_TYPE_CGROUP_SOCK || type == BPF_PROG_TYPE_CGROUP_DEVICE ||
	       type == BPF_PROG_TYPE_CGROUP_SYSCTL;
}

/* Links, not bare attachments: they end with us, whatever happens to us. */
static int attach_cgroup_progs(struct capture *c, int fd, struct watch *w, bool enforces,
			       struct err *err)
{
	struct bpf_program *p;
	int prog, link;

	bpf_object__for_each_program(p, c->skel->obj)
	{
		prog = bpf_program__fd(p);
		if (prog < 0 || !is_cgroup_prog(bpf_program__type(p)) ||
		    (c->share && !enforces && enforce_only(c->skel, p)))
			continue;
		if (w->links_n == CGROUP_PROGS_MAX)
			return err_set(err, E2BIG, "more cgroup programs than CGROUP_PROGS_MAX");
		link = bpf_link_create(prog, fd, bpf_program__expected_attach_type(p), NULL);
		if (link < 0)
			return err_set(err, errno, "attach %s to the sandbox cgroup: %m",
				       bpf_program__name(p));
		w->links[w->links_n++] = link;
	}
	return 0;
}

/* Kinds of the families that are off. */
static uint64_t kinds_off(uint32_t families)
{
#define FAMILY_OFF(id, name, text, family)                   \
	if ((id) < GUARD_KINDS && (families & OFF_##family)) \
		off |= ENFORCE_KIND((id) & (GUARD_KINDS - 1));
	enum {
		OFF_PROC = EVENTS_OFF_PROC,
		OFF_FILE = EVENTS_OFF_FILE,
		OFF_NET = EVENTS_OFF_NET,
		OFF_DNS = EVENTS_OFF_DNS,
		OFF_LIMIT = EVENTS_OFF_LIMIT,
		OFF_ESCAPE = EVENTS_OFF_ESCAPE,
		OFF_SESSION = 0,
		OFF_RULE = 0,
		OFF_AGENT = 0,
		OFF_WORK = 0
	};
	uint64_t off = 0;

	WIRE_KINDS(FAMILY_OFF)
	return off;
}

/* A fresh bucket: its place may have been another's. */
static int set_guard(struct capture *c, const struct sandbox_cfg *cfg, struct err *err)
{
	struct guard g = { .off = kinds_off(cfg->events_off),
			   .policy = cfg->pressure,
			   .sandbox = cfg->id };
	uint32_t key = cfg->id % SANDBOXES_MAX;
	const uint64_t never = 0;

	if (cfg->pressure > PRESSURE_KILL)
		return err_set(err, EINVAL, "no such policy for full rings: %u", cfg->pressure);
	if (bpf_map_update_elem(bpf_map__fd(c->skel->maps.pressed), &key, &never, BPF_ANY) < 0 ||
	    bpf_map_update_elem(bpf_map__fd(c->skel->maps.guards), &key, &g, BPF_ANY) < 0)
		return err_set(err, errno, "guard of the sandbox: %m");
	return 0;
}

int capture_set_kills(struct capture *c, int cgroup_fd, uint64_t kill_escape, struct err *err)
{
	int fd = bpf_map__fd(c->skel->maps.sandboxes);
	struct sandbox_cfg cfg;
	uint64_t cgid;
	int r;

	r = cgroup_id(cgroup_fd, &cgid, err);
	if (r < 0)
		return r;
	if (bpf_map_lookup_elem(fd, &cgid, &cfg) < 0)
		return err_set(err, errno, "sandbox in the probes' table: %m");
	if (cfg.kill_escape == kill_escape)
		return 0; /* the kernel writes to the entry, too: it is left alone where that can be */
	cfg.kill_escape = kill_escape;
	if (bpf_map_update_elem(fd, &cgid, &cfg, BPF_EXIST) < 0)
		return err_set(err, errno, "sandbox in the probes' table: %m");
	return 0;
}

int capture_resume(struct capture *c)
{
	int stopped = bpf_map__fd(c->skel->maps.stopped), tasks = bpf_map__fd(c->skel->maps.tasks);
	uint32_t key, last, *at;
	struct task_state st;
	uint64_t start;
	int n = 0, r;

	for (at = NULL; bpf_map_get_next_key(stopped, at, &key) == 0;) {
		auto_close int pidfd = -1;

		last = key;
		at = &last;
		if (bpf_map_lookup_elem(stopped, &key, &start) < 0)
			continue;
		pidfd = (int)syscall(SYS_pidfd_open, key, 0);
		r = pidfd < 0 ? -1 : bpf_map_lookup_elem(tasks, &pidfd, &st);
		if (r == 0 && c->id && st.sandbox != c->id)
			continue; /* another session's */
		bpf_map_delete_elem(stopped, &key);
		at = NULL;
		/* The number may be another's by now: only the one that we know of. */
		if (r < 0 || st.start != start)
			continue;
		if (syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) == 0)
			n++;
	}
	return n;
}

static void seed_task(struct capture *c, pid_t pid, const struct task_state *st)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	/* Gone already, or known to the kernel side by now: both are fine. */
	if (pidfd >= 0)
		bpf_map_update_elem(bpf_map__fd(c->skel->maps.tasks), &pidfd, st, BPF_NOEXIST);
}

/* Processes of a cgroup and those below it. Their threads take the leader's state when they act. */
static void seed_cgroup(struct capture *c, int dirfd, struct task_state *st, int depth)
{
	auto_dir DIR *dir = NULL;
	auto_file FILE *f = NULL;
	struct dirent *de;
	int fd, pid;

	fd = openat(dirfd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		f = fdopen(fd, "r");
	while (f && fscanf(f, "%d", &pid) == 1) {
		st->top = (uint32_t)pid;
		seed_task(c, pid, st);
	}
	fd = depth < SEED_DEPTH ? openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	dir = fdopendir(fd);
	while (dir && (de = readdir(dir))) {
		auto_close int sub = -1;

		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		sub = openat(dirfd, de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub >= 0)
			seed_cgroup(c, sub, st, depth + 1);
	}
}

int capture_watch(struct capture *c, int cgroup_fd, const struct sandbox_cfg *cfg, struct err *err)
{
	struct sandbox_cfg in = *cfg;
	struct task_state st = { .role = ROLE_PAYLOAD, .sandbox = cfg->id };
	struct watch w = {}, *all;
	int r;

	if (cfg->id == 0 || (c->id && cfg->id != c->id))
		return err_set(err, EINVAL, "sandbox id %u is not allowed", cfg->id);
	if (c->share && !c->id) {
		r = share_publish(c, cfg->id, err);
		if (r < 0)
			return r;
	}
	if (in.enforce)
		in.enforce = share_row(c, in.enforce);
	r = cgroup_id(cgroup_fd, &w.cgid, err);
	if (r < 0)
		return r;
	all = reallocarray(c->watches, c->watches_n + 1, sizeof(*all));
	if (!all)
		return err_set(err, ENOMEM, "sandbox table: out of memory");
	c->watches = all;
	if (in.flags & SANDBOX_F_WATCH)
		in.armed = 1;
	r = set_guard(c, &in, err);
	if (r < 0)
		return r;
	if (bpf_map_update_elem(bpf_map__fd(c->skel->maps.sandboxes), &w.cgid, &in, BPF_NOEXIST) <
	    0)
		return err_set(err, errno,
			       errno == E2BIG ? "more than %d sandboxes"
					      : "register sandbox (of %d at most): %m",
			       SANDBOXES_MAX);
	r = calls_attach(c, in.enforce, err);
	if (r == 0)
		r = attach_cgroup_progs(c, cgroup_fd, &w, in.enforce, err);
	if (r < 0) {
		watch_done(&w);
		if (!c->watches_n)
			calls_detach(c);
		bpf_map_delete_elem(bpf_map__fd(c->skel->maps.sandboxes), &w.cgid);
		return r;
	}
	c->watches[c->watches_n++] = w;
	if (in.flags & SANDBOX_F_WATCH) {
		st.cgid = w.cgid;
		seed_cgroup(c, cgroup_fd, &st, 0);
	}
	return 0;
}

int capture_arm(struct capture *c, int cgroup_fd, struct err *err)
{
	int map = bpf_map__fd(c->skel->maps.sandboxes);
	struct sandbox_cfg cfg;
	uint64_t cgid;
	int r = cgroup_id(cgroup_fd, &cgid, err);

	if (r < 0)
		return r;
	if (bpf_map_lookup_elem(map, &cgid, &cfg) < 0)
		return err_set(err, errno, "sandbox to be armed: %m");
	cfg.armed = 1;
	return bpf_map_update_elem(map, &cgid, &cfg, BPF_EXIST) < 0
		       ? err_set(err, errno, "arming a sandbox: %m")
		       : 0;
}

int capture_unwatch(struct capture *c, int cgroup_fd)
{
	struct sandbox_cfg cfg;
	uint64_t cgid;
	size_t i;
	int r;

	r = cgroup_id(cgroup_fd, &cgid, NULL);
	if (r < 0)
		return r;
	for (i = 0; i < c->watches_n; i++)
		if (c->watches[i].cgid == cgid)
			break;
	if (i == c->watches_n)
		return -ENOENT;
	watch_done(&c->watches[i]);
	c->watches[i] = c->watches[--c->watches_n];
	if (!c->watches_n)
		calls_detach(c);
	if (bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.sandboxes), &cgid, &cfg) == 0 &&
	    cfg.doomed) /* one less that system calls' ends must look for */
		__atomic_fetch_sub(&c->skel->bss->alarm, 1, __ATOMIC_RELAXED);
	if (bpf_map_delete_elem(bpf_map__fd(c->skel->maps.sandboxes), &cgid) < 0)
		return -errno;
	return 0;
}

void capture_net_usage_on(struct capture *c, bool on)
{
	/* Shared: once on, it stays: another session may want it. */
	if (on || !c->share)
		__atomic_store_n(&c->skel->bss->usage_on, on, __ATOMIC_RELAXED);
}

uint64_t capture_net_usage(const struct capture *c, uint32_t sandbox)
{
	return __atomic_load_n(&c->skel->bss->usage_bytes[sandbox % SANDBOXES_MAX],
			       __ATOMIC_RELAXED);
}
