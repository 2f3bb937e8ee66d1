// SPDX-License-Identifier: Apache-2.0
/* config.json, "process": what runs, as whom, with which rights and limits. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "userspace/base/auto.h"
#include "userspace/oci/parser.h"

#define ID_MAX	  65535
#define SIZE_MAX_ 4096 /* rows, columns */

/* What tools give by default: gone with all others. One besides these was asked for by somebody who needs it. */
static const char *const usual_caps[] = {
	"CAP_AUDIT_WRITE", "CAP_CHOWN",	  "CAP_DAC_OVERRIDE",	  "CAP_FOWNER",	    "CAP_FSETID",
	"CAP_KILL",	   "CAP_MKNOD",	  "CAP_NET_BIND_SERVICE", "CAP_NET_RAW",    "CAP_SETFCAP",
	"CAP_SETGID",	   "CAP_SETPCAP", "CAP_SETUID",		  "CAP_SYS_CHROOT",
};

static const struct {
	const char *name;
	int which;
} limits[] = {
	{ "RLIMIT_AS", RLIMIT_AS },
	{ "RLIMIT_CORE", RLIMIT_CORE },
	{ "RLIMIT_CPU", RLIMIT_CPU },
	{ "RLIMIT_DATA", RLIMIT_DATA },
	{ "RLIMIT_FSIZE", RLIMIT_FSIZE },
	{ "RLIMIT_LOCKS", RLIMIT_LOCKS },
	{ "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
	{ "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE },
	{ "RLIMIT_NICE", RLIMIT_NICE },
	{ "RLIMIT_NOFILE", RLIMIT_NOFILE },
	{ "RLIMIT_NPROC", RLIMIT_NPROC },
	{ "RLIMIT_RSS", RLIMIT_RSS },
	{ "RLIMIT_RTPRIO", RLIMIT_RTPRIO },
	{ "RLIMIT_RTTIME", RLIMIT_RTTIME },
	{ "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING },
	{ "RLIMIT_STACK", RLIMIT_STACK },
};

static int read_args(struct oci_parser *s, const struct json_node *node, struct oci_process *p)
{
	const struct json_node *list;
	int r = oci_member(s, node, "args", JSON_ARRAY, &list);

	if (r < 0)
		return r;
	if (!list || !list->first)
		return oci_bad(s, node, EINVAL, "process.args: no command");
	if (list->n > OCI_ARGS_MAX)
		return oci_bad(s, list, E2BIG, "process.args: more than %d words", OCI_ARGS_MAX);
	p->argv = arena_zalloc(s->mem, (list->n + 1) * sizeof(*p->argv));
	if (!p->argv)
		return oci_bad(s, list, ENOMEM, "out of memory");
	for (const struct json_node *w = list->first; r == 0 && w; w = w->next) {
		const char *word = NULL;

		r = oci_text_of(s, w, &word);
		if (r == 0)
			p->argv[p->argc++] = (char *)word;
	}
	if (r == 0 && !p->argv[0][0])
		return oci_bad(s, list, EINVAL, "process.args: no command");
	return r;
}

static int read_env(struct oci_parser *s, const struct json_node *node, struct oci_process *p)
{
	const struct json_node *list;
	int r = oci_member(s, node, "env", JSON_ARRAY, &list);

	for (const struct json_node *e = r == 0 && list ? list->first : NULL; r == 0 && e;
	     e = e->next) {
		const char *word = NULL, *eq;

		r = oci_text_of(s, e, &word);
		if (r < 0)
			return r;
		eq = strchr(word, '=');
		if (!eq || eq == word) {
			oci_note(s, "process.env: '%.40s' is no NAME=VALUE, passed over", word);
			continue;
		}
		if (p->env_n == SANDBOX_ENV_MAX)
			return oci_bad(s, e, E2BIG, "process.env: more than %d variables",
				       SANDBOX_ENV_MAX);
		p->env[p->env_n++] = word;
	}
	return r;
}

static int read_user(struct oci_parser *s, const struct json_node *node, struct oci_process *p)
{
	static const struct oci_key keys[] = { { .key = "uid" },
					       { .key = "gid" },
					       { .key = "umask" },
					       { .key = "additionalGids" },
					       { .key = "username" } };
	const struct json_node *user, *groups;
	uint64_t uid = 0, gid = 0, mask = 022;
	int r = oci_member(s, node, "user", JSON_OBJECT, &user);

	if (r == 0 && user) {
		r = oci_number(s, user, "uid", ID_MAX, &uid);
		if (r == 0)
			r = oci_number(s, user, "gid", ID_MAX, &gid);
		if (r == 0)
			r = oci_number(s, user, "umask", 0777, &mask);
		if (r == 0)
			r = oci_member(s, user, "additionalGids", JSON_ARRAY, &groups);
		if (r == 0 && groups && groups->first)
			oci_note(s, "process.user.additionalGids: a sandbox has one group");
		if (r == 0)
			r = oci_check_keys(s, user, "process.user", keys, ARRAY_SIZE(keys));
	}
	p->uid = (uint32_t)uid;
	p->gid = (uint32_t)gid;
	p->umask = (uint32_t)mask;
	return r;
}

static int check_cap(struct oci_parser *s, const struct json_node *cap)
{
	const char *word = NULL;
	int r = oci_text_of(s, cap, &word);

	return r < 0 || oci_is_one_of(word, usual_caps, ARRAY_SIZE(usual_caps))
		       ? r
		       : oci_bad(s, cap, EOPNOTSUPP,
				 "capability %.40s: a sandbox has none (--cap-add, --privileged)",
				 word);
}

static int read_caps(struct oci_parser *s, const struct json_node *node)
{
	const struct json_node *caps;
	bool any = false;
	int r = oci_member(s, node, "capabilities", JSON_OBJECT, &caps);

	for (const struct json_node *set = r == 0 && caps ? caps->first : NULL; r == 0 && set;
	     set = set->next) {
		if (set->type == JSON_NULL)
			continue;
		if (set->type != JSON_ARRAY)
			return oci_bad(s, set, EBADMSG, "expected a list of capabilities");
		for (const struct json_node *c = set->first; r == 0 && c; c = c->next)
			r = check_cap(s, c);
		any |= set->first != NULL;
	}
	if (r == 0 && any)
		oci_note(s, "process.capabilities: a sandbox has none of them");
	return r;
}

static int read_rlimit(struct oci_parser *s, const struct json_node *row)
{
	struct sandbox_container *c = &s->c->container;
	uint64_t soft = 0, hard = 0;
	const char *type;
	int r = oci_text(s, row, "type", &type);

	if (r == 0)
		r = oci_number(s, row, "soft", UINT64_MAX, &soft);
	if (r == 0)
		r = oci_number(s, row, "hard", UINT64_MAX, &hard);
	if (r < 0)
		return r;
	for (size_t i = 0; type && i < ARRAY_SIZE(limits); i++) {
		if (strcmp(limits[i].name, type))
			continue;
		for (size_t k = 0; k < c->rlimits_n; k++)
			if (c->rlimits[k].which == limits[i].which)
				return oci_bad(s, row, EINVAL, "%s: given twice", type);
		if (c->rlimits_n == SANDBOX_RLIMITS_MAX)
			return oci_bad(s, row, E2BIG, "process.rlimits: too many");
		c->rlimits[c->rlimits_n].which = limits[i].which;
		c->rlimits[c->rlimits_n].soft = soft;
		c->rlimits[c->rlimits_n++].hard = hard;
		if (limits[i].which == RLIMIT_NOFILE)
			s->c->nofile = hard;
		return 0;
	}
	return oci_bad(s, row, EINVAL, "process.rlimits: type '%.40s' is not known",
		       type ? type : "");
}

static int read_rlimits(struct oci_parser *s, const struct json_node *node)
{
	const struct json_node *list;
	int r = oci_member(s, node, "rlimits", JSON_ARRAY, &list);

	for (const struct json_node *row = r == 0 && list ? list->first : NULL; r == 0 && row;
	     row = row->next)
		r = row->type == JSON_OBJECT
			    ? read_rlimit(s, row)
			    : oci_bad(s, row, EBADMSG, "process.rlimits: expected objects");
	return r;
}

static int read_terminal(struct oci_parser *s, const struct json_node *node, struct oci_process *p)
{
	const struct json_node *size;
	uint64_t rows = 0, cols = 0;
	int r = oci_flag(s, node, "terminal", &p->terminal);

	if (r == 0)
		r = oci_member(s, node, "consoleSize", JSON_OBJECT, &size);
	if (r == 0 && size)
		r = oci_number(s, size, "height", SIZE_MAX_, &rows);
	if (r == 0 && size)
		r = oci_number(s, size, "width", SIZE_MAX_, &cols);
	p->rows = rows ? (uint16_t)rows : OCI_ROWS;
	p->cols = cols ? (uint16_t)cols : OCI_COLS;
	return r;
}

/* Asked for by default where the host has it. We cannot enter it, and have more than it would take away. */
static int read_confinement(struct oci_parser *s, const struct json_node *node)
{
	static const char *const keys[] = { "apparmorProfile", "selinuxLabel" };
	const char *word;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(keys); i++) {
		r = oci_text(s, node, keys[i], &word);
		if (r == 0 && word && *word && strcmp(word, "unconfined"))
			oci_note(s,
				 "process.%s: '%.60s' is not applied; Landlock and the system "
				 "call filter are",
				 keys[i], word);
	}
	return r;
}

static int read_odds(struct oci_parser *s, const struct json_node *node)
{
	static const char no[] = "not supported";
	static const struct oci_key keys[] = {
		{ .key = "terminal" },
		{ .key = "consoleSize" },
		{ .key = "user" },
		{ .key = "args" },
		{ .key = "env" },
		{ .key = "cwd" },
		{ .key = "rlimits" },
		{ .key = "selinuxLabel" },
		{ .key = "apparmorProfile" },
		{ .key = "capabilities" },
		{ .key = "commandLine" },
		{ .key = "noNewPrivileges" },
		{ .key = "oomScoreAdj" },
		{ .key = "scheduler", .never = no },
		{ .key = "ioPriority", .never = no },
		{ .key = "execCPUAffinity", .never = no },
	};

	if (json_given(node, "oomScoreAdj"))
		oci_note(s,
			 "process.oomScoreAdj: a sandbox has 500: it goes before the host's own");
	return oci_check_keys(s, node, "process", keys, ARRAY_SIZE(keys));
}

int oci_parse_process(struct oci_parser *s, const struct json_node *node, struct oci_process *ret)
{
	const char *cwd = NULL;
	int r = node->type == JSON_OBJECT ? 0 : oci_bad(s, node, EBADMSG, "process: no object");

	if (r == 0)
		r = read_args(s, node, ret);
	if (r == 0)
		r = read_env(s, node, ret);
	if (r == 0)
		r = read_user(s, node, ret);
	if (r == 0)
		r = read_terminal(s, node, ret);
	if (r == 0)
		r = read_caps(s, node);
	if (r == 0 && s->c)
		r = read_rlimits(s, node);
	if (r == 0)
		r = read_confinement(s, node);
	if (r == 0)
		r = read_odds(s, node);
	if (r == 0)
		r = oci_text(s, node, "cwd", &cwd);
	if (r == 0 && (!cwd || cwd[0] != '/'))
		r = oci_bad(s, node, EINVAL, "process.cwd: expected an absolute path");
	ret->cwd = cwd;
	return r;
}
