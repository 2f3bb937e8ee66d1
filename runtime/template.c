// SPDX-License-Identifier: Apache-2.0
#include "runtime/template.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/mount.h"
#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

/* Files of the host that were replaced since (/etc/ld.so.cache) are seen after this long. */
#define FRESH_NS (30 * NSEC_PER_SEC)

struct template
{
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint64_t key;
	uint64_t made; /* CLOCK_MONOTONIC ns */
	pid_t owner;   /* process: a fork does not have the thread */
	bool ready, failed, quit;
	/* One request at a time. */
	struct setup *setup;
	struct clone_args *args;
	pid_t pid;
	int error;
	bool answered;
};

static pthread_mutex_t callers = PTHREAD_MUTEX_INITIALIZER;
static struct template *current;
static unsigned starts;

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	for (const unsigned char *c = p; n--; c++)
		h = (h ^ *c) * 0x100000001b3ull; /* FNV-1a */
	return h;
}

static uint64_t mix_text(uint64_t h, const char *z)
{
	return mix(h, z ? z : "", z ? strlen(z) + 1 : 1);
}

/* What the shared part of the root looks like; 0 = it cannot come from a template. */
static uint64_t plan_key(const struct sandbox_plan *p)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < p->root_n; i++) {
		const struct root_op *op = &p->root[i];

		if (op->foreign)
			return 0;
		if (!root_op_is_shared(op))
			continue;
		h = mix(h, &op->kind, sizeof(op->kind));
		h = mix(h, &op->mode, sizeof(op->mode));
		h = mix_text(h, op->target);
		h = mix_text(h, op->source);
	}
	return h ? h : 1;
}

/* Everything of the template is built in this thread's own mount namespace, and stays there. */
static int build(const struct sandbox_plan *plan)
{
	auto_free struct setup *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->plan = plan;
	s->made_workspace = s->made_scratch = -1;
	for (size_t i = 0; i < PLAN_ROOT_MAX; i++)
		s->ids[i] = -1;
	s->dev = -1;
	if (unshare(CLONE_NEWNS) < 0) /* and CLONE_FS with it: root and cwd become ours alone */
		return -errno;
	r = root_template(s);
	if (s->root > 0)
		close(s->root);
	return r;
}

static void serve(struct template *t)
{
	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (!t->quit && (!t->setup || t->answered))
			pthread_cond_wait(&t->change, &t->lock);
		if (t->quit)
			break;
		t->pid = sys_clone3(t->args);
		if (t->pid == 0)
			setup_run(t->setup);
		t->error = errno;
		t->answered = true;
		pthread_cond_broadcast(&t->change);
	}
	pthread_mutex_unlock(&t->lock);
}

/* `plan` is valid until `ready` or `failed` is told. */
struct birth {
	struct template *t;
	const struct sandbox_plan *plan;
};

static void *live(void *arg)
{
	struct birth *b = arg;
	struct template *t = b->t;
	int r = build(b->plan);

	pthread_mutex_lock(&t->lock);
	t->ready = r == 0;
	t->failed = r < 0;
	pthread_cond_broadcast(&t->change);
	pthread_mutex_unlock(&t->lock);
	if (r == 0)
		serve(t);
	return NULL;
}

static void drop(struct template *t)
{
	if (!t)
		return;
	if (t->owner == getpid()) {
		pthread_mutex_lock(&t->lock);
		t->quit = true;
		pthread_cond_broadcast(&t->change);
		pthread_mutex_unlock(&t->lock);
		pthread_join(t->thread, NULL);
		pthread_mutex_destroy(&t->lock);
		pthread_cond_destroy(&t->change);
	}
	free(t);
}

static struct template *make(const struct sandbox_plan *plan, uint64_t key)
{
	struct template *t = calloc(1, sizeof(*t));
	struct birth b = { .t = t, .plan = plan };
	sigset_t all, old;
	int r;

	if (!t)
		return NULL;
	t->key = key;
	t->owner = getpid();
	t->made = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->change, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&t->thread, NULL, live, &b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r != 0) {
		free(t);
		return NULL;
	}
	pthread_mutex_lock(&t->lock);
	while (!t->ready && !t->failed)
		pthread_cond_wait(&t->change, &t->lock);
	pthread_mutex_unlock(&t->lock);
	if (t->failed) {
		drop(t);
		return NULL;
	}
	return t;
}

/* The template for this plan, made if it is worth it. */
static struct template *get(const struct sandbox_plan *plan)
{
	uint64_t key = plan_key(plan);
	struct template *t = current;

	if (!key || starts++ == 0)
		return NULL;
	if (t && t->owner == getpid() && t->key == key &&
	    clock_ns(CLOCK_MONOTONIC) - t->made < FRESH_NS)
		return t;
	drop(t);
	current = make(plan, key);
	return current;
}

pid_t template_clone(struct setup *s, struct clone_args *args)
{
	struct template *t;
	pid_t pid = 0;
	int e = 0;

	pthread_mutex_lock(&callers);
	t = get(s->plan);
	if (t) {
		s->templated = true;
		pthread_mutex_lock(&t->lock);
		t->setup = s;
		t->args = args;
		t->answered = false;
		pthread_cond_broadcast(&t->change);
		while (!t->answered)
			pthread_cond_wait(&t->change, &t->lock);
		t->setup = NULL;
		pid = t->pid;
		e = t->error;
		pthread_mutex_unlock(&t->lock);
	}
	pthread_mutex_unlock(&callers);
	errno = e;
	return pid;
}
