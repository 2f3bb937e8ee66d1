// SPDX-License-Identifier: Apache-2.0
/* config.json, "mounts". What the kernel shows of itself a sandbox has in its own, tighter way or not at all; what is
 * left are binds and memory. */
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/option.h"
#include "userspace/oci/parser.h"

/* Where a tool writes what it wants the container to know. Its files, not the payload's. */
static const char *const told[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/hostname",
				    "/run/.containerenv" };

static const struct {
	const char *type, *at;
	const char *note; /* NULL: there is one of its own */
} kernels[] = {
	{ "proc", "/proc", NULL },
	{ "devpts", "/dev/pts", NULL },
	{ "tmpfs", "/dev", NULL },
	{ "tmpfs", "/dev/shm", NULL },
	{ "sysfs", "/sys", "a sandbox has no /sys" },
	{ "bind", "/sys", "a sandbox has no /sys" },
	{ "cgroup", "/sys/fs/cgroup", "a sandbox has no /sys/fs/cgroup" },
	{ "cgroup2", "/sys/fs/cgroup", "a sandbox has no /sys/fs/cgroup" },
	{ "mqueue", "/dev/mqueue", "a sandbox has no /dev/mqueue" },
};

bool oci_is_told(const char *target)
{
	return oci_is_one_of(target, told, ARRAY_SIZE(told));
}

struct options {
	bool ro, noexec, bind;
	uint64_t size;
};

/* Of mount(8) those that change nothing here, or are so in any case. */
static const char *const harmless[] = {
	"rw",	    "exec",	  "suid",	 "nosuid",	  "dev",      "nodev",
	"private",  "rprivate",	  "atime",	 "noatime",	  "diratime", "nodiratime",
	"relatime", "norelatime", "strictatime", "nostrictatime", "async",    "defaults",
	"slave",    "rslave",	  "nosymfollow", "tmpcopyup",	  "Z",	      "z",
	"norbind",  "copy",	  "nocopy",	 "newinstance",	  "silent",   "loud",
};

static int read_option(struct oci_parser *s, const struct json_node *at, const char *word,
		       struct options *o)
{
	static const char *const prefixes[] = { "mode=",      "uid=",	   "gid=",
						"nr_inodes=", "ptmxmode=", "context=" };

	if (!strcmp(word, "ro") || !strcmp(word, "rro"))
		o->ro = true;
	else if (!strcmp(word, "rw"))
		o->ro = false;
	else if (!strcmp(word, "noexec"))
		o->noexec = true;
	else if (!strcmp(word, "exec"))
		o->noexec = false;
	else if (!strcmp(word, "bind") || !strcmp(word, "rbind"))
		o->bind = true;
	else if (!strncmp(word, "size=", 5)) {
		char text[32];
		size_t n = strlen(word + 5);

		if (n && n < sizeof(text)) {
			snprintf(text, sizeof(text), "%s", word + 5);
			if (text[n - 1] >= 'a' && text[n - 1] <= 'z')
				text[n - 1] = (char)(text[n - 1] - 'a' + 'A');
		}
		if (!n || n >= sizeof(text) || parse_size(text, &o->size) < 0 || !o->size)
			return oci_bad(s, at, EINVAL, "mount option '%.60s': no size", word);
	} else if (!oci_is_one_of(word, harmless, ARRAY_SIZE(harmless))) {
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
			if (!strncmp(word, prefixes[i], strlen(prefixes[i])))
				return 0;
		return oci_bad(s, at, EOPNOTSUPP, "mount option '%.60s': not supported", word);
	}
	return 0;
}

static int read_options(struct oci_parser *s, const struct json_node *mount, struct options *o)
{
	const struct json_node *list;
	int r = oci_member(s, mount, "options", JSON_ARRAY, &list);

	*o = (struct options){ 0 };
	for (const struct json_node *w = r == 0 && list ? list->first : NULL; r == 0 && w;
	     w = w->next) {
		const char *word = NULL;

		r = oci_text_of(s, w, &word);
		if (r == 0)
			r = read_option(s, w, word, o);
	}
	return r;
}

