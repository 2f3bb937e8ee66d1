// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/pipeline/agent_frame.h"
#include "userspace/pipeline/run_status.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define ENTRY	  "entry"
#define VERSION	  2 /* of the struct as it lies in the file */

struct stored {
	uint32_t version, size;
	struct registry_entry e;
};

static int open_all(int *ret_fd, bool make, struct err *err)
{
	char path[PATH_MAX];
	int r = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/keepers", run_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	if (make)
		r = dir_make_all(run_dir(), 0711);
	if (r == 0 && make && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		*ret_fd = open(path, DIR_FLAGS);
	if (r == 0 && *ret_fd < 0)
		r = -errno;
	return r < 0 ? err_set(err, r, "run directory '%s': %m", path) : 0;
}

/* ---- one entry ---- */

static void address(struct sockaddr_un *ret, int dirfd)
{
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/" REGISTRY_HUB, dirfd);
}

static int make_hub(int dir)
{
	auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un at;
	mode_t old = umask(0177);
	int r = 0;

	address(&at, dir);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		r = -errno;
	umask(old);
	return r < 0 ? r : take_fd(fd);
}

static void empty(int all, const char *session)
{
	auto_close int dir = openat(all, session, DIR_FLAGS);

	if (dir >= 0) {
		unlinkat(dir, ENTRY, 0);
		unlinkat(dir, REGISTRY_HUB, 0);
	}
	unlinkat(all, session, AT_REMOVEDIR);
}

int registry_add(int *ret_lock, int *ret_hub, const struct registry_entry *e, struct err *err)
{
	const struct stored s = { VERSION, sizeof(s), *e };
	auto_close int all = -1, dir = -1;
	int r = open_all(&all, true, err), hub = -1;
	char name[ULID_LEN + 2];

	if (r < 0)
		return r;
	/* Under its own name only when it is locked: who looks never takes it for a dead one's. */
	snprintf(name, sizeof(name), ".%s", e->session);
	if (mkdirat(all, name, 0700) < 0)
		return err_set(err, errno, "run directory: keepers/%s: %m", e->session);
	dir = openat(all, name, DIR_FLAGS);
	if (dir < 0 || flock(dir, LOCK_SH | LOCK_NB) < 0)
		r = -errno;
	if (r == 0)
		r = file_replace_at(dir, ENTRY, &s, sizeof(s), 0600);
	if (r == 0)
		r = hub = make_hub(dir);
	if (r >= 0 && renameat(all, name, all, e->session) < 0)
		r = -errno;
	if (r < 0) {
		if (hub >= 0)
			close(hub);
		empty(all, name);
		return err_set(err, r, "run directory: keepers/%s: %m", e->session);
	}
	*ret_lock = take_fd(dir);
	*ret_hub = hub;
	return 0;
}

void registry_remove(const char *session)
{
	auto_close int all = -1;

	if (open_all(&all, false, NULL) == 0)
		empty(all, session);
}

/* ---- all of them ---- */

static bool is_live(int dir)
{
	if (flock(dir, LOCK_EX | LOCK_NB) == 0)
		return false; /* closing lets go of it */
	return errno == EWOULDBLOCK;
}

static bool read_entry(int dir, struct registry_entry *ret)
{
	auto_close int fd = openat(dir, ENTRY, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stored s;

	if (fd < 0 || fd_read_full(fd, &s, sizeof(s)) != (ssize_t)sizeof(s) ||
	    s.version != VERSION || s.size != sizeof(s))
		return false;
	*ret = s.e;
	return true;
}

static int by_age(const void *a, const void *b)
{
	const struct registry_entry *x = a, *y = b;

	return strcmp(x->session, y->session);
}

int registry_list(struct registry_entry *ret, size_t max, struct err *err)
{
	int all = -1, r = open_all(&all, false, err);
	auto_dir DIR *dirs = NULL;
	struct dirent *de;
	size_t n = 0;

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	dirs = fdopendir(all);
	if (!dirs) {
		close(all);
		return err_set(err, ENOMEM, "run directory: %m");
	}
	while (n < max && (de = readdir(dirs))) {
		auto_close int dir = -1;

		if (!ulid_is_valid(de->d_name))
			continue;
		dir = openat(all, de->d_name, DIR_FLAGS);
		if (dir >= 0 && is_live(dir) && read_entry(dir, &ret[n]) &&
		    !strcmp(ret[n].session, de->d_name))
			n++;
	}
	if (n)
		qsort(ret, n, sizeof(*ret), by_age);
	return (int)n;
}

static bool is_meant(const struct registry_entry *e, const char *word)
{
	size_t n = strlen(word), len = strlen(e->session);

	if (!strcmp(e->name, word))
		return true;
	return n >= 4 && n <= len &&
	       (!strncasecmp(e->session, word, n) || !strcasecmp(e->session + len - n, word));
}

int registry_find(struct registry_entry *ret, const char *word, const char *tenant, struct err *err)
{
	auto_free struct registry_entry *v = calloc(REGISTRY_MAX, sizeof(*v));
	int n = v ? registry_list(v, REGISTRY_MAX, err) : -ENOMEM, found = -1;

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		if ((tenant && strcmp(tenant, v[i].tenant)) || !is_meant(&v[i], word))
			continue;
		if (found >= 0)
			return err_set(err, ENOTUNIQ, "'%s' could be more than one sandbox", word);
		found = i;
	}
	if (found < 0)
		return err_set(err, ENOENT,
			       "no running sandbox has the name or id '%s' (warder ps)", word);
	*ret = v[found];
	return 0;
}

int registry_pass(const char *session, struct str request, int client, struct err *err)
{
	auto_close int all = -1, dir = -1, fd = -1;
	struct sockaddr_un at;
	int r = open_all(&all, false, err);

	if (r < 0)
		return r;
	dir = openat(all, session, DIR_FLAGS);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (dir < 0 || fd < 0)
		return err_set(err, errno, "sandbox %s: %m", session);
	address(&at, dir);
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return err_set(err, errno,
			       "sandbox %s: nobody speaks for it: it has ended or is just ending, "
			       "or its hub has died (warder rm ends it)",
			       session);
	r = agent_send(fd, request.p, request.n, client, 0);
	return r < 0 ? err_set(err, r, "sandbox %s: %m", session) : 0;
}

int registry_lock(int *ret_fd, struct err *err)
{
	auto_close int all = -1, fd = -1;
	int r = open_all(&all, true, err);

	if (r < 0)
		return r;
	fd = openat(all, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return err_set(err, errno, "run directory: keepers/.lock: %m");
	*ret_fd = take_fd(fd);
	return 0;
}

int registry_sweep(void)
{
	int all = -1, n = 0;
	auto_dir DIR *dirs = NULL;
	struct dirent *de;

	if (open_all(&all, false, NULL) < 0)
		return 0;
	dirs = fdopendir(all);
	if (!dirs) {
		close(all);
		return 0;
	}
	while ((de = readdir(dirs))) {
		auto_close int dir = -1;
		struct stat st;

		if (!ulid_is_valid(de->d_name))
			continue;
		dir = openat(all, de->d_name, DIR_FLAGS);
		/* One that was just made may not be locked yet. */
		if (dir < 0 || is_live(dir) || fstat(dir, &st) < 0 || st.st_mtime + 10 > time(NULL))
			continue;
		empty(all, de->d_name);
		n++;
	}
	return n;
}
