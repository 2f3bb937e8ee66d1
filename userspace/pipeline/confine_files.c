// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/confine_files.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/landlock.h"
#include "userspace/base/auto.h"

/* What libraries look for when they are loaded, find a host by its name or check a certificate. All of it may be read by
 * anybody; what may not is kept by its owner and mode. */
static const char *const of_libraries[] = {
	"/usr",
	"/lib",
	"/lib64",
	"/etc",
	"/dev/null",
	"/dev/urandom",
	"/sys/devices/system/cpu",
	"/run/systemd/resolve", /* where /etc/resolv.conf leads */
	"/run/NetworkManager",
	"/run/resolvconf",
	"/var/lib/ca-certificates",
};

int confine_files_begin(struct confine_files *ret, struct err *err)
{
	*ret = (struct confine_files){ .set = -1, .abi = landlock_abi() };
	if (!ret->abi)
		return 0;
	ret->set = landlock_begin(ret->abi);
	return ret->set < 0 ? err_set(err, -ret->set, "Landlock: %m") : 0;
}

static int add_fd(struct confine_files *c, int fd, bool writes)
{
	return landlock_allow_fd(c->set, c->abi, fd, writes ? LANDLOCK_WRITE : LANDLOCK_LOOK);
}

static int add_path(struct confine_files *c, const char *path, bool writes, struct err *err)
{
	auto_close int fd = c->set < 0 ? -1 : open(path, O_PATH | O_CLOEXEC);
	int r;

	if (fd < 0) /* what is not there cannot be opened either */
		return 0;
	r = add_fd(c, fd, writes);
	return r < 0 ? err_set(err, -r, "Landlock: '%s': %m", path) : 0;
}

int confine_files_add(struct confine_files *c, const struct confine_place *v, size_t n,
		      struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0 && c->set >= 0; i++) {
		if (v[i].path)
			r = add_path(c, v[i].path, v[i].writes, err);
		else if (v[i].fd >= 0)
			r = add_fd(c, v[i].fd, v[i].writes);
		if (r < 0 && !v[i].path)
			return err_set(err, -r, "Landlock: descriptor %d: %m", v[i].fd);
	}
	return r;
}

int confine_files_add_libraries(struct confine_files *c, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(of_libraries) && r == 0; i++)
		r = add_path(c, of_libraries[i], false, err);
	return r;
}

/* A file that is made, moved away and made anew: its directory; of a device or a pipe itself. */
static int add_written(struct confine_files *c, const char *path, struct err *err)
{
	char copy[PATH_MAX], real[PATH_MAX];
	struct stat st;
	int r;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", path) >= sizeof(copy))
		return err_set(err, ENAMETOOLONG, "'%.80s...': %m", path);
	if (stat(path, &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
		return add_path(c, path, true, err);
	r = add_path(c, dirname(copy), true, err);
	if (r == 0 && realpath(path, real)) /* where a link leads */
		r = add_path(c, dirname(real), true, err);
	return r;
}

int confine_files_add_sink(struct confine_files *c, const struct exporter_config *cfg,
			   struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < cfg->props_n && r == 0; i++) {
		const char *value = cfg->props[i].value;

		if (!strcmp(cfg->props[i].key, "path"))
			r = add_written(c, value, err);
		else if (!strncmp(value, "unix:/", 6))
			r = add_written(c, value + 5, err);
		else if (value[0] == '/')
			r = add_path(c, value, false, err);
	}
	return r;
}

int confine_files_only(const struct confine_place *v, size_t n, struct err *err)
{
	struct confine_files c;
	int r = confine_files_begin(&c, err);

	if (r == 0)
		r = confine_files_add(&c, v, n, err);
	if (r == 0)
		return confine_files_end(&c, err);
	if (c.set >= 0)
		close(c.set);
	return r;
}

int confine_files_end(struct confine_files *c, struct err *err)
{
	int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;

	if (c->set >= 0) {
		r = r < 0 ? r : landlock_end(c->set);
		close(take_fd(c->set));
	}
	return r < 0 ? err_set(err, -r, "Landlock: %m") : 0;
}
