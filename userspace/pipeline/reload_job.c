// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/reload.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

static void compile(struct reload_job *j)
{
	auto_buf struct buf texts = { 0 };
	int r;

	buf_init(&texts, RULE_TEXTS_MAX);
	r = lseek(j->texts_fd, 0, SEEK_SET) < 0 ? -errno : fd_read_rest(j->texts_fd, &texts);
	if (r < 0) {
		err_set(&j->err, r, "reading the rules: %m");
		return;
	}
	rule_texts_compile(&j->rules, (struct str){ texts.p, texts.n }, j->actions, NULL, NULL,
			   &j->err);
}

static void *run(void *arg)
{
	struct reload_job *j = arg;

	compile(j);
	eventfd_write(j->done_fd, 1);
	return NULL;
}

int reload_job_start(struct reload_job *j, int texts_fd, unsigned actions, const char *why)
{
	auto_close int texts = texts_fd, done = -1;
	int r;

	if (j->running)
		return -EBUSY;
	done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (done < 0)
		return -errno;
	j->texts_fd = texts;
	j->done_fd = done;
	j->actions = actions;
	j->rules = NULL;
	j->err = (struct err){ 0 };
	snprintf(j->why, sizeof(j->why), "%s", why);
	r = pthread_create(&j->thread, NULL, run, j);
	if (r)
		return -r;
	take_fd(texts);
	take_fd(done);
	j->running = true;
	return 0;
}

int reload_job_fd(const struct reload_job *j)
{
	return j->running ? j->done_fd : -1;
}

int reload_job_take(struct reload_job *j, struct ruleset **ret, struct err *err)
{
	if (!j->running)
		return -ENOENT;
	pthread_join(j->thread, NULL);
	j->running = false;
	close(j->texts_fd);
	close(j->done_fd);
	if (!j->rules)
		return err_set(err, j->err.code ? j->err.code : EINVAL, "%s", err_text(&j->err));
	*ret = j->rules;
	j->rules = NULL;
	return 0;
}
