// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "runtime/host.h"
#include "runtime/sandbox.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/file_lock.h"
#include "userspace/base/json.h"
#include "userspace/base/option.h"
#include "userspace/cli/oci.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/registry.h"
#include "userspace/pipeline/run_status.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define TEXT_MAX  (4u << 20)
#define LOG_MAX	  (1u << 20)
#define LOOK_MS	  20
#define PROC_MAX  (1u << 20)

const char *const oci_status_names[] = { "creating", "created", "running", "paused", "stopped" };

static const char *const files[] = { "info", "created", "started", "door", "log", "lock" };

static int open_root(int *ret_fd, const char *root, bool make, struct err *err)
{
	int r = make ? dir_make_all(root, 0711) : 0;

	if (r == 0)
		*ret_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && *ret_fd < 0)
		r = -errno;
	return r < 0 ? err_set(err, -r, "'%s': %m", root) : 0;
}

int oci_state_make(int *ret_dir, int *ret_lock, const char *root, const char *id, struct err *err)
{
	auto_close int all = -1, dir = -1, lock = -1;
	int r = open_root(&all, root, true, err);

	if (r < 0)
		return r;
	if (mkdirat(all, id, 0700) < 0)
		return errno == EEXIST ? err_set(err, EEXIST, "container '%s' exists already", id)
				       : err_set(err, errno, "'%s/%s': %m", root, id);
	dir = openat(all, id, DIR_FLAGS);
	if (dir >= 0)
		lock = openat(dir, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			      0600);
	r = lock < 0 ? -errno : file_lock_take(lock);
	if (r < 0) {
		err_set(err, -r, "'%s/%s': %m", root, id);
		oci_state_remove(root, id, dir);
		return r;
	}
	*ret_dir = take_fd(dir);
	*ret_lock = take_fd(lock);
	return 0;
}

int oci_state_write(int dir, const char *id, const char *session, const char *bundle,
		    const struct oci_config *c, pid_t keeper, struct err *err)
{
	auto_buf struct buf text = { 0 };
	char when[RFC3339_NS_LEN + 1];
	struct json j;
	int r;

	rfc3339_ns(when, clock_real_ns());
	json_init(&j, &text);
	json_object_begin(&j);
	json_key(&j, "id");
	json_strz(&j, id);
	json_key(&j, "session");
	json_strz(&j, session);
	json_key(&j, "bundle");
	json_strz(&j, bundle);
	json_key(&j, "keeper");
	json_u64(&j, (uint64_t)keeper);
	json_key(&j, "uid");
	json_u64(&j, c->process.uid);
	json_key(&j, "gid");
	json_u64(&j, c->process.gid);
	json_key(&j, "rootfs");
	json_strz(&j, c->root);
	json_key(&j, "created");
	json_strz(&j, when);
	json_key(&j, "annotations");
	json_object_begin(&j);
	for (size_t i = 0; i < c->annotations_n; i++) {
		json_key_str(&j, str_from(c->annotations[i].key));
		json_strz(&j, c->annotations[i].value);
	}
	json_object_end(&j);
	json_object_end(&j);
	r = text.failed ? -ENOMEM : file_replace_at(dir, "info", text.p, text.n, 0600);
	return r < 0 ? err_set(err, -r, "container '%s': %m", id) : 0;
}

/* It is there, or `state` says what was before a little longer. */
static void mark(int dir, const char *name)
{
	auto_close int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	(void)fd;
}

void oci_state_created(int dir)
{
	mark(dir, "created");
}

void oci_state_started(int dir)
{
	mark(dir, "started");
}

bool oci_state_lives(const struct oci_state *s)
{
	auto_close int fd = openat(s->dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && file_lock_is_taken(fd);
}

bool oci_state_wait(const struct oci_state *s, int timeout_ms)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * NSEC_PER_MSEC;

	while (oci_state_lives(s)) {
		if (clock_ns(CLOCK_MONOTONIC) >= end)
			return false;
		usleep(LOOK_MS * 1000);
	}
	return true;
}

