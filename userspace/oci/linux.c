// SPDX-License-Identifier: Apache-2.0
/* config.json, "linux": namespaces, what is hidden, kernel settings, and the parts that a sandbox does not have. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/oci/parser.h"

#define PROC "/proc/"

/* ---- namespaces ---- */

static const struct {
	const char *type;
	bool needed; /* a sandbox has its own, whatever is said: who wants none wants something else */
	const char *option;
} spaces[] = {
	{ "pid", true, "--pid=host" }, { "mount", true, "" },	 { "ipc", true, "--ipc=host" },
	{ "uts", true, "--uts=host" }, { "network", false, "" }, { "cgroup", false, "" },
	{ "time", false, "" },	       { "user", false, "" },
};

static int read_namespace(struct oci_parser *s, const struct json_node *row, bool *seen)
{
	const char *type, *path;
	int r = row->type == JSON_OBJECT ? oci_text(s, row, "type", &type)
					 : oci_bad(s, row, EBADMSG, "namespaces: no object");

	if (r == 0)
		r = oci_text(s, row, "path", &path);
	for (size_t i = 0; r == 0 && type && i < ARRAY_SIZE(spaces); i++) {
		if (strcmp(type, spaces[i].type))
			continue;
		if (seen[i])
			return oci_bad(s, row, EINVAL, "namespace '%s': given twice", type);
		seen[i] = true;
		if (!strcmp(type, "user") || !strcmp(type, "time"))
			return oci_bad(s, row, EOPNOTSUPP,
				       "namespace '%s': a sandbox has one of its own making%s",
				       type, type[0] == 'u' ? " (--userns)" : "");
		if (!path || !*path) {
			if (!strcmp(type, "network"))
				s->c->net = OCI_NET_NONE;
			return 0;
		}
		if (strcmp(type, "network"))
			return oci_bad(s, row, EOPNOTSUPP,
				       "namespace '%s' of somebody else: only a network is joined "
				       "(--pod, --%s=container:)",
				       type, type);
		if (path[0] != '/')
			return oci_bad(s, row, EINVAL, "namespace path: not absolute");
		s->c->net = OCI_NET_GIVEN;
		s->c->container.netns = path;
		return 0;
	}
	return r < 0 ? r
		     : oci_bad(s, row, EOPNOTSUPP, "namespace '%.40s': not known",
			       type ? type : "");
}

static int read_namespaces(struct oci_parser *s, const struct json_node *node)
{
	bool seen[ARRAY_SIZE(spaces)] = { 0 };
	const struct json_node *list;
	int r = oci_member(s, node, "namespaces", JSON_ARRAY, &list);

	s->c->net = OCI_NET_HOST;
	for (const struct json_node *row = r == 0 && list ? list->first : NULL; r == 0 && row;
	     row = row->next)
		r = read_namespace(s, row, seen);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(spaces); i++)
		if (spaces[i].needed && !seen[i])
			return oci_bad(
				s, list ? list : node, EOPNOTSUPP,
				"no namespace '%s': the host's is not shared with a sandbox%s%s",
				spaces[i].type, *spaces[i].option ? ": " : "", spaces[i].option);
	return r;
}

/* ---- paths of /proc ---- */

/* What is outside of /proc and /sys is the image's, and would have to be covered for real. */
static int read_path(struct oci_parser *s, const struct json_node *node, const char *what,
		     const char **list, size_t *n)
{
	const char *path = NULL;
	int r = oci_text_of(s, node, &path);

	if (r < 0)
		return r;
	if (!strncmp(path, "/sys/", 5) || !strcmp(path, "/sys"))
		return 0; /* there is none */
	if (strncmp(path, PROC, strlen(PROC)) || !path[strlen(PROC)] || strstr(path, "/..") ||
	    strstr(path, "//"))
		return oci_bad(s, node, EOPNOTSUPP, "%s: '%.200s' is not below /proc or /sys", what,
			       path);
	if (*n == SANDBOX_PROC_MAX)
		return oci_bad(s, node, E2BIG, "%s: more than %d", what, SANDBOX_PROC_MAX);
	list[(*n)++] = path;
	return 0;
}

static int read_paths(struct oci_parser *s, const struct json_node *node, const char *key,
		      const char **list, size_t *n)
{
	const struct json_node *paths;
	int r = oci_member(s, node, key, JSON_ARRAY, &paths);

	for (const struct json_node *p = r == 0 && paths ? paths->first : NULL; r == 0 && p;
	     p = p->next)
		r = read_path(s, p, key, list, n);
	return r;
}

/* ---- settings of the kernel ---- */

static bool is_of_namespace(const char *name, bool own_net)
{
	static const char *const ipc[] = { "kernel.msgmax", "kernel.msgmnb",
					   "kernel.msgmni", "kernel.sem",
					   "kernel.shmall", "kernel.shmmax",
					   "kernel.shmmni", "kernel.shm_rmid_forced" };

	return oci_is_one_of(name, ipc, ARRAY_SIZE(ipc)) || !strncmp(name, "fs.mqueue.", 10) ||
	       (own_net && !strncmp(name, "net.", 4));
}

