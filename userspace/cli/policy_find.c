// SPDX-License-Identifier: Apache-2.0
/* Where a policy comes from: built in, the host's own by name, a file. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/util.h"

/* Made by rules/packs/embed.sh out of runtime/policies/. */
extern const struct shipped_policy shipped_policies[];
extern const uint64_t shipped_policies_n;

size_t policies_shipped(const struct shipped_policy **ret)
{
	*ret = shipped_policies;
	return shipped_policies_n;
}

/* "# strict: code that ..." */
struct str policy_about(struct str text)
{
	const char *end = memchr(text.p, '\n', text.n), *colon = memchr(text.p, ':', text.n);

	if (text.p[0] != '#' || !end || !colon || colon > end || end - colon < 2)
		return STR("");
	return (struct str){ colon + 2, (size_t)(end - colon) - 2 };
}

static const struct shipped_policy *find_shipped(const char *word)
{
	for (uint64_t i = 0; i < shipped_policies_n; i++)
		if (!strcmp(shipped_policies[i].name, word))
			return &shipped_policies[i];
	return NULL;
}

/* A name, not a path: it can lead nowhere else. */
static bool is_name(const char *word)
{
	return *word && strlen(word) <= POLICY_NAME_MAX &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
		       strlen(word);
}

static bool find_own(const char *word, char *ret, size_t size)
{
	int n;

	if (!is_name(word))
		return false;
	n = snprintf(ret, size, "%s/policies/%s.yaml", config_dir(), word);
	return n > 0 && (size_t)n < size && access(ret, F_OK) == 0;
}

static int is_policy_file(const struct dirent *e)
{
	const struct str name = str_from(e->d_name);

	return str_ends(name, STR(".yaml")) && e->d_name[0] != '.';
}

static void add_own(struct own_policies *ret, const char *file)
{
	struct own_policy *p = &ret->v[ret->n];
	auto_free char *text = NULL;
	struct str about = STR("");
	size_t n = 0;

	snprintf(p->name, sizeof(p->name), "%.*s", (int)(strlen(file) - strlen(".yaml")), file);
	if (!is_name(p->name) || !find_own(p->name, p->path, sizeof(p->path)))
		return;
	p->shadowed = find_shipped(p->name) != NULL;
	if (file_read_at(AT_FDCWD, p->path, FLAT_FILE_MAX, &text, &n) == 0 && n)
		about = policy_about((struct str){ text, n });
	snprintf(p->about, sizeof(p->about), "%.*s", (int)about.n, about.p);
	ret->n++;
}

int policies_own(struct own_policies *ret, struct err *err)
{
	char dir[PATH_MAX];
	struct dirent **v = NULL;
	int n;

	*ret = (struct own_policies){ 0 };
	snprintf(dir, sizeof(dir), "%s/policies", config_dir());
	n = scandir(dir, &v, is_policy_file, alphasort);
	if (n < 0)
		return errno == ENOENT ? 0 : err_set(err, errno, "'%s': %m", dir);
	ret->v = calloc((size_t)n + 1, sizeof(*ret->v));
	for (int i = 0; i < n; i++) {
		if (ret->v)
			add_own(ret, v[i]->d_name);
		free(v[i]);
	}
	free(v);
	return ret->v ? 0 : err_set(err, ENOMEM, "policies: %m");
}

void policies_own_done(struct own_policies *p)
{
	free(p->v);
	*p = (struct own_policies){ 0 };
}

static int not_found(const char *word, struct err *err)
{
	const char *names[16], *near;
	size_t n = 0;

	for (uint64_t i = 0; i < shipped_policies_n && n < ARRAY_SIZE(names); i++)
		names[n++] = shipped_policies[i].name;
	near = closest_name(word, names, n);
	if (near)
		return err_set(err, ENOENT, "'%s' is no file and no policy: did you mean '%s'?",
			       word, near);
	return err_set(err, ENOENT, "'%s' is no file and no policy (warder policy list)", word);
}

/* The path of a file; *ret_shipped instead when it is built in. */
static int locate(const char *word, char *ret, size_t size,
		  const struct shipped_policy **ret_shipped, struct err *err)
{
	*ret_shipped = find_shipped(word);
	if (*ret_shipped || find_own(word, ret, size))
		return 0;
	if (access(word, F_OK) < 0 && is_name(word))
		return not_found(word, err);
	if ((size_t)snprintf(ret, size, "%s", word) >= size)
		return err_set(err, ENAMETOOLONG, "policy '%s': %m", word);
	return 0;
}

bool policy_is_installed(const char *word)
{
	char path[PATH_MAX];

	return find_shipped(word) || find_own(word, path, sizeof(path));
}

int policy_open(struct flat_file *ret, const char *word, struct err *err)
{
	const struct shipped_policy *shipped;
	auto_free char *text = NULL;
	char path[PATH_MAX];
	size_t n = 0;
	int r = locate(word, path, sizeof(path), &shipped, err);

	if (r < 0)
		return r;
	if (shipped)
		return flat_parse(ret, word, shipped->text, shipped->n, err);
	r = file_read_trusted(path, FLAT_FILE_MAX, &text, &n, "file", err);
	return r < 0 ? r : flat_parse(ret, path, text, n, err);
}

int policy_text(struct buf *ret, const char *word, struct err *err)
{
	const struct shipped_policy *shipped;
	auto_free char *text = NULL;
	char path[PATH_MAX];
	size_t n = 0;
	int r = locate(word, path, sizeof(path), &shipped, err);

	if (r < 0)
		return r;
	if (shipped)
		return buf_add(ret, shipped->text, shipped->n);
	r = file_read_at(AT_FDCWD, path, FLAT_FILE_MAX, &text, &n);
	return r < 0 ? err_set(err, r, "policy '%s': %m", path) : buf_add(ret, text, n);
}
