// SPDX-License-Identifier: Apache-2.0
/* What userspace/pipeline/run_status.h collects. The parts are written by unprivileged engines, which
 * somebody may have taken over: their text is checked before it becomes part of ours. */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/capture/usage.h"
#include "userspace/base/plain.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/event/json_read.h"
#include "userspace/pipeline/run_status.h"

#define PARTS_MAX	 16
#define JSON_MEM_MAX	 (4u << 20)
#define JSON_NESTING_MAX 12

struct status_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct status_args, json), NULL, "one JSON object" },
	{ "help", 'h', OPT_FLAG, offsetof(struct status_args, help), NULL, "this text" },
	{ 0 },
};

/* ---- is it JSON? ---- */

static bool check_value(struct json_reader *r, int depth);

static bool check_list(struct json_reader *r, int depth, char close, bool keys)
{
	struct str key;

	if (json_take(r, close))
		return true;
	do {
		if (keys &&
		    (!json_read_string(r, &key) || !json_expect(r, ':', "expected a value")))
			return false;
		if (!check_value(r, depth))
			return false;
	} while (json_take(r, ','));
	return json_expect(r, close, "not closed");
}

static bool check_value(struct json_reader *r, int depth)
{
	struct str text;
	int64_t number;
	bool flag;

	if (depth > JSON_NESTING_MAX)
		return false;
	switch (json_peek(r)) {
	case '{':
		return json_take(r, '{') && check_list(r, depth + 1, '}', true);
	case '[':
		return json_take(r, '[') && check_list(r, depth + 1, ']', false);
	case '"':
		return json_read_string(r, &text);
	case 't':
	case 'f':
		return json_read_bool(r, &flag);
	default:
		return json_read_i64(r, &number);
	}
}

static bool is_json(struct str text)
{
	struct arena arena;
	struct json_reader r;
	bool good;

	arena_init(&arena, JSON_MEM_MAX);
	good = json_reader_init(&r, &arena, text) == 0 && check_value(&r, 0) && !json_peek(&r) &&
	       r.p == r.end;
	arena_done(&arena);
	return good;
}

/* ---- reading ---- */

struct part {
	char name[32];
	struct buf text;
};

struct parts {
	struct part v[PARTS_MAX];
	size_t n;
};

static struct str text_of(const struct part *p)
{
	return (struct str){ p->text.p, p->text.n };
}

static void parts_done(struct parts *p)
{
	for (size_t i = 0; i < p->n; i++)
		buf_done(&p->v[i].text);
	p->n = 0;
}

/* "sinks.json" -> "sinks" */
static bool part_name(const char *file, char ret[32])
{
	const size_t suffix = sizeof(".json") - 1;
	size_t n = strlen(file);

	if (n <= suffix || n - suffix >= 32 || strcmp(file + n - suffix, ".json"))
		return false;
	memcpy(ret, file, n - suffix);
	ret[n - suffix] = 0;
	return strspn(ret, "abcdefghijklmnopqrstuvwxyz_") == n - suffix;
}

