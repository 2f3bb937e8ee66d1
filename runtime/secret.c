// SPDX-License-Identifier: Apache-2.0
#include "runtime/secret.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/mount.h"
#include "runtime/setup.h"
#include "runtime/sys.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

#define PAGE 4096

/* A file name, and a word in marks of what was taken out of a record. */
static bool is_name(const char *z)
{
	size_t n = strlen(z);

	if (n == 0 || n > SANDBOX_SECRET_NAME_MAX || z[0] == '.' || z[0] == '-')
		return false;
	for (; *z; z++)
		if (!isalnum((unsigned char)*z) && !strchr("._-", *z))
			return false;
	return true;
}

static int check(const struct sandbox_spec *spec, size_t i, struct err *err)
{
	const struct sandbox_secret *x = &spec->secrets[i];

	if (!x->name || !is_name(x->name))
		return err_set(
			err, EINVAL,
			"secret '%.80s': a name of letters, digits, '.', '_' and '-', at most %d",
			x->name ? x->name : "", SANDBOX_SECRET_NAME_MAX);
	if (x->n > SANDBOX_SECRET_MAX)
		return err_set(err, E2BIG, "secret '%s': longer than %d bytes", x->name,
			       SANDBOX_SECRET_MAX);
	for (size_t k = 0; k < i; k++)
		if (!strcmp(spec->secrets[k].name, x->name))
			return err_set(err, EEXIST, "secret '%s' is given twice", x->name);
	return 0;
}

int plan_secrets(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err)
{
	struct root_op *op;

	if (!spec->secrets_n)
		return 0;
	if (spec->secrets_n > SANDBOX_SECRETS_MAX)
		return err_set(err, E2BIG, "more than %d secrets", SANDBOX_SECRETS_MAX);
	for (size_t i = 0; i < spec->secrets_n; i++) {
		struct sandbox_secret *x = &p->secrets[i];
		int r = check(spec, i, err);

		if (r < 0)
			return r;
		*x = spec->secrets[i];
		x->name = arena_strndup(&p->mem, x->name, strlen(x->name)).p;
		if (!x->name)
			return err_set(err, ENOMEM, "secrets: %m");
	}
	p->secrets_n = spec->secrets_n;
	op = plan_root_add(p, ROOT_SECRETS, SECRET_DIR, NULL);
	return op ? 0 : err_set(err, ENOSPC, "secrets: no room left in the plan");
}

void secrets_init(struct secrets *s)
{
	*s = (struct secrets){ .mount = -1, .dir = -1 };
	for (size_t i = 0; i < SANDBOX_SECRETS_MAX; i++)
		s->file[i] = -1;
}

static int make_file(struct secrets *s, size_t i, uint32_t host_id)
{
	const struct sandbox_secret *x = &s->plan->secrets[i];
	int r;

	s->file[i] = openat(s->dir, x->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0);
	if (s->file[i] < 0)
		return -errno;
	s->size[i] = x->n;
	r = fd_write_all(s->file[i], x->value, x->n);
	if (r == 0 && (fchown(s->file[i], host_id, host_id) < 0 || fchmod(s->file[i], 0400) < 0))
		r = -errno;
	return r;
}

int secrets_make(struct secrets *s, const struct sandbox_plan *p, uint32_t host_id, struct err *err)
{
	uint64_t bytes = PAGE;
	mode_t old;
	int r = 0;

	if (!p->secrets_n)
		return 0;
	s->plan = p;
	for (size_t i = 0; i < p->secrets_n; i++)
		bytes += (p->secrets[i].n + PAGE - 1) / PAGE * PAGE;
	old = umask(0);
	s->mount = mount_tmpfs(bytes, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	umask(old);
	if (s->mount < 0)
		return err_set(err, -s->mount, "secrets: file system: %m");
	s->dir = openat(s->mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_set(err, errno, "secrets: file system: %m");
	for (size_t i = 0; r == 0 && i < p->secrets_n; i++) {
		const struct sandbox_secret *x = &p->secrets[i];

		r = make_file(s, i, host_id);
		if (r < 0)
			return err_set(err, -r, "secret '%s': %m", x->name);
	}
	return 0;
}

/* In the set-up task. The file system is hung up twice: what lies on top is read-only and what the payload sees,
 * below is what the launcher writes through. */
int setup_secrets(struct setup *s, const struct root_op *op, size_t i)
{
	auto_close int seen = -1;
	int r;

	(void)i;
	r = mount_attach(s, s->secrets, op, true);
	if (r < 0)
		return r;
	seen = open_tree(s->root, op->target + 1, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (seen < 0)
		return -errno;
	r = sys_mount_attr(seen, 0, MOUNT_ATTR_RDONLY, 0);
	return r < 0 ? r : mount_attach(s, seen, op, true);
}

/* Who has it open reads zeros; who has it mapped, too. */
static void scrub(struct secrets *s, size_t i)
{
	static const char zeros[PAGE];

	if (s->file[i] < 0)
		return;
	for (size_t at = 0; at < s->size[i]; at += PAGE)
		(void)!pwrite(s->file[i], zeros, MIN(s->size[i] - at, sizeof(zeros)), (off_t)at);
	unlinkat(s->dir, s->plan->secrets[i].name, 0);
	close(take_fd(s->file[i]));
	s->end[i] = 0;
}

uint64_t secrets_expire(struct secrets *s, uint64_t now, sandbox_secret_fn *tell, void *arg)
{
	uint64_t next = 0;

	for (size_t i = 0; i < SANDBOX_SECRETS_MAX; i++) {
		const struct sandbox_secret *x = s->file[i] >= 0 ? &s->plan->secrets[i] : NULL;

		if (!x || !x->ttl_ns)
			continue;
		if (!s->end[i] && __builtin_add_overflow(now, x->ttl_ns, &s->end[i]))
			s->end[i] = UINT64_MAX;
		if (now >= s->end[i]) {
			scrub(s, i);
			if (tell)
				tell(arg, x);
		} else if (!next || s->end[i] < next) {
			next = s->end[i];
		}
	}
	return next;
}

void secrets_done(struct secrets *s)
{
	for (size_t i = 0; i < SANDBOX_SECRETS_MAX; i++)
		scrub(s, i);
	if (s->mount >= 0)
		close(take_fd(s->mount));
	if (s->dir >= 0)
		close(take_fd(s->dir));
}