int oci_cgroup_file(const char *session, const char *file, char **ret_text)
{
	auto_free char *mounts = NULL;
	struct host host = { 0 };
	char path[HOST_PATH_MAX + 128];
	int r = file_read_at(AT_FDCWD, "/proc/self/mountinfo", PROC_MAX, &mounts, NULL);

	if (r < 0)
		return r;
	host_cgroups_parse(&host, mounts, "");
	if ((size_t)snprintf(path, sizeof(path), "%s/warder/%s/%s", host.v2, session, file) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	return file_read_at(AT_FDCWD, path, PROC_MAX, ret_text, NULL);
}

static bool is_frozen(const char *session)
{
	auto_free char *text = NULL;

	return oci_cgroup_file(session, "cgroup.events", &text) == 0 && strstr(text, "frozen 1");
}

static int parse(struct oci_state *s, struct err *err)
{
	const struct str text = { s->text, s->n };
	char number[32];
	uint64_t keeper;
	struct str v;

	cli_member(text, "session", s->session, sizeof(s->session));
	scan_text(text, "keeper", number, sizeof(number));
	if (!ulid_is_valid(s->session) || parse_u64(number, &keeper) < 0 || keeper > INT32_MAX)
		return err_set(err, EBADMSG, "its state is unreadable");
	s->keeper = (pid_t)keeper;
	if (!scan_find(text, "uid", &v) || !scan_u64(v, &s->uid) || !scan_find(text, "gid", &v) ||
	    !scan_u64(v, &s->gid))
		return err_set(err, EBADMSG, "its state is unreadable");
	return 0;
}

static enum oci_status status_of(const struct oci_state *s)
{
	if (!oci_state_lives(s))
		return OCI_STOPPED;
	if (faccessat(s->dir, "created", F_OK, 0) < 0)
		return OCI_CREATING;
	if (faccessat(s->dir, "started", F_OK, 0) < 0)
		return OCI_CREATED;
	return is_frozen(s->session) ? OCI_PAUSED : OCI_RUNNING;
}

int oci_state_open(struct oci_state *ret, const char *root, const char *id, struct err *err)
{
	auto_close int all = -1;
	int r;

	*ret = (struct oci_state){ .dir = -1 };
	r = open_root(&all, root, false, NULL);
	if (r == 0)
		ret->dir = openat(all, id, DIR_FLAGS);
	if (r == 0 && ret->dir < 0)
		r = -errno;
	if (r == -ENOENT)
		return err_set(err, ENOENT, "container '%s' does not exist", id);
	if (r == 0)
		r = file_read_at(ret->dir, "info", TEXT_MAX, &ret->text, &ret->n);
	if (r == -ENOENT)
		r = oci_state_lives(ret)
			    ? err_set(err, EAGAIN, "container '%s' is being made", id)
			    : err_set(err, EBADMSG, "container '%s' was never made", id);
	else if (r < 0)
		err_set(err, -r, "container '%s': %m", id);
	if (r < 0) {
		oci_state_done(ret);
		return r;
	}
	r = parse(ret, err);
	if (r < 0) {
		oci_state_done(ret);
		return err_wrap(err, r, "container '%s'", id);
	}
	ret->status = status_of(ret);
	return 0;
}

void oci_state_done(struct oci_state *s)
{
	if (s->dir >= 0)
		close(s->dir);
	free(s->text);
	*s = (struct oci_state){ .dir = -1 };
}

void oci_state_remove(const char *root, const char *id, int dir)
{
	auto_close int all = -1;

	for (size_t i = 0; dir >= 0 && i < ARRAY_SIZE(files); i++)
		unlinkat(dir, files[i], 0);
	if (open_root(&all, root, false, NULL) == 0)
		unlinkat(all, id, AT_REMOVEDIR);
}

void oci_sweep(const char *session)
{
	sandbox_sweep(NULL);
	run_status_sweep();
	registry_remove(session);
}

void oci_state_error(int dir, char ret[OCI_TEXT])
{
	auto_free char *text = NULL;
	char *save = NULL;

	ret[0] = 0;
	if (file_read_at(dir, "log", LOG_MAX, &text, NULL) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *at = strstr(line, "error: ");

		if (at)
			snprintf(ret, OCI_TEXT, "%s", at + strlen("error: "));
	}
}
