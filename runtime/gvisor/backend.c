// SPDX-License-Identifier: Apache-2.0
/* gVisor, launcher's side: what the keeper is told, and what it says besides what init would. */
#include "runtime/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/birth.h"
#include "runtime/gvisor/gvisor.h"
#include "runtime/gvisor/keeper/config.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define SESSIONS_MAX (64u << 10)

extern const char keeper_blob[], keeper_blob_end[];

static uint32_t id_in(const struct sandbox *s, uint32_t block)
{
	return block | (s->host_id & PLAN_HOST_MASK);
}

/* As the guest has it, and as the gofer sees it. */
static uint32_t guest_uid(const struct sandbox *s)
{
	return s->plan->userns ? PLAN_INNER_ID : s->host_id;
}

static int sealed(const char *name, const struct buf *b, int *ret_fd, struct err *err)
{
	auto_close int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : fd_write_all(fd, b->p, b->n);

	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, -r, "memfd '%s': %m", name);
	*ret_fd = take_fd(fd);
	return 0;
}

static bool has_points(const struct sandbox *s)
{
	return s->guest && s->guest->pod_init;
}

static int config(struct sandbox *s, struct setup *t, struct err *err)
{
	auto_buf struct buf words = { 0 };
	const struct gvisor_runsc *runsc;
	int r = gvisor_runsc_get(&runsc, err);

	buf_init(&words, GVISOR_CONFIG_MAX);
	if (r == 0)
		r = gvisor_words(s->plan, runsc, has_points(s), s->processes >= 0, &words, err);
	return r < 0 ? r : sealed("warder-keeper-config", &words, &t->config, err);
}

/* Runsc maps the sentry to nobody in a namespace below this one. */
static int map(struct sandbox *s)
{
	const struct userns_id ids[] = {
		{ 0, id_in(s, GVISOR_ROOT_IDS) },
		{ PLAN_INNER_ID, s->host_id },
		{ GVISOR_NOBODY, id_in(s, GVISOR_NOBODY_IDS) },
	};

	return userns_map_ids(s->pid, ids, ARRAY_SIZE(ids));
}

/* `"key":` in a text, or NULL. */
static const char *behind(const char *text, const char *key)
{
	const char *at = text ? strstr(text, key) : NULL;

	return at ? at + strlen(key) : NULL;
}

/* As `runsc trace list` prints what the sentry answers; the guest has not run yet. */
static int show_gate(struct sandbox *s, int fd, struct err *err)
{
	auto_free char *text = NULL;
	const char *name, *sink, *dropped;
	char list[512];
	int n, r;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(err, errno, "guest's events: %m");
	r = fd_read_text(fd, SESSIONS_MAX, &text, NULL);
	if (r < 0)
		return err_set(err, -r, "guest's events: %m");
	name = behind(text, "\"name\":\"");
	sink = behind(name, "\"name\":\"");
	dropped = behind(sink, "\"DroppedCount\":");
	if (name && sink)
		n = snprintf(list, sizeof(list),
			     "SESSIONS (1)\n\"%.*s\"\n\tSink: \"%.*s\", dropped: %llu\n",
			     (int)MIN(strcspn(name, "\""), (size_t)64), name,
			     (int)MIN(strcspn(sink, "\""), (size_t)64), sink,
			     dropped ? strtoull(dropped, NULL, 10) : 0);
	else
		n = snprintf(list, sizeof(list), "SESSIONS (0)\n");
	return s->guest->gate ? s->guest->gate(s->guest->arg, list, (size_t)n, err) : 0;
}

static int frame(struct sandbox *s, const struct init_frame *f, int fd, struct err *err)
{
	int r;

	if (f->type == FRAME_PROCESSES && fd >= 0 && has_points(s) && s->processes >= 0 &&
	    !s->processes_come) {
		s->processes_come = true;
		r = s->guest->processes ? s->guest->processes(s->guest->arg, fd, err) : 0;
		return r < 0 ? err_wrap(err, r, "gVisor") : SANDBOX_STARTING;
	}
	if (f->type != FRAME_MADE || fd < 0 || !has_points(s))
		return err_set(err, EPROTO, "gVisor set-up: unexpected frame %u", f->type);
	r = show_gate(s, fd, err);
	if (r == 0)
		r = s->processes >= 0 && !s->processes_come
			    ? birth_send_fd(s, FRAME_GO, s->processes)
			    : birth_send(s, FRAME_GO, 0, 0);
	return r < 0 ? err_wrap(err, r, "gVisor") : SANDBOX_STARTING;
}

static struct birth birth = {
	.program = keeper_blob,
	.program_end = keeper_blob_end,
	.steps = gvisor_steps,
	.workspace = &GVISOR_TREE "/workspace"[1],
	.config = config,
	.map = map,
	.frame = frame,
};

