// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/tenant_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/run.h"

bool tenant_dir_name_is_good(const char *z)
{
	size_t n = strlen(z);

	if (n == 0 || n > TENANT_DIR_NAME_MAX || !isalnum((unsigned char)z[0]))
		return false;
	for (; *z; z++)
		if (!isalnum((unsigned char)*z) && !strchr("._-", *z))
			return false;
	return true;
}

int tenant_dir_check(const char *kind, const char *tenant, struct err *err)
{
	return tenant_dir_name_is_good(tenant)
		       ? 0
		       : err_set(err, EINVAL,
				 "tenant '%.80s': its %s need a name of letters, digits, '.', '_' "
				 "and '-'",
				 tenant, kind);
}

int tenant_dir_open_all(int *ret_fd, const char *kind, bool make, struct err *err)
{
	char path[PATH_MAX];
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", state_dir(), kind) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	if (make)
		r = dir_make_all(state_dir(), 0711);
	if (r == 0 && make && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0) {
		*ret_fd = open(path, TENANT_DIR_FLAGS);
		r = *ret_fd < 0 ? -errno : 0;
	}
	return r < 0 ? err_set(err, r, "'%s': %m", path) : 0;
}

int tenant_dir_open(int *ret_fd, const char *kind, const char *tenant, bool make, struct err *err)
{
	auto_close int top = -1;
	int r = tenant_dir_check(kind, tenant, err);

	if (r == 0)
		r = tenant_dir_open_all(&top, kind, make, err);
	if (r < 0)
		return r;
	if (make && mkdirat(top, tenant, 0700) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s of '%s': %m", kind, tenant);
	*ret_fd = openat(top, tenant, TENANT_DIR_FLAGS);
	return *ret_fd < 0 ? err_set(err, errno, "%s of '%s': %m", kind, tenant) : 0;
}

int tenant_dir_each(const char *kind, const char *tenant,
		    int (*fn)(void *arg, const char *tenant, int dir), void *arg, struct err *err)
{
	auto_free struct dirent **v = NULL;
	auto_close int top = -1;
	int n, r = tenant_dir_open_all(&top, kind, false, err);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	n = scandirat(top, ".", &v, NULL, alphasort);
	if (n < 0)
		return err_set(err, errno, "%s: %m", kind);
	for (int i = 0; i < n; i++) {
		auto_free struct dirent *de = v[i];
		auto_close int dir = -1;

		if (r != 0 || !tenant_dir_name_is_good(de->d_name) ||
		    (tenant && strcmp(tenant, de->d_name)))
			continue;
		dir = openat(top, de->d_name, TENANT_DIR_FLAGS);
		if (dir >= 0)
			r = fn(arg, de->d_name, dir);
	}
	return r;
}