/* The directory is the engine's: a link or a FIFO may lie there. */
static bool read_part(int session, const char *file, struct buf *ret)
{
	auto_close int fd =
		openat(session, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	buf_init(ret, RUN_STATUS_PART_MAX);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fd_read_rest(fd, ret) == 0;
}

static void read_parts(struct parts *ret, int session)
{
	int copy = openat(session, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *de;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while (ret->n < PARTS_MAX && (de = readdir(dir))) {
		struct part *p = &ret->v[ret->n];

		if (!part_name(de->d_name, p->name))
			continue;
		if (read_part(session, de->d_name, &p->text) && is_json(text_of(p)))
			ret->n++;
		else
			buf_done(&p->text);
	}
}

static struct str part_of(const struct parts *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (!strcmp(p->v[i].name, name))
			return text_of(&p->v[i]);
	return STR("{}");
}

/* ---- the kernel's tables ---- */

/* What the session's number of a process says is the engine's word: it must be a warder of root's at least. */
static bool is_warder(pid_t pid)
{
	struct stat ours, its, dir;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &dir) < 0 || dir.st_uid != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return stat(path, &its) == 0 && stat("/proc/self/exe", &ours) == 0 &&
	       its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

/* 0: it has ended, and the pid is somebody else's, or nobody's. */
static pid_t pid_of(const struct parts *p)
{
	struct str v;
	uint64_t pid;

	return scan_find(part_of(p, "run"), "pid", &v) && scan_u64(v, &pid) && pid > 1 &&
			       pid <= INT_MAX && is_warder((pid_t)pid)
		       ? (pid_t)pid
		       : 0;
}

static bool usage_of(const struct parts *p, struct capture_usage *ret)
{
	pid_t pid = pid_of(p);

	return pid && capture_usage(pid, ret, NULL) == 0;
}

static void add_usage(struct json *j, const struct capture_usage *u)
{
	json_key(j, "kernel");
	json_object_begin(j);
	json_key(j, "map_bytes");
	json_u64(j, u->map_bytes);
	json_key(j, "program_bytes");
	json_u64(j, u->program_bytes);
	for (int rings = 1; rings >= 0; rings--) {
		json_key(j, rings ? "rings" : "maps");
		json_array_begin(j);
		for (size_t i = 0; i < u->maps_n; i++) {
			const struct capture_map *m = &u->maps[i];

			if (m->is_ring != rings)
				continue;
			json_object_begin(j);
			json_key(j, "name");
			json_strz(j, m->name);
			json_key(j, "used");
			json_u64(j, m->used);
			json_key(j, "max");
			json_u64(j, m->max);
			json_key(j, "bytes");
			json_u64(j, m->bytes);
			json_object_end(j);
		}
		json_array_end(j);
	}
	json_object_end(j);
}

/* In text only what is in use: all of it is in the JSON. */
static void print_usage(const struct capture_usage *u)
{
	printf("  kernel   %.1f MiB of maps, %.1f MiB of programs\n",
	       (double)u->map_bytes / (1 << 20), (double)u->program_bytes / (1 << 20));
	for (size_t i = 0; i < u->maps_n; i++) {
		const struct capture_map *m = &u->maps[i];

		if (m->used || m->is_ring)
			printf("    %-4s %-15s %10llu of %10llu %s\n", m->is_ring ? "ring" : "map",
			       m->name, (unsigned long long)m->used, (unsigned long long)m->max,
			       m->is_ring ? "bytes" : "entries");
	}
}

/* ---- showing ---- */

static void add_json(struct json *j, const char *session, const struct parts *p,
		     const struct capture_usage *usage)
{
	json_object_begin(j);
	json_key(j, "session");
	json_strz(j, session);
	for (size_t i = 0; i < p->n; i++) {
		json_key(j, p->v[i].name);
		json_raw(j, text_of(&p->v[i]));
	}
	if (usage)
		add_usage(j, usage);
	json_object_end(j);
}

static void print_sink(struct str sink)
{
	char name[64], lag[24], rate[24], dead[24], errors[24], up[8], text[256];

	cli_member(sink, "up", up, sizeof(up));
	printf("  %-24s %-5s %10s behind %8s/s %6s dead letters %6s errors",
	       cli_member(sink, "name", name, sizeof(name)), strcmp(up, "true") ? "DOWN" : "up",
	       cli_member(sink, "lag", lag, sizeof(lag)),
	       cli_member(sink, "rate", rate, sizeof(rate)),
	       cli_member(sink, "dead_letters", dead, sizeof(dead)),
	       cli_member(sink, "errors", errors, sizeof(errors)));
	cli_member(sink, "text", text, sizeof(text));
	printf("%s%s\n", *text ? "  " : "", text);
}

/* What it runs, its words one behind another. */
static const char *command_of(struct str run, char *ret, size_t size)
{
	struct str list = { 0 }, word;
	struct scan s;
	size_t n = 0;

	ret[0] = 0;
	if (!scan_find(run, "command", &list))
		return ret;
	s = scan_of(list);
	while (n < size && scan_element(&s, &word))
		if (word.n >= 2)
			n += (size_t)snprintf(ret + n, size - n, "%s%.*s", n ? " " : "",
					      (int)MIN(word.n - 2, size), word.p + 1);
	plain_text(ret, '?', "");
	return ret;
}

static void print_session(const char *session, const struct parts *p,
			  const struct capture_usage *usage)
{
	struct str run = part_of(p, "run"), sinks = part_of(p, "sinks"), sink;
	struct scan s = scan_of(sinks);
	char name[128], pid[24], degraded[512], rule[128], id[32], command[240], started[40];

	printf("%s  %s  pid %s%s\n", session, cli_member(run, "name", name, sizeof(name)),
	       cli_member(run, "pid", pid, sizeof(pid)),
	       pid_of(p) ? "" : " is gone: its sandbox was killed, the next run cleans up");
	if (*command_of(run, command, sizeof(command)))
		printf("  since %.19sZ: %s\n", cli_member(run, "started", started, sizeof(started)),
		       command);
	cli_member(run, "degraded", degraded, sizeof(degraded));
	if (*degraded && strcmp(degraded, "[]"))
		printf("  degraded %s\n", degraded);
	while (scan_element(&s, &sink))
		print_sink(sink);
	if (usage)
		print_usage(usage);
	cli_member(part_of(p, "frozen"), "killed_at", id, sizeof(id));
	if (part_of(p, "frozen").n > 2)
		printf("  FROZEN by %s%s: warder thaw or kill; %s%.19s%s\n",
		       strcmp(cli_member(part_of(p, "frozen"), "rule", rule, sizeof(rule)), "null")
			       ? "rule "
			       : "an operator",
		       strcmp(rule, "null") ? rule : "",
		       strcmp(id, "null") ? "killed at " : "no time limit",
		       strcmp(id, "null") ? id : "", strcmp(id, "null") ? "Z" : "");
	s = scan_of(part_of(p, "questions"));
	while (scan_element(&s, &sink))
		printf("  STOPPED by rule '%s': warder approve %s, or deny\n",
		       cli_member(sink, "rule", rule, sizeof(rule)),
		       cli_member(sink, "id", id, sizeof(id)));
}

static int show(int sessions, bool json)
{
	auto_dir DIR *dir = fdopendir(sessions);
	auto_buf struct buf out = { 0 };
	struct dirent *de;
	struct json j;
	size_t n = 0;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "sessions");
	json_array_begin(&j);
	while (dir && (de = readdir(dir))) {
		auto_close int fd = -1;
		struct parts parts = { .n = 0 };
		struct capture_usage usage;
		bool has_usage;

		if (de->d_name[0] == '.')
			continue;
		fd = openat(sessions, de->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (fd < 0)
			continue;
		read_parts(&parts, fd);
		has_usage = usage_of(&parts, &usage);
		add_json(&j, de->d_name, &parts, has_usage ? &usage : NULL);
		if (!json)
			print_session(de->d_name, &parts, has_usage ? &usage : NULL);
		parts_done(&parts);
		n++;
	}
	json_array_end(&j);
	json_object_end(&j);
	if (json)
		cli_print_line(&out);
	else if (!n)
		printf("no session runs\n");
	return cli_finish_output(0);
}

int cmd_status(int argc, char **argv)
{
	struct status_args args = { 0 };
	struct err err = { 0 };
	char path[4096];
	int n, fd;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("status", &err);
	if (args.help) {
		cli_usage(
			"status [OPTIONS]",
			"The sessions that run now: what they run and since when, who waits for a person (STOPPED, FROZEN), their sinks with lag (events not taken yet), rate,\n"
			"dead letters (refused for good), errors, and what the other side says; what the\n"
			"probes miss (degraded); and how full the kernel's rings and tables are, which only\n"
			"root is told.",
			OPTIONS);
		return 0;
	}
	if (n) {
		err_set(&err, EINVAL, "it takes no arguments");
		return cli_bad_usage("status", &err);
	}
	run_status_sweep();
	if ((size_t)snprintf(path, sizeof(path), "%s/sessions", run_dir()) >= sizeof(path)) {
		err_set(&err, ENAMETOOLONG, "run directory: path too long");
		return cli_fail(&err);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT) {
		printf("%s\n", args.json ? "{\"sessions\":[]}" : "no session runs");
		return cli_finish_output(0);
	}
	if (fd < 0) {
		err_set(&err, errno, "'%s': %m", path);
		return cli_fail(&err);
	}
	return show(fd, args.json);
}
