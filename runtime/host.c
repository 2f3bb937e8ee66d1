// SPDX-License-Identifier: Apache-2.0
#include "runtime/host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/landlock.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"

const char *const controller_names[CONTROLLER_COUNT] = { "memory", "pids", "cpu" };

#define PROC_FILE_MAX (1u << 20)

/* Is `word` one of the comma- or space-separated words of `list`? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; *p;) {
		size_t len = strcspn(p, ", \n");

		if (len == n && !memcmp(p, word, n))
			return true;
		p += len;
		p += strspn(p, ", \n");
	}
	return false;
}

/* mountinfo writes blanks and backslashes as octal. */
static void unescape(char *s)
{
	char *out = s;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
		    s[3] >= '0' && s[3] <= '7') {
			*out++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*out++ = *s;
		}
	}
	*out = 0;
}

/* Our own path in the v1 hierarchy that has `name`: "7:pids:/a/b" -> "/a/b". */
static bool own_path(const char *self, const char *name, char *ret, size_t max)
{
	for (const char *line = self; line && *line;) {
		const char *end = strchrnul(line, '\n');
		const char *c1 = memchr(line, ':', (size_t)(end - line));
		const char *c2 = c1 ? memchr(c1 + 1, ':', (size_t)(end - c1 - 1)) : NULL;
		char words[128];

		if (c2 && (size_t)(c2 - c1) < sizeof(words) && (size_t)(end - c2) <= max) {
			memcpy(words, c1 + 1, (size_t)(c2 - c1 - 1));
			words[c2 - c1 - 1] = 0;
			if (has_word(words, name)) {
				memcpy(ret, c2 + 1, (size_t)(end - c2 - 1));
				ret[end - c2 - 1] = 0;
				return true;
			}
		}
		line = *end ? end + 1 : end;
	}
	return false;
}

/* A v1 hierarchy at `at`, of which the mount shows the part below `shown`. */
static void add_v1(struct host *h, const char *at, const char *shown, const char *super,
		   const char *self)
{
	char own[HOST_PATH_MAX];

	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		const char *rel = own;
		size_t n = strlen(shown);
		int w;

		if (h->v1[i][0] || !has_word(super, controller_names[i]) ||
		    !own_path(self, controller_names[i], own, sizeof(own)))
			continue;
		if (strcmp(shown, "/") != 0) { /* a bind of a part: our path must lie in it */
			if (strncmp(own, shown, n) != 0 || (own[n] && own[n] != '/'))
				continue;
			rel = own + n;
		}
		if (strstr(rel, "..")) /* outside our cgroup namespace: that is climbing */
			continue;
		w = snprintf(h->v1[i], HOST_PATH_MAX, "%s%s", at, strcmp(rel, "/") ? rel : "");
		if (w < 0 || w >= HOST_PATH_MAX)
			h->v1[i][0] = 0;
	}
}

void host_cgroups_parse(struct host *h, const char *mountinfo, const char *self)
{
	for (const char *line = mountinfo; line && *line;) {
		const char *end = strchrnul(line, '\n');
		char copy[4096], shown[1024], at[1024], type[64], super[1024];
		char *dash;

		if ((size_t)(end - line) < sizeof(copy)) {
			memcpy(copy, line, (size_t)(end - line));
			copy[end - line] = 0;
			dash = strstr(copy, " - ");
			if (dash)
				*dash = 0; /* what is before it must not be read from behind */
			if (dash && sscanf(copy, "%*d %*d %*s %1023s %1023s", shown, at) == 2 &&
			    sscanf(dash + 3, "%63s %*s %1023s", type, super) == 2) {
				unescape(shown);
				unescape(at);
				if (!strcmp(type, "cgroup2") && !h->v2[0] && !strcmp(shown, "/") &&
				    strlen(at) < HOST_PATH_MAX)
					memcpy(h->v2, at, strlen(at) + 1);
				else if (!strcmp(type, "cgroup"))
					add_v1(h, at, shown, super, self);
			}
		}
		line = *end ? end + 1 : end;
	}
}

/* Where each controller is: v2 lists it, or a v1 hierarchy holds it. */
static void controllers_find(struct host *h)
{
	char path[HOST_PATH_MAX + 32];
	auto_free char *text = NULL;

	snprintf(path, sizeof(path), "%s/cgroup.controllers", h->v2);
	if (h->v2[0])
		file_read_at(AT_FDCWD, path, 4096, &text, NULL);
	for (int i = 0; i < CONTROLLER_COUNT; i++) {
		if (text && has_word(text, controller_names[i]))
			h->controller[i] = CONTROLLER_V2;
		else if (h->v1[i][0] && access(h->v1[i], W_OK) == 0)
			h->controller[i] = CONTROLLER_V1;
	}
}

static bool userns_allowed(void)
{
	auto_free char *text = NULL;

	if (access("/proc/self/ns/user", F_OK) < 0)
		return false;
	return file_read_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", 64, &text, NULL) < 0 ||
	       strtoul(text, NULL, 10) > 0;
}

void host_probe(struct host *ret)
{
	auto_free char *mounts = NULL;
	auto_free char *self = NULL;
	unsigned action = SECCOMP_RET_ERRNO;
	struct rlimit lim;

	*ret = (struct host){ 0 };
	if (file_read_at(AT_FDCWD, "/proc/self/mountinfo", PROC_FILE_MAX, &mounts, NULL) == 0 &&
	    file_read_at(AT_FDCWD, "/proc/self/cgroup", PROC_FILE_MAX, &self, NULL) == 0)
		host_cgroups_parse(ret, mounts, self);
	controllers_find(ret);
	ret->userns = userns_allowed();
	ret->landlock_abi = landlock_abi();
	ret->seccomp = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	action = SECCOMP_RET_USER_NOTIF;
	ret->seccomp_notify = syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
	ret->fd_max = getrlimit(RLIMIT_NOFILE, &lim) == 0 ? lim.rlim_max : 1024;
}
