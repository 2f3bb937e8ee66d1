// SPDX-License-Identifier: Apache-2.0
#include "userspace/cli/run_result.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"

static void json_count(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void json_text(struct json *j, const char *key, const char *text)
{
	json_key(j, key);
	if (text && *text)
		json_strz(j, text);
	else
		json_null(j);
}

/* Without --max-output stdio goes straight through: nobody counts it. */
static void json_known(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	if (v == WIRE_UNKNOWN)
		json_null(j);
	else
		json_u64(j, v);
}

static void result_json(struct json *j, const struct run_result *res, const char *reason, int code,
			const char *error)
{
	char started[RFC3339_NS_LEN + 1] = "", ended[RFC3339_NS_LEN + 1] = "";
	const struct engine_result *e = &res->engine;

	if (res->started_ns)
		rfc3339_ns(started, res->started_ns);
	if (res->ended_ns)
		rfc3339_ns(ended, res->ended_ns);
	json_object_begin(j);
	json_text(j, "session", res->session);
	json_text(j, "backend", res->backend);
	json_text(j, "image", res->image);
	json_text(j, "reason", reason);
	json_key(j, "exit_code");
	json_i64(j, code);
	json_key(j, "signal");
	json_i64(j, res->facts.signal);
	json_text(j, "rule", e->rule);
	json_text(j, "action", e->action);
	json_text(j, "started", started);
	json_text(j, "ended", ended);
	json_count(j, "cpu_usec", res->facts.cpu_usec);
	json_count(j, "mem_peak", res->facts.mem_peak);
	json_count(j, "pids_peak", res->facts.pids_peak);
	json_known(j, "stdout_bytes", res->facts.stdout_bytes);
	json_known(j, "stderr_bytes", res->facts.stderr_bytes);
	json_key(j, "truncated");
	json_bool(j, res->facts.truncated);
	json_key(j, "limits_hit");
	json_array_begin(j);
	for (uint32_t i = 0; i < 32; i++)
		if ((res->limits_hit | e->limits) >> i & 1 && event_limit_name(i))
			json_strz(j, event_limit_name(i));
	json_array_end(j);
	json_count(j, "events", e->events);
	json_count(j, "gaps", e->gaps);
	json_count(j, "alerts", e->alerts);
	json_key(j, "degraded");
	json_array_begin(j);
	for (size_t i = 0; i < res->degraded_n; i++)
		json_strz(j, res->degraded[i]);
	json_array_end(j);
	json_count(j, "sinks", e->sinks);
	json_count(j, "sinks_behind", e->sinks_behind);
	json_count(j, "dead_letters", e->dead_letters);
	json_text(j, "bundle", res->bundle);
	json_key(j, "signed");
	json_bool(j, res->is_signed && !e->journal_error); /* the end must be signed, too */
	json_text(j, "error", error);
	json_object_end(j);
}

/* ---- the file ---- */

static bool is_below(const char *dir, const char *root)
{
	char *real = realpath(root, NULL);
	size_t n = real ? strlen(real) : 0;
	bool below;

	while (n && real[n - 1] == '/')
		n--;
	below = real && !strncmp(dir, real, n) && (!dir[n] || dir[n] == '/');
	free(real);
	return below;
}

/* What a sandbox can write to, it can forge. */
static int check_place(const char *path, const struct sandbox_spec *spec, struct err *err)
{
	auto_free char *real = realpath(path, NULL);

	if (!real)
		return err_set(err, errno, "result file '%s': %m", path);
	if (spec->workspace && is_below(real, spec->workspace))
		return err_set(err, EPERM,
			       "result file: '%s' is in the sandbox's workspace, it could be "
			       "forged there",
			       path);
	for (size_t i = 0; i < spec->binds_n; i++)
		if (spec->binds[i].writable && is_below(real, spec->binds[i].source))
			return err_set(
				err, EPERM,
				"result file: the sandbox may write to '%s', it could be forged there",
				path);
	return 0;
}

static int open_in_place(struct run_result_file *f, const char *path,
			 const struct sandbox_spec *spec, struct err *err)
{
	struct stat st;

	f->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
	if (f->fd < 0 || fstat(f->fd, &st) < 0)
		return err_set(err, errno, "result file '%s': %m", path);
	return S_ISREG(st.st_mode) ? check_place(path, spec, err) : 0;
}

int run_result_open(struct run_result_file *ret, const char *path, const struct sandbox_spec *spec,
		    struct err *err)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	struct stat st;
	int r;

	*ret = (struct run_result_file)RUN_RESULT_FILE_INIT;
	if (lstat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return open_in_place(ret, path, spec, err);
	ret->name = slash ? slash + 1 : path;
	r = snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		     slash ? path : ".");
	if (r >= (int)sizeof(dir) || !*ret->name)
		return err_set(err, *ret->name ? ENAMETOOLONG : EISDIR, "result file '%s': %m",
			       path);
	ret->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dirfd < 0)
		return err_set(err, errno, "result file '%s': %m", path);
	r = check_place(dir, spec, err);
	if (r < 0)
		return r;
	if (faccessat(ret->dirfd, ".", W_OK, AT_EACCESS) < 0 ||
	    (unlinkat(ret->dirfd, ret->name, 0) < 0 && errno != ENOENT))
		return err_set(err, errno, "result file '%s': %m", path);
	return 0;
}

void run_result_done(struct run_result_file *f)
{
	auto_close_fn(&f->dirfd);
	auto_close_fn(&f->fd);
}

int run_result_write(struct run_result_file *f, const struct run_result *res, const char *reason,
		     int code, const char *error)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	if (f->dirfd < 0 && f->fd < 0)
		return 0;
	json_init(&j, &out);
	result_json(&j, res, reason, code, error);
	buf_addc(&out, '\n');
	if (out.failed)
		return -ENOMEM;
	if (f->dirfd >= 0)
		return file_replace_at(f->dirfd, f->name, out.p, out.n, 0644);
	if (ftruncate(f->fd, 0) < 0 && errno != EINVAL) /* a pipe or terminal has no length */
		return -errno;
	return fd_write_all(f->fd, out.p, out.n);
}
