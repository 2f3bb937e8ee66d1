// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "runtime/host.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/option.h"
#include "userspace/cli/oci.h"
#include "userspace/cli/util.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define TEXT_MAX  (4u << 20)
#define LOG_MAX	  (1u << 20)
#define LOOK_MS	  20

const char *const oci_status_names[] = { "created", "running", "paused", "stopped" };

static const char *const files[] = { "info", "lock", "started", "door", "log" };

static int open_root(int *ret_fd, const char *root, bool make, struct err *err)
{
	int r = make ? dir_make_all(root, 0711) : 0;

	if (r == 0)
		*ret_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && *ret_fd < 0)
		r = -errno;
	return r < 0 ? err_set(err, -r, "'%s': %m", root) : 0;
}

int oci_state_make(int *ret_dir, const char *root, const char *id, struct err *err)
{
	auto_close int all = -1;
	int r = open_root(&all, root, true, err);

	if (r < 0)
		return r;
	if (mkdirat(all, id, 0700) < 0 && errno == EEXIST)
		return err_set(err, EEXIST, "container '%s' exists already", id);
	*ret_dir = openat(all, id, DIR_FLAGS);
	return *ret_dir < 0 ? err_set(err, errno, "'%s/%s': %m", root, id) : 0;
}

int oci_state_lock(int *ret_lock, int dir)
{
	auto_close int fd = openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		return -errno;
	*ret_lock = take_fd(fd);
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

void oci_state_started(int dir)
{
	auto_close int fd =
		openat(dir, "started", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	(void)fd; /* it is there, or `state` says "created" a little longer */
}

bool oci_state_lives(const struct oci_state *s)
{
	auto_close int fd = openat(s->dir, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
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

static bool is_frozen(const char *session)
{
	auto_free char *text = NULL;
	struct host host;
	char path[4096];

	host_probe(&host);
	if ((size_t)snprintf(path, sizeof(path), "%s/warder/%s/cgroup.events", host.v2, session) >=
		    sizeof(path) ||
	    file_read_at(AT_FDCWD, path, 4096, &text, NULL) < 0)
		return false;
	return strstr(text, "frozen 1") != NULL;
}

static int parse(struct oci_state *s, struct err *err)
{
	const struct str text = { s->text, s->n };
	char number[32], bundle[8192];
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
	cli_member(text, "bundle", bundle, sizeof(bundle));
	s->bundle = strdup(bundle);
	return s->bundle ? 0 : -ENOMEM;
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
	if (r < 0) {
		oci_state_done(ret);
		return err_set(err, r == -ENOENT ? EAGAIN : -r, "container '%s': %m", id);
	}
	r = parse(ret, err);
	if (r < 0) {
		oci_state_done(ret);
		return err_wrap(err, r, "container '%s'", id);
	}
	if (!oci_state_lives(ret))
		ret->status = OCI_STOPPED;
	else if (faccessat(ret->dir, "started", F_OK, 0) < 0)
		ret->status = OCI_CREATED;
	else
		ret->status = is_frozen(ret->session) ? OCI_PAUSED : OCI_RUNNING;
	return 0;
}

void oci_state_done(struct oci_state *s)
{
	if (s->dir >= 0)
		close(s->dir);
	free(s->text);
	free(s->bundle);
	*s = (struct oci_state){ .dir = -1 };
}

void oci_state_remove(const char *root, const char *id)
{
	auto_close int all = -1, dir = -1;

	if (open_root(&all, root, false, NULL) < 0)
		return;
	dir = openat(all, id, DIR_FLAGS);
	for (size_t i = 0; dir >= 0 && i < ARRAY_SIZE(files); i++)
		unlinkat(dir, files[i], 0);
	unlinkat(all, id, AT_REMOVEDIR);
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
