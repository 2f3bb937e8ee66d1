// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"

/* A file that is replaced by another one of its name is seen in its directory only. */
#define WATCHED (IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE)

/* ---- where the sandbox can write ---- */

static bool is_below(const char *path, const char *dir)
{
	char real[PATH_MAX];
	size_t n;

	if (!dir || !realpath(dir, real))
		return false;
	n = strlen(real);
	return !strncmp(path, real, n) && (path[n] == '/' || !path[n] || !strcmp(real, "/"));
}

/* What runs inside must not write the rules it is judged by. Asked each time: links can be changed. */
static int check_place(const struct sandbox_spec *spec, const char *path, struct err *err)
{
	char real[PATH_MAX];
	bool inside;

	if (!realpath(path, real))
		return err_set(err, errno, "rule file '%s': %m", path);
	inside = is_below(real, spec->workspace);
	for (size_t i = 0; i < spec->binds_n; i++)
		inside |= spec->binds[i].writable && is_below(real, spec->binds[i].source);
	return inside ? err_set(err, EPERM,
				"rule file '%s' lies where the sandbox can write: it is not read again",
				path)
		      : 0;
}

static int check_places(const struct reloader *r, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; ret == 0 && i < r->files->n; i++)
		ret = check_place(r->spec, r->files->path[i], err);
	return ret;
}

/* ---- when ---- */

static void watch(struct reloader *r, const char *path)
{
	char text[PATH_MAX];
	const char *dir;
	struct stat st;

	if (strlen(path) >= sizeof(text) || stat(path, &st) < 0)
		return;
	snprintf(text, sizeof(text), "%s", path);
	dir = S_ISDIR(st.st_mode) ? text : dirname(text);
	if (inotify_add_watch(r->inotify_fd, dir, WATCHED | IN_ONLYDIR) < 0)
		log_warn(
			"rule file '%s': its directory cannot be watched: %s; SIGHUP loads it again",
			path, strerror(errno));
}

void reloader_init(struct reloader *r, const struct rule_files *files, struct str texts,
		   const struct sandbox_spec *spec)
{
	struct err err = { 0 };

	*r = (struct reloader){ .files = files, .spec = spec, .inotify_fd = -1 };
	buf_init(&r->last, RULE_TEXTS_MAX);
	if (!files || !files->n) {
		r->files = NULL;
		return;
	}
	if (check_places(r, &err) < 0) {
		log_info("%s", err_text(&err));
		return;
	}
	buf_add(&r->last, texts.p, texts.n);
	r->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (size_t i = 0; r->inotify_fd >= 0 && i < files->n; i++)
		watch(r, files->path[i]);
	/* What was changed between the first reading and the watch. */
	r->due = clock_ns(CLOCK_MONOTONIC);
	r->why = "file changed";
}

void reloader_done(struct reloader *r)
{
	if (r->inotify_fd >= 0)
		close(take_fd(r->inotify_fd));
	buf_done(&r->last);
	ruleset_free(r->rules);
}

bool reloader_ask(struct reloader *r, const char *why)
{
	if (!r->files)
		return false;
	r->due = clock_ns(CLOCK_MONOTONIC);
	r->why = why;
	r->asked = true;
	return true;
}

/* Of the watched directories: does this name matter? "..data" is what mounted configuration of
 * Kubernetes is replaced by. */
static bool is_ours(const struct reloader *r, const char *name)
{
	struct str s = str_from(name);

	if (str_starts(s, STR("..")) || str_ends(s, STR(".yaml")) || str_ends(s, STR(".yml")))
		return true;
	for (size_t i = 0; i < r->files->n; i++) {
		const char *slash = strrchr(r->files->path[i], '/');

		if (!strcmp(slash ? slash + 1 : r->files->path[i], name))
			return true;
	}
	return false;
}

void reloader_look(struct reloader *r)
{
	char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool ours = false;
	ssize_t n;

	while ((n = read(r->inotify_fd, buf, sizeof(buf))) > 0) {
		for (char *p = buf; p < buf + n;) {
			const struct inotify_event *ev = (const void *)p;

			ours |= (ev->mask & IN_Q_OVERFLOW) || (ev->len && is_ours(r, ev->name));
			p += sizeof(*ev) + ev->len;
		}
	}
	if (!ours || r->asked)
		return;
	r->due = clock_ns(CLOCK_MONOTONIC) + RELOAD_SETTLE_MS * NSEC_PER_MSEC;
	r->why = "file changed";
}

int reloader_timeout(const struct reloader *r)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!r->due || r->busy)
		return -1;
	return r->due > now ? (int)((r->due - now) / NSEC_PER_MSEC) + 1 : 0;
}

/* ---- what ---- */

/* Nobody can change it any more, the engine maps or reads it when it likes. */
static int seal(const struct buf *texts, struct err *err)
{
	auto_close int fd = memfd_create("warder-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fd_write_all(fd, texts->p, texts->n) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return err_set(err, errno, "handing on the rules: %m");
	return take_fd(fd);
}

static void count_errors(void *arg, const struct rule_diag *d)
{
	unsigned *n = arg;

	*n += !d->warning;
}

static int load(struct reloader *r, struct reloader_result *ret, unsigned *errors)
{
	auto_buf struct buf texts = { 0 };
	bool same;
	int n;

	buf_init(&texts, RULE_TEXTS_MAX);
	n = check_places(r, &ret->err);
	if (n == 0)
		n = rule_texts_read(&texts, r->files, &ret->err);
	if (n < 0)
		return n;
	same = texts.n == r->last.n && (!texts.n || !memcmp(texts.p, r->last.p, texts.n));
	if (same && !r->asked)
		return -EALREADY;
	buf_reset(&r->last);
	if (buf_add(&r->last, texts.p, texts.n) < 0)
		return err_set(&ret->err, ENOMEM, "rules: out of memory");
	n = rule_texts_compile(&r->rules, (struct str){ texts.p, texts.n }, r->files->actions,
			       count_errors, errors, &ret->err);
	if (n == 0)
		n = ret->texts_fd = seal(&texts, &ret->err);
	return n < 0 ? n : 0;
}

bool reloader_run(struct reloader *r, struct reloader_result *ret)
{
	unsigned errors = 0;
	int n;

	if (!r->files || !r->due || r->busy || r->due > clock_ns(CLOCK_MONOTONIC))
		return false;
	*ret = (struct reloader_result){ .texts_fd = -1, .why = r->why };
	ruleset_free(take_ptr(r->rules));
	r->due = 0;
	n = load(r, ret, &errors);
	r->asked = false;
	if (n == -EALREADY)
		return false;
	if (n < 0 && errors > 1)
		err_wrap(&ret->err, n, "%u errors, the first one", errors);
	if (n == 0)
		ret->rules = r->rules;
	r->busy = true;
	return true;
}

void reloader_answered(struct reloader *r)
{
	r->busy = false;
}
