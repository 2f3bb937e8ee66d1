// SPDX-License-Identifier: Apache-2.0
/* Which runsc there is, and what it can do. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/gvisor/gvisor.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/trust.h"

#define ASK_MS	 20000
#define TEXT_MAX (256u << 10)

static const char *const places[] = { "/usr/bin/runsc", "/usr/local/bin/runsc", "/usr/sbin/runsc",
				      "/usr/local/sbin/runsc" };

/* It is run by root: nobody else may be able to change it. */
static int find(char *path, size_t max, struct err *err)
{
	const char *asked = getenv("WARDER_RUNSC");
	int r = -ENOENT;

	for (size_t i = 0; i < (asked ? 1 : ARRAY_SIZE(places)); i++) {
		const char *at = asked ? asked : places[i];
		auto_close int fd = open(at, O_PATH | O_CLOEXEC);

		if (fd < 0)
			continue;
		r = file_trusted(fd, at, err);
		if (r < 0)
			return err_wrap(err, r, "runsc");
		if (at[0] != '/' || (size_t)snprintf(path, max, "%s", at) >= max)
			return err_set(err, EINVAL, "WARDER_RUNSC '%s': expected an absolute path",
				       at);
		return 0;
	}
	if (asked)
		return err_set(err, ENOENT, "WARDER_RUNSC '%s': %m", asked);
	return err_set(err, ENOENT,
		       "gVisor's runsc is not installed: 'make deps', or 'apt-get install runsc' "
		       "(Debian 12 and newer), or see https://gvisor.dev/docs/user_guide/install/");
}

/* What `runsc ARGS` prints, both streams; killed when it takes too long. */
static int ask(const char *path, const char *arg, const char *arg2, struct buf *out,
	       struct err *err)
{
	char *argv[] = { (char *)path, (char *)arg, (char *)arg2, NULL };
	char *envp[] = { NULL };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ASK_MS * NSEC_PER_MSEC;
	posix_spawn_file_actions_t fa;
	int fds[2], status, r = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "runsc: pipe: %m");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, fds[1], 1);
	posix_spawn_file_actions_adddup2(&fa, fds[1], 2);
	r = posix_spawn(&pid, path, &fa, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&fa);
	close(fds[1]);
	if (r != 0) {
		close(fds[0]);
		return err_set(err, r, "'%s': %m", path);
	}
	for (;;) {
		struct pollfd p = { .fd = fds[0], .events = POLLIN };
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		char text[4096];
		ssize_t n;

		if (now >= end || out->failed) {
			kill(pid, SIGKILL);
			r = -ETIMEDOUT;
			break;
		}
		if (poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) <= 0)
			continue;
		n = read(fds[0], text, sizeof(text));
		if (n <= 0)
			break;
		buf_add(out, text, (size_t)n);
	}
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	buf_addc(out, 0);
	if (r == 0 && out->failed)
		r = -ENOMEM;
	return r < 0 ? err_set(err, -r, "'%s %s': %m", path, arg) : 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || strchr(" \t\n-", p[-1])) && strchr(" \t\n", p[n]))
			return true;
	return false;
}

/* ---- what was learned is kept until another runsc is there: asking costs as much as half a start ---- */

static bool key_of(const char *path, char *to, size_t max)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return false;
	return (size_t)snprintf(to, max, "%s %llu %llu %lld %lld.%09ld", path,
				(unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
				(long long)st.st_size, (long long)st.st_mtim.tv_sec,
				st.st_mtim.tv_nsec) < max;
}

static const char *cache_path(char *to, size_t max)
{
	const char *dir = getenv("WARDER_RUN");

	return (size_t)snprintf(to, max, "%s/runsc", dir ? dir : "/run/warder") < max ? to : NULL;
}