static int add_bind(struct oci_parser *s, const struct json_node *at, const char *source,
		    const char *target, const struct options *o)
{
	struct oci_config *c = s->c;
	struct sandbox_bind *b;

	if (!source || source[0] != '/')
		return oci_bad(s, at, EINVAL, "mount '%.200s': the source is no absolute path",
			       target);
	if (c->binds_n == SANDBOX_MOUNTS_MAX)
		return oci_bad(s, at, E2BIG, "mounts: more than %d binds", SANDBOX_MOUNTS_MAX);
	b = &c->binds[c->binds_n++];
	*b = (struct sandbox_bind){ source, target, !o->ro };
	if (o->noexec)
		c->container.noexec[c->container.noexec_n++] = target;
	if (b->writable && oci_is_told(target)) {
		b->writable = false;
		oci_note(s, "mount '%s': read-only in a sandbox", target);
	}
	return 0;
}

static int add_tmpfs(struct oci_parser *s, const struct json_node *at, const char *target,
		     const struct options *o)
{
	struct sandbox_container *c = &s->c->container;

	if (c->tmpfs_n == SANDBOX_TMPFS_MAX)
		return oci_bad(s, at, E2BIG, "mounts: more than %d tmpfs", SANDBOX_TMPFS_MAX);
	c->tmpfs[c->tmpfs_n].target = target;
	c->tmpfs[c->tmpfs_n].size = o->size;
	c->tmpfs[c->tmpfs_n].exec = !o->noexec;
	c->tmpfs[c->tmpfs_n++].readonly = o->ro;
	return 0;
}

/* "/a//b/" as "/a/b"; what has "." or ".." in it the plan refuses. */
static void tidy(char *path)
{
	char *to = path;

	for (char *from = path; *from; from++)
		if (*from != '/' || to == path || to[-1] != '/')
			*to++ = *from;
	if (to > path + 1 && to[-1] == '/')
		to--;
	*to = 0;
}

static int read_mount(struct oci_parser *s, const struct json_node *mount)
{
	static const struct oci_key keys[] = {
		{ .key = "destination" },
		{ .key = "type" },
		{ .key = "source" },
		{ .key = "options" },
		{ .key = "uidMappings", .never = "a sandbox maps ids in its own way" },
		{ .key = "gidMappings", .never = "a sandbox maps ids in its own way" },
	};
	const char *target, *type, *source;
	struct options o;
	int r = mount->type == JSON_OBJECT ? 0 : oci_bad(s, mount, EBADMSG, "mounts: no object");

	if (r == 0)
		r = oci_text(s, mount, "destination", &target);
	if (r == 0)
		r = oci_text(s, mount, "type", &type);
	if (r == 0)
		r = oci_text(s, mount, "source", &source);
	if (r < 0)
		return r;
	if (!target || target[0] != '/')
		return oci_bad(s, mount, EINVAL, "mount: the destination is no absolute path");
	tidy((char *)target);
	r = oci_check_keys(s, mount, "mounts", keys, ARRAY_SIZE(keys));
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		if (type && !strcmp(type, kernels[i].type) && !strcmp(target, kernels[i].at)) {
			if (kernels[i].note)
				oci_note(s, "mount '%s': %s", target, kernels[i].note);
			return 0;
		}
	r = read_options(s, mount, &o);
	if (r < 0)
		return r;
	if (o.bind || !type || !strcmp(type, "bind")) {
		if (!strcmp(target, "/dev/shm")) { /* of who shares it, the namespace is refused */
			oci_note(s, "mount '/dev/shm': a sandbox has its own");
			return 0;
		}
		return add_bind(s, mount, source, target, &o);
	}
	if (!strcmp(type, "tmpfs"))
		return add_tmpfs(s, mount, target, &o);
	return oci_bad(s, mount, EOPNOTSUPP, "mount '%.200s': type '%.40s' is not supported",
		       target, type);
}

int oci_parse_mounts(struct oci_parser *s, const struct json_node *list)
{
	int r = 0;

	for (const struct json_node *m = list->first; r == 0 && m; m = m->next)
		r = read_mount(s, m);
	return r;
}