static int begin(struct sandbox *s, const int stdio[3], struct err *err)
{
	struct gvisor_setup g = { 0 };
	const struct gvisor_runsc *runsc;
	int r = gvisor_runsc_get(&runsc, err);

	if (r < 0)
		return r == -ENOENT ? -ENOPKG : r;
	if (s->processes >= 0 && !has_points(s))
		return err_set(err, EINVAL, "processes that were kept do not go on unwatched");
	if (!gvisor_platform(runsc, s->plan->platform))
		return err_set(err, EOPNOTSUPP, "'%s' (%s) does not have the platform %s",
			       runsc->path, runsc->version, s->plan->platform);
	buf_init(&g.config, GVISOR_CONFIG_MAX);
	buf_init(&g.pod_init, GVISOR_CONFIG_MAX);
	g.runsc = runsc->path;
	g.root_id = s->plan->userns ? id_in(s, GVISOR_ROOT_IDS) : 0;
	if (has_points(s)) {
		g.sink = s->guest->sink;
		buf_addz(&g.pod_init, s->guest->pod_init);
	}
	r = gvisor_bundle(s->plan, guest_uid(s), &g.config, err);
	if (r == 0 && g.pod_init.failed)
		r = err_set(err, ENOMEM, "guest's events: %m");
	if (r == 0)
		r = birth_begin(s, &birth, &g, stdio, err);
	buf_done(&g.config);
	buf_done(&g.pod_init);
	return r;
}

/* The guest's own limit is an rlimit, in the bundle; around it there must be room for what serves it. */
static struct sandbox_limits limits(const struct sandbox_limits *l)
{
	struct sandbox_limits own = *l;

	if (own.pids)
		own.pids = own.pids * GVISOR_TASKS_EACH + GVISOR_TASKS_OWN;
	return own;
}

static int follow(struct sandbox *s, int timeout_ms, struct err *err)
{
	return birth_follow(s, &birth, timeout_ms, err);
}

static int exec_more(struct sandbox *s, const struct sandbox_exec *x, struct err *err)
{
	auto_buf struct buf words = { 0 };
	auto_close int fd = -1;
	int r;

	buf_init(&words, GVISOR_CONFIG_MAX);
	r = gvisor_process(s->plan, x, guest_uid(s), &words, err);
	if (r == 0)
		r = sealed("warder-process", &words, &fd, err);
	return r < 0 ? r : birth_exec(s, x, fd, err);
}

/* Under ptrace a call of the guest ends as one of its stub; under systrap it comes to no kernel but the sentry. */
static bool mirrors(const struct sandbox_plan *p)
{
	const struct gvisor_runsc *r;
	const char *platform;

	if (gvisor_runsc_get(&r, NULL) < 0)
		return false;
	platform = gvisor_platform(r, p->platform);
	return platform && !strcmp(platform, "ptrace");
}

/* What a checkpoint of gVisor's cannot have in it, and who cannot be trusted with one. */
static int keeps(const struct sandbox_plan *p, struct sandbox_runtime *ret, struct err *err)
{
	const struct gvisor_runsc *r;
	int k = gvisor_runsc_get(&r, err);

	if (k < 0)
		return k;
	if (!r->has_restore)
		return err_set(
			err, EOPNOTSUPP,
			"runsc %s keeps no processes that could be trusted again: it gives them "
			"their descriptors back by number, whatever has that number then",
			r->version);
	if (p->net != SANDBOX_NET_NONE)
		return err_set(err, EOPNOTSUPP,
			       "gVisor keeps no processes that have a network: --net none");
	if (p->tty)
		return err_set(err, EOPNOTSUPP, "gVisor keeps no processes that have a terminal");
	snprintf(ret->name, sizeof(ret->name), "runsc %s %s", r->version,
		 gvisor_platform(r, p->platform));
	return 0;
}

static int checkpoint(struct sandbox *s, int fd, struct err *err)
{
	int r = birth_send_fd(s, FRAME_CHECKPOINT, fd);

	return r < 0 ? err_set(err, -r, "gVisor's keeper: %m") : 0;
}

static int go_on(struct sandbox *s)
{
	return birth_send(s, FRAME_CONTINUE, 0, 0);
}

const struct backend backend_gvisor = {
	.name = "gvisor",
	.what = "gVisor, a kernel of its own in user space (runsc)",
	.holds = true,
	.root = GVISOR_TREE,
	.mirrors = mirrors,
	.limits = limits,
	.prepare = birth_prepare,
	.begin = begin,
	.follow = follow,
	.dispatch = birth_dispatch,
	.signal = birth_signal,
	.exec = exec_more,
	.exec_signal = birth_exec_signal,
	.keeps = keeps,
	.checkpoint = checkpoint,
	.go_on = go_on,
	.done = birth_done,
};
