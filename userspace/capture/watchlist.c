// SPDX-License-Identifier: Apache-2.0
/* The watch list: entries -> keys of the kernel's maps. */
#include "userspace/capture/watchlist.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include "userspace/base/auto.h"

#define KEY_BITS 32 /* of `keys`, in front of the path */

static bool is_clean(const char *p, size_t n)
{
	if (n == 0 || p[0] != '/')
		return false;
	for (size_t i = 0; i < n;) {
		size_t k = 0;

		while (i < n && p[i] == '/')
			i++;
		while (i + k < n && p[i + k] != '/')
			k++;
		if ((k == 1 && p[i] == '.') || (k == 2 && p[i] == '.' && p[i + 1] == '.') ||
		    (k == 0 && i < n))
			return false;
		i += k;
	}
	return true;
}

int watchlist_check(const char *text, struct err *err)
{
	size_t n = strlen(text);

	if (n > ENFORCE_PATH_MAX - 2)
		return err_set(err, EINVAL, "'%.40s...' has more than %d bytes", text,
			       ENFORCE_PATH_MAX - 2);
	if (!is_clean(text, n) || strstr(text, "//"))
		return err_set(err, EINVAL,
			       "'%s' is not an absolute path without empty, . and .. parts", text);
	if (strcspn(text, "*") + 1 < n)
		return err_set(
			err, EINVAL,
			"'%s': * may stand at the end only, as in '%.*s*'; for a folder with all "
			"below it '/DIR/'",
			text, (int)strcspn(text, "*"), text);
	return 0;
}

/* `n` bytes of the path, its NUL among them where it must end there. */
static int add_path(struct watchlist_tables *t, const char *bytes, size_t n, uint32_t id,
		    struct err *err)
{
	struct watchlist_key *row = &t->paths[t->paths_n];

	if (t->paths_n == WATCHLIST_PATHS_MAX)
		return err_set(err, E2BIG, "more than %d paths are watched", WATCHLIST_PATHS_MAX);
	memset(row, 0, sizeof(*row));
	row->key.prefixlen = KEY_BITS + 8 * (uint32_t)n;
	memcpy(row->key.path, bytes, n);
	row->id = id;
	t->paths_n++;
	t->mode |= WATCHLIST_PATHS;
	return 0;
}

/* The kernel's number of the device that a file lies on, as the mount table has it: btrfs and overlays show
 * others in stat. */
static uint32_t device_of(const char *path, const struct stat *st)
{
	auto_file FILE *f = NULL;
	unsigned long long id;
	unsigned int ma, mi;
	struct statx sx;
	char line[4096];

	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &sx) == 0 && sx.stx_mask & STATX_MNT_ID)
		f = fopen("/proc/self/mountinfo", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llu %*u %u:%u", &id, &ma, &mi) == 3 && id == sx.stx_mnt_id)
			return ma << 20 | mi;
	return major(st->st_dev) << 20 | minor(st->st_dev);
}

static int add_inode(struct watchlist_tables *t, const char *path, bool below, uint32_t id,
		     struct err *err)
{
	struct watchlist_row *row = &t->inodes[t->inodes_n];
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return 0;
	if (t->inodes_n == WATCHLIST_INODES_MAX)
		return err_set(err, E2BIG, "more than %d files are watched", WATCHLIST_INODES_MAX);
	memset(row, 0, sizeof(*row));
	row->key.ino = st.st_ino;
	row->key.dev = device_of(path, &st);
	row->key.below = below && S_ISDIR(st.st_mode);
	row->id = id;
	t->inodes_n++;
	t->mode |= row->key.below ? WATCHLIST_BELOW : WATCHLIST_INODES;
	return 0;
}

static int add_entry(struct watchlist_tables *t, const struct watch_entry *e, uint32_t id,
		     struct err *err)
{
	char bytes[ENFORCE_PATH_MAX] = { 0 };
	size_t n = strlen(e->text);
	int r = watchlist_check(e->text, err);

	if (r < 0)
		return r;
	memcpy(bytes, e->text, n);
	if (bytes[n - 1] == '*') /* what will match is not known, so no inode is */
		return add_path(t, bytes, n - 1, id, err);
	if (n > 1 && bytes[n - 1] == '/') {
		r = add_path(t, bytes, n, id, err);
		bytes[--n] = 0;
		if (r == 0)
			r = add_path(t, bytes, n + 1, id, err);
		return r < 0 ? r : add_inode(t, e->host_path, true, id, err);
	}
	r = add_path(t, bytes, n == 1 ? 1 : n + 1, id, err); /* of the root: all there is */
	return r < 0 ? r : add_inode(t, e->host_path, n == 1, id, err);
}

int watchlist_compile(struct watchlist_tables *t, const struct watch_entry *v, size_t n,
		      struct err *err)
{
	memset(t, 0, sizeof(*t));
	if (n > WATCHLIST_MAX)
		return err_set(err, E2BIG, "more than %d watched paths", WATCHLIST_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = add_entry(t, &v[i], (uint32_t)i + 1, err);

		if (r < 0)
			return err_wrap(err, r, "watched path %zu", i + 1);
	}
	return 0;
}

int watchlist_load(const struct watchlist_tables *t, int paths_fd, int inodes_fd, struct err *err)
{
	for (size_t i = 0; i < t->paths_n; i++)
		if (bpf_map_update_elem(paths_fd, &t->paths[i].key, &t->paths[i].id, BPF_ANY) < 0)
			return err_set(err, errno, "watched path '%s': %m", t->paths[i].key.path);
	for (size_t i = 0; i < t->inodes_n; i++)
		if (bpf_map_update_elem(inodes_fd, &t->inodes[i].key, &t->inodes[i].id, BPF_ANY) <
		    0)
			return err_set(err, errno, "watched inode %llu: %m",
				       (unsigned long long)t->inodes[i].key.ino);
	return 0;
}