static bool recall(struct gvisor_runsc *r)
{
	char path[512], key[512], was[512];
	auto_free char *text = NULL;
	char *line;
	int flags[5];

	if (!cache_path(path, sizeof(path)) || !key_of(r->path, key, sizeof(key)) ||
	    file_read_trusted(path, 4096, &text, NULL, "what is known of runsc", NULL) < 0)
		return false;
	line = strchr(text, '\n');
	if (!line || (size_t)(line - text) >= sizeof(was))
		return false;
	memcpy(was, text, (size_t)(line - text));
	was[line - text] = 0;
	if (strcmp(was, key) != 0 || sscanf(line, "%d %d %d %d %d %63s", flags, flags + 1,
					    flags + 2, flags + 3, flags + 4, r->version) != 6)
		return false;
	r->has_directfs = flags[0];
	r->has_overlay2 = flags[1];
	r->has_ptrace = flags[2];
	r->has_systrap = flags[3];
	r->has_restore = flags[4];
	return r->has_ptrace || r->has_systrap;
}

/* Without it the next one asks again. */
static void remember(const struct gvisor_runsc *r)
{
	char path[512], key[512], text[640];
	auto_close int dir = -1;
	int n;

	if (!cache_path(path, sizeof(path)) || !key_of(r->path, key, sizeof(key)))
		return;
	n = snprintf(text, sizeof(text), "%s\n%d %d %d %d %d %s\n", key, r->has_directfs,
		     r->has_overlay2, r->has_ptrace, r->has_systrap, r->has_restore,
		     r->version[0] ? r->version : "unknown");
	*strrchr(path, '/') = 0;
	if (geteuid() != 0 || dir_make_all(path, 0711) < 0)
		return;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		file_replace_at(dir, "runsc", text, (size_t)n, 0644);
}

/* By what it says of itself, not by its number: versions of distributions differ. */
static int learn(struct gvisor_runsc *r, struct err *err)
{
	auto_buf struct buf flags = { 0 }, platforms = { 0 }, version = { 0 }, keeping = { 0 };
	int k;

	buf_init(&flags, TEXT_MAX);
	buf_init(&platforms, TEXT_MAX);
	buf_init(&version, TEXT_MAX);
	buf_init(&keeping, TEXT_MAX);
	k = find(r->path, sizeof(r->path), err);
	if (k == 0 && recall(r))
		return 0;
	if (k == 0)
		k = ask(r->path, "flags", NULL, &flags, err);
	if (k == 0)
		k = ask(r->path, "help", "platforms", &platforms, err);
	if (k == 0)
		k = ask(r->path, "--version", NULL, &version, err);
	if (k == 0)
		k = ask(r->path, "help", "checkpoint", &keeping, err);
	if (k < 0)
		return k;
	r->has_directfs = has_word(flags.p, "directfs");
	r->has_overlay2 = has_word(flags.p, "overlay2");
	r->has_ptrace = has_word(platforms.p, "ptrace");
	r->has_systrap = has_word(platforms.p, "systrap");
	/* It came after descriptors were kept by what they are. */
	r->has_restore = has_word(keeping.p, "compression");
	sscanf(version.p, "runsc version %63s", r->version);
	if (!has_word(flags.p, "ignore-cgroups") || !has_word(flags.p, "network"))
		return err_set(err, ENOSYS,
			       "'%s' is not a runsc that can be used: no --ignore-cgroups",
			       r->path);
	if (!r->has_ptrace && !r->has_systrap)
		return err_set(err, ENOSYS, "'%s' has neither of the platforms ptrace and systrap",
			       r->path);
	remember(r);
	return 0;
}

int gvisor_runsc_get(const struct gvisor_runsc **ret, struct err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct gvisor_runsc known;
	static bool is_known;
	struct gvisor_runsc r = { 0 };
	int k = 0;

	pthread_mutex_lock(&lock);
	if (!is_known) {
		k = learn(&r, err);
		if (k == 0) {
			known = r;
			is_known = true;
		}
	}
	pthread_mutex_unlock(&lock);
	if (k == 0)
		*ret = &known;
	return k;
}

/* ptrace first: with it the host sees the guest's own calls come back. */
const char *gvisor_platform(const struct gvisor_runsc *r, const char *asked)
{
	if (asked && !strcmp(asked, "systrap"))
		return r->has_systrap ? "systrap" : NULL;
	if (asked)
		return r->has_ptrace ? "ptrace" : NULL;
	return r->has_ptrace ? "ptrace" : "systrap";
}