static int read_sysctls(struct oci_parser *s, const struct json_node *node)
{
	struct sandbox_container *c = &s->c->container;
	const struct json_node *map;
	int r = oci_member(s, node, "sysctl", JSON_OBJECT, &map);

	for (const struct json_node *m = r == 0 && map ? map->first : NULL; r == 0 && m;
	     m = m->next) {
		char *name = (char *)arena_strndup(s->mem, m->key.p, m->key.n).p;
		const char *value = NULL;

		if (!name)
			return oci_bad(s, m, ENOMEM, "out of memory");
		for (char *p = name; *p; p++)
			if (*p == '/')
				*p = '.';
		if (strstr(name, "..") || !is_of_namespace(name, s->c->net != OCI_NET_HOST))
			return oci_bad(s, m, EOPNOTSUPP,
				       "sysctl '%.80s': not of a namespace that the sandbox has to "
				       "itself",
				       name);
		for (char *p = name; *p; p++)
			if (*p == '.')
				*p = '/';
			else if (!isalnum((unsigned char)*p) && *p != '_' && *p != '-')
				return oci_bad(s, m, EINVAL, "sysctl '%.80s': no name of one",
					       name);
		if (c->sysctls_n == SANDBOX_SYSCTLS_MAX)
			return oci_bad(s, m, E2BIG, "sysctl: more than %d", SANDBOX_SYSCTLS_MAX);
		r = oci_text_of(s, m, &value);
		c->sysctls[c->sysctls_n].path = name;
		c->sysctls[c->sysctls_n].value = value;
		c->sysctls_n += r == 0;
	}
	return r;
}

/* ---- devices ---- */

static int read_devices(struct oci_parser *s, const struct json_node *node)
{
	static const char *const there[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	const struct json_node *list;
	int r = oci_member(s, node, "devices", JSON_ARRAY, &list);

	for (const struct json_node *d = r == 0 && list ? list->first : NULL; r == 0 && d;
	     d = d->next) {
		const char *path;

		r = oci_text(s, d, "path", &path);
		if (r == 0 && !(path && oci_is_one_of(path, there, ARRAY_SIZE(there))))
			r = oci_bad(s, d, EOPNOTSUPP,
				    "device '%.100s': a sandbox has none of the host's (--device)",
				    path ? path : "");
	}
	return r;
}

/* ---- all of it ---- */

static int read_seccomp(struct oci_parser *s, const struct json_node *node)
{
	const struct json_node *m;
	int r = oci_member(s, node, "seccomp", JSON_OBJECT, &m);

	if (r == 0 && m)
		s->c->seccomp = (struct str){ s->text.p + m->at, m->end - m->at };
	return r;
}

static int read_propagation(struct oci_parser *s, const struct json_node *node)
{
	const char *word;
	int r = oci_text(s, node, "rootfsPropagation", &word);

	if (r == 0 && word && (strstr(word, "shared") || !strcmp(word, "unbindable")))
		r = oci_bad(s, node, EOPNOTSUPP,
			    "rootfsPropagation '%.40s': mounts of a sandbox are its own", word);
	return r;
}

int oci_parse_linux(struct oci_parser *s, const struct json_node *node)
{
	static const char users[] = "a sandbox has a user namespace of its own (--userns)",
			  no[] = "not supported";
	static const struct oci_key keys[] = {
		{ .key = "sysctl" },
		{ .key = "resources" },
		{ .key = "cgroupsPath" },
		{ .key = "namespaces" },
		{ .key = "devices" },
		{ .key = "seccomp" },
		{ .key = "rootfsPropagation" },
		{ .key = "maskedPaths" },
		{ .key = "readonlyPaths" },
		{ .key = "mountLabel", .noted = true },
		{ .key = "uidMappings", .never = users },
		{ .key = "gidMappings", .never = users },
		{ .key = "intelRdt", .never = no },
		{ .key = "personality", .never = no },
		{ .key = "timeOffsets", .never = no },
		{ .key = "memoryPolicy", .never = no },
		{ .key = "netDevices", .never = "the host's are not moved into a sandbox" },
	};
	struct sandbox_container *c = &s->c->container;
	const struct json_node *m;
	int r = read_namespaces(s, node);

	if (r == 0)
		r = oci_check_keys(s, node, "linux", keys, ARRAY_SIZE(keys));
	if (r == 0)
		r = read_propagation(s, node);
	if (r == 0)
		r = read_devices(s, node);
	if (r == 0)
		r = read_sysctls(s, node);
	if (r == 0)
		r = read_paths(s, node, "maskedPaths", c->masked, &c->masked_n);
	if (r == 0)
		r = read_paths(s, node, "readonlyPaths", c->proc_ro, &c->proc_ro_n);
	if (r == 0)
		r = read_seccomp(s, node);
	if (r == 0)
		r = oci_member(s, node, "resources", JSON_OBJECT, &m);
	if (r == 0 && m)
		r = oci_parse_resources(s, m);
	if (r == 0 && json_given(node, "cgroupsPath"))
		oci_note(
			s,
			"linux.cgroupsPath: a sandbox's control group is <cgroup2>/warder/SESSION");
	return r;
}
