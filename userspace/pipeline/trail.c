// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/trail.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/run.h"
#include "userspace/store/hostlog.h"
#include "userspace/store/manifest.h"

int trail_open(int *ret_fd, struct err *err)
{
	int fd = open(state_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, errno, "state directory '%s': %m", state_dir());
	*ret_fd = fd;
	return 0;
}

int trail_add(const char *kind, const char *session, struct str data, struct err *err)
{
	const struct hostlog_entry e = { .kind = kind, .session = session, .data = data };
	auto_close int dirfd = -1, keys_fd = -1;
	uint8_t key[KEY_LEN];
	int r = trail_open(&dirfd, err);

	if (r < 0)
		return r;
	/* No key is no error: then the chain alone must do. */
	if (keys_open(&keys_fd, false, NULL) < 0 || keys_public(keys_fd, key, NULL) == -ENOENT)
		auto_close_fn(&keys_fd), keys_fd = -1;
	return hostlog_append(dirfd, &e, keys_fd, err);
}

int trail_add_start(const char *session, const char *path, struct err *err)
{
	auto_buf struct buf data = { 0 };
	struct json j;

	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "bundle");
	json_strz(&j, path);
	json_object_end(&j);
	return data.failed ? err_set(err, ENOMEM, "%m")
			   : trail_add("start", session, (struct str){ data.p, data.n }, err);
}

int trail_add_session(int bundle_fd, const char *session, const char *path, const char *reason,
		      struct err *err)
{
	auto_buf struct buf text = { 0 }, data = { 0 };
	struct manifest_info m;
	struct json j;

	buf_init(&text, MANIFEST_MAX);
	if (manifest_load(bundle_fd, &text) < 0 ||
	    manifest_parse((struct str){ text.p, text.n }, &m) < 0)
		m = (struct manifest_info){ 0 };
	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "bundle");
	json_strz(&j, path);
	json_key(&j, "reason");
	json_strz(&j, reason);
	json_key(&j, "sealed");
	json_bool(&j, m.sealed);
	json_key(&j, "records");
	json_u64(&j, m.records);
	json_key(&j, "lost");
	json_u64(&j, m.gaps);
	json_key(&j, "head");
	json_strz(&j, m.head);
	json_object_end(&j);
	if (data.failed)
		return err_set(err, ENOMEM, "%m");
	return trail_add("session", session, (struct str){ data.p, data.n }, err);
}

void trail_add_access(const char *session, const char *what)
{
	auto_buf struct buf data = { 0 };
	struct err err = { 0 };
	struct json j;
	int r;

	if (geteuid() != 0)
		return;
	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "command");
	json_strz(&j, what);
	json_object_end(&j);
	r = trail_add("access", session, (struct str){ data.p, data.n }, &err);
	if (r < 0)
		log_warn("this access could not be written to the host log: %s", err_text(&err));
}
