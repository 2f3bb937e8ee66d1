// SPDX-License-Identifier: Apache-2.0
#include "exporters/kafka_end.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"

struct kafka_link {
	_Atomic(struct kafka_sink *) sink;
	rd_kafka_t *rk; /* that ends */
	/* The rest is for who waits for the end. Who comes last frees it. */
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool ended, left;
};

static atomic_int ending;

struct kafka_link *kafka_link_new(struct kafka_sink *s)
{
	struct kafka_link *l = NULL;
	pthread_condattr_t attr;

	if (atomic_load(&ending) < KAFKA_ENDING_MAX)
		l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	atomic_store(&l->sink, s);
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->moved, &attr);
	pthread_condattr_destroy(&attr);
	return l;
}

void kafka_link_free(struct kafka_link *l)
{
	if (!l)
		return;
	pthread_cond_destroy(&l->moved);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

struct kafka_sink *kafka_link_sink(struct kafka_link *l)
{
	return atomic_load(&l->sink);
}

void kafka_link_cut(struct kafka_link *l)
{
	atomic_store(&l->sink, NULL);
}

static void *end_thread(void *arg)
{
	struct kafka_link *l = arg;
	bool left;

	rd_kafka_destroy(l->rk);
	atomic_fetch_sub(&ending, 1);
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	left = l->left;
	pthread_cond_signal(&l->moved);
	pthread_mutex_unlock(&l->lock);
	if (left)
		kafka_link_free(l);
	return NULL;
}

/* Did it end in time? If not, its thread frees the link. */
static bool wait_for_end(struct kafka_link *l, int wait_ms)
{
	uint64_t at = clock_ns(CLOCK_MONOTONIC) + (uint64_t)wait_ms * NSEC_PER_MSEC;
	struct timespec ts = { .tv_sec = (time_t)(at / NSEC_PER_SEC),
			       .tv_nsec = (long)(at % NSEC_PER_SEC) };
	bool ended;

	pthread_mutex_lock(&l->lock);
	while (!l->ended && pthread_cond_timedwait(&l->moved, &l->lock, &ts) == 0)
		continue;
	ended = l->ended;
	l->left = !ended;
	pthread_mutex_unlock(&l->lock);
	return ended;
}

void kafka_end(rd_kafka_t *rk, struct kafka_link *l, int wait_ms)
{
	sigset_t all, old;
	pthread_t thread;
	int r;

	l->rk = rk;
	atomic_fetch_add(&ending, 1);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, NULL, end_thread, l);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r) { /* no threads: then it takes what it takes */
		rd_kafka_destroy(rk);
		atomic_fetch_sub(&ending, 1);
		kafka_link_free(l);
		return;
	}
	/* The thread is joined when it has ended in time, so that nothing of it is left at our exit. */
	if (wait_for_end(l, wait_ms)) {
		pthread_join(thread, NULL);
		kafka_link_free(l);
	} else {
		pthread_detach(thread);
	}
}
