// SPDX-License-Identifier: Apache-2.0
/* `warder oci`, or `warder-oci`: the command line of an OCI runtime, as runc and crun have it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/base/version.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/oci.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/run_status.h"

#define GONE_MS	 30000 /* for one that was killed: its record is sealed first */
#define LOOK_MS	 20
#define PIDS_MAX 65536

#define AT(member) offsetof(struct oci_args, member)

/* Before the command. */
static const struct option_def GLOBALS[] = {
	{ "root", 0, OPT_STR, AT(root), "DIR",
	  "where the state of containers is kept (default: /run/warder/oci)" },
	{ "log", 0, OPT_STR, AT(log), "FILE", "errors and notes are written there, too" },
	{ "log-format", 0, OPT_STR, AT(log_format), "FORMAT", "of that file: text, json" },
	{ "systemd-cgroup", 0, OPT_FLAG, AT(systemd_cgroup), NULL,
	  "accepted: a sandbox has a control group of its own making in any case" },
	{ "debug", 0, OPT_FLAG, AT(debug), NULL, "accepted" },
	{ "version", 'v', OPT_FLAG, AT(version), NULL, "which runtime this is" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const struct option_def OPTIONS[] = {
	{ "bundle", 'b', OPT_STR, AT(bundle), "DIR",
	  "create: with config.json in it (default: here)" },
	{ "pid-file", 0, OPT_STR, AT(pid_file), "FILE",
	  "create, exec: the process to wait for, whose exit code is the container's or the command's" },
	{ "console-socket", 0, OPT_STR, AT(console_socket), "FILE",
	  "create, exec: where the master of its terminal is sent" },
	{ "preserve-fds", 0, OPT_U64, AT(preserve_fds), "N", "create, exec: only 0" },
	{ "no-pivot", 0, OPT_FLAG, AT(no_pivot), NULL, "create: accepted; pivot_root is used" },
	{ "no-new-keyring", 0, OPT_FLAG, AT(no_new_keyring), NULL,
	  "create: accepted; it has a keyring of its own" },
	{ "process", 'p', OPT_STR, AT(process), "FILE", "exec: what to run, as process.json" },
	{ "detach", 'd', OPT_FLAG, AT(detach), NULL, "exec: return when it runs" },
	{ "tty", 't', OPT_FLAG, AT(tty), NULL, "exec: with a terminal" },
	{ "env", 'e', OPT_STRLIST, AT(env), "K=V", "exec: environment variable; repeatable" },
	{ "cwd", 0, OPT_STR, AT(cwd), "DIR", "exec: start in this directory" },
	{ "user", 'u', OPT_STR, AT(user), "USER", "exec: refused, there is one" },
	{ "all", 'a', OPT_FLAG, AT(all), NULL, "kill: each process, not the first one's group" },
	{ "force", 'f', OPT_FLAG, AT(force), NULL, "delete: one that runs is killed first" },
	{ "format", 0, OPT_STR, AT(format), "FORMAT", "ps, list: table, json" },
	{ "resources", 'r', OPT_STR, AT(resources), "FILE", "update: refused" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Sandboxes for container tools: an OCI runtime (runtime-spec 1.0) to give to podman --runtime,\n"
	"containerd or CRI-O. `warder-oci` is the same by one name. Each container is a session like\n"
	"any other: hardened, watched, judged by rules, recorded; warder sessions, ps, events, kill\n"
	"know it by the id that the tool shows. Annotations choose: warder.policy=NAME,\n"
	"warder.rules=FILE, warder.backend=NAME, warder.tenant=NAME, warder.timeout=TIME,\n"
	"warder.export=SINK, warder.watch=PATH.\n\n"
	"What would open a sandbox (--privileged, added capabilities, devices, the host's\n"
	"namespaces, hooks) is refused, with what it is. What a sandbox takes away anyway is in --log.\n"
	"A container's root is written to in memory, and so ends with it; volumes stay.\n\n"
	"Exit code: 0, or 1 and why; of exec without --detach the command's own.";

struct call {
	struct oci_args a;
	const char *root;
	char own_root[PATH_MAX];
	char **words; /* what follows the command, NULL-terminated */
	size_t n;
};

/* ---- of one container ---- */

static int open_state(const struct call *c, struct oci_state *s, struct err *err)
{
	return oci_state_open(s, c->root, c->words[0], err);
}

static int do_create(struct call *c, struct err *err)
{
	(void)err;
	return oci_create(&c->a, c->root, c->words[0]);
}

static int do_exec(struct call *c, struct err *err)
{
	(void)err;
	return oci_exec(&c->a, c->root, c->words[0], c->words + 1);
}

static int do_start(struct call *c, struct err *err)
{
	struct oci_state s;
	int r = open_state(c, &s, err);

	if (r < 0)
		return r;
	if (s.status != OCI_CREATED)
		r = err_set(err, EBUSY, "container '%s' cannot be started: it is %s", c->words[0],
			    oci_status_names[s.status]);
	if (r == 0)
		r = oci_door_ask(s.dir, "start", err);
	oci_state_done(&s);
	return r;
}

static int do_state(struct call *c, struct err *err)
{
	auto_buf struct buf out = { 0 };
	struct str annotations, text;
	struct oci_state s;
	struct json j;
	int r = open_state(c, &s, err);

	if (r < 0)
		return r;
	text = (struct str){ s.text, s.n };
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "ociVersion");
	json_strz(&j, OCI_VERSION);
	json_key(&j, "id");
	json_strz(&j, c->words[0]);
	json_key(&j, "status");
	json_strz(&j, oci_status_names[s.status]);
	json_key(&j, "pid");
	json_i64(&j, s.status == OCI_STOPPED ? 0 : s.keeper);
	for (size_t i = 0; i < 3; i++) {
		static const char *const keys[] = { "bundle", "rootfs", "created" };

		if (!scan_find(text, keys[i], &annotations))
			continue;
		json_key(&j, keys[i]);
		json_raw(&j, annotations);
	}
	json_key(&j, "session");
	json_strz(&j, s.session);
	if (scan_find(text, "annotations", &annotations)) {
		json_key(&j, "annotations");
		json_raw(&j, annotations);
	}
	json_object_end(&j);
	if (out.failed)
		r = err_set(err, ENOMEM, "%m");
	else
		cli_print_line(&out);
	oci_state_done(&s);
	return r;
}

/* ---- its processes ---- */

/* Of its control group. *ret is the caller's to free. */
static int read_pids(const struct oci_state *s, pid_t **ret, size_t *ret_n, struct err *err)
{
	auto_free char *text = NULL;
	char *save = NULL;
	pid_t *v;
	size_t n = 0;
	int r = oci_cgroup_file(s->session, "cgroup.procs", &text);

	if (r < 0 && r != -ENOENT)
		return err_set(err, -r, "control group: %m");
	v = calloc(PIDS_MAX, sizeof(*v));
	if (!v)
		return err_set(err, ENOMEM, "%m");
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line && n < PIDS_MAX;
	     line = strtok_r(NULL, "\n", &save))
		v[n++] = (pid_t)strtol(line, NULL, 10);
	*ret = v;
	*ret_n = n;
	return 0;
}

/* Is it still one of them? A number may be somebody else's by now. */
static bool is_of(const struct oci_state *s, pid_t pid)
{
	auto_free char *text = NULL;
	char path[64], want[64];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	snprintf(want, sizeof(want), "/warder/%s\n", s->session);
	return file_read_at(AT_FDCWD, path, 1u << 16, &text, NULL) == 0 && strstr(text, want);
}

static int signal_all(const struct oci_state *s, int sig, struct err *err)
{
	auto_free pid_t *v = NULL;
	size_t n = 0;
	int r = read_pids(s, &v, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		auto_close int fd = (int)syscall(SYS_pidfd_open, v[i], 0);

		if (fd >= 0 && is_of(s, v[i]))
			syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	}
	return r;
}

/* As a whole, with who did it in its record. */
static int kill_it(const struct oci_state *s, struct err *err)
{
	char text[256], request[32];
	int r;

	if (s->status <= OCI_CREATED) {
		snprintf(request, sizeof(request), "signal %d", SIGKILL);
		return oci_door_ask(s->dir, request, err);
	}
	r = order_give("kill", s->session, "oci kill", text, err);
	if ((r == -ESRCH || r == -ENOENT) && oci_state_wait(s, GONE_MS))
		return 0; /* it was just ending */
	return r;
}

static int do_kill(struct call *c, struct err *err)
{
	const char *word = c->n > 1 ? c->words[1] : "TERM";
	int sig = oci_signal(word), r;
	char request[32];
	struct oci_state s;

	if (!sig)
		return err_set(err, EINVAL, "'%s' is no signal", word);
	r = open_state(c, &s, err);
	if (r < 0)
		return r;
	snprintf(request, sizeof(request), "signal %d", sig);
	if (s.status == OCI_STOPPED)
		r = err_set(err, ESRCH, "container '%s' is not running: it has stopped",
			    c->words[0]);
	else if (sig == SIGKILL)
		r = kill_it(&s, err);
	else if (c->a.all && s.status > OCI_CREATED)
		r = signal_all(&s, sig, err);
	else
		r = oci_door_ask(s.dir, request, err);
	oci_state_done(&s);
	return r;
}

static int do_ps(struct call *c, struct err *err)
{
	auto_free pid_t *v = NULL;
	struct oci_state s;
	size_t n = 0;
	int r = open_state(c, &s, err);
	bool json = c->a.format && !strcmp(c->a.format, "json");

	if (r < 0)
		return r;
	r = read_pids(&s, &v, &n, err);
	if (r == 0)
		fputs(json ? "[" : "PID\n", stdout);
	for (size_t i = 0; r == 0 && i < n; i++)
		printf(json ? "%s%d" : "%s%d\n", json && i ? "," : "", (int)v[i]);
	if (r == 0 && json)
		fputs("]\n", stdout);
	oci_state_done(&s);
	return r;
}

/* ---- stop and go ---- */

static int freeze(struct call *c, const char *order, enum oci_status needed, struct err *err)
{
	struct oci_state s;
	char text[256];
	int r = open_state(c, &s, err);

	if (r < 0)
		return r;
	if (s.status != needed)
		r = err_set(err, EINVAL, "container '%s' is %s", c->words[0],
			    oci_status_names[s.status]);
	if (r == 0)
		r = order_give(order, s.session, "oci pause, resume", text, err);
	oci_state_done(&s);
	return r;
}

static int do_pause(struct call *c, struct err *err)
{
	return freeze(c, "freeze", OCI_RUNNING, err);
}

static int do_resume(struct call *c, struct err *err)
{
	return freeze(c, "thaw", OCI_PAUSED, err);
}

/* ---- the end ---- */

/* A keeper that does not end by itself: its sandbox ends with it. The lock says that it is still who it was. */
static void end_keeper(const struct oci_state *s)
{
	auto_close int fd = s->keeper ? (int)syscall(SYS_pidfd_open, s->keeper, 0) : -1;

	if (fd >= 0 && oci_state_lives(s))
		syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	oci_state_wait(s, GONE_MS);
}

/* One that is just being made has no door yet, or nothing to read: not for long. */
static int open_made(const struct call *c, struct oci_state *s, struct err *err)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + GONE_MS * NSEC_PER_MSEC;
	int r;

	for (;;) {
		*err = (struct err){ 0 };
		r = open_state(c, s, err);
		if (r < 0 ? r != -EAGAIN : s->status != OCI_CREATING || s->keeper)
			return r;
		if (clock_ns(CLOCK_MONOTONIC) >= end)
			return r;
		if (r == 0)
			oci_state_done(s);
		usleep(LOOK_MS * 1000);
	}
}

static void remove_damaged(const struct call *c)
{
	char path[PATH_MAX];
	auto_close int dir = -1;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", c->root, c->words[0]) < sizeof(path))
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	oci_state_remove(c->root, c->words[0], dir);
}

static int do_delete(struct call *c, struct err *err)
{
	struct err why = { 0 };
	struct oci_state s;
	int r = c->a.force ? open_made(c, &s, err) : open_state(c, &s, err);

	if (r < 0 && c->a.force && r != -EAGAIN) {
		*err = (struct err){ 0 };
		if (r != -ENOENT) /* never finished, or damaged */
			remove_damaged(c);
		return 0;
	}
	if (r < 0)
		return r;
	if (s.status != OCI_STOPPED && s.status != OCI_CREATED && !c->a.force)
		r = err_set(err, EBUSY, "container '%s' cannot be deleted: it is %s", c->words[0],
			    oci_status_names[s.status]);
	if (r == 0 && s.status != OCI_STOPPED) {
		kill_it(&s, &why);
		if (!oci_state_wait(&s, GONE_MS))
			end_keeper(&s);
	}
	if (r == 0) {
		oci_sweep(s.session); /* what one left that was killed itself */
		oci_state_remove(c->root, c->words[0], s.dir);
	}
	oci_state_done(&s);
	return r;
}

/* ---- of the runtime ---- */

static void put_list(struct json *j, const char *key, const char *const *v, size_t n)
{
	json_key(j, key);
	json_array_begin(j);
	for (size_t i = 0; i < n; i++)
		json_strz(j, v[i]);
	json_array_end(j);
}

/* runtime-spec, features.md. */
static int do_features(struct call *c, struct err *err)
{
	static const char *const options[] = { "bind",	   "rbind", "ro",     "rro",	 "rw",
					       "noexec",   "exec",  "nosuid", "nodev",	 "private",
					       "rprivate", "slave", "rslave", "relatime" };
	static const char *const spaces[] = { "cgroup", "ipc", "mount", "network", "pid", "uts" };
	static const char *const actions[] = { "SCMP_ACT_ALLOW",       "SCMP_ACT_ERRNO",
					       "SCMP_ACT_KILL",	       "SCMP_ACT_KILL_PROCESS",
					       "SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG",
					       "SCMP_ACT_TRAP" };
	auto_buf struct buf out = { 0 };
	struct json j;

	(void)c;
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "ociVersionMin");
	json_strz(&j, "1.0.0");
	json_key(&j, "ociVersionMax");
	json_strz(&j, OCI_VERSION);
	put_list(&j, "hooks", NULL, 0);
	put_list(&j, "mountOptions", options, ARRAY_SIZE(options));
	json_key(&j, "linux");
	json_object_begin(&j);
	put_list(&j, "namespaces", spaces, ARRAY_SIZE(spaces));
	put_list(&j, "capabilities", NULL, 0);
	json_key(&j, "cgroup");
	json_object_begin(&j);
	json_key(&j, "v1");
	json_bool(&j, true);
	json_key(&j, "v2");
	json_bool(&j, true);
	json_key(&j, "systemd");
	json_bool(&j, false);
	json_object_end(&j);
	json_key(&j, "seccomp");
	json_object_begin(&j);
	json_key(&j, "enabled");
	json_bool(&j, true);
	put_list(&j, "actions", actions, ARRAY_SIZE(actions));
	json_object_end(&j);
	json_key(&j, "apparmor");
	json_object_begin(&j);
	json_key(&j, "enabled");
	json_bool(&j, false);
	json_object_end(&j);
	json_key(&j, "selinux");
	json_object_begin(&j);
	json_key(&j, "enabled");
	json_bool(&j, false);
	json_object_end(&j);
	json_object_end(&j);
	json_key(&j, "annotations");
	json_object_begin(&j);
	json_key(&j, "org.warder.version");
	json_strz(&j, WARDER_VERSION);
	json_object_end(&j);
	json_object_end(&j);
	if (out.failed)
		return err_set(err, ENOMEM, "%m");
	cli_print_line(&out);
	return 0;
}

static int do_list(struct call *c, struct err *err)
{
	bool json = c->a.format && !strcmp(c->a.format, "json");
	auto_dir DIR *dir = opendir(c->root);
	struct dirent *de;
	bool first = true;

	(void)err;
	fputs(json ? "[" : "ID                                STATUS   PID\n", stdout);
	while (dir && (de = readdir(dir))) {
		struct oci_state s;

		if (!oci_id_is_good(de->d_name) ||
		    oci_state_open(&s, c->root, de->d_name, NULL) < 0)
			continue;
		printf(json ? "%s{\"id\":\"%s\",\"status\":\"%s\",\"pid\":%d}"
			    : "%s%-33s %-8s %d\n",
		       json && !first ? "," : "", de->d_name, oci_status_names[s.status],
		       s.status == OCI_STOPPED ? 0 : (int)s.keeper);
		first = false;
		oci_state_done(&s);
	}
	if (json)
		fputs("]\n", stdout);
	return 0;
}

static int do_refuse(struct call *c, struct err *err)
{
	(void)c;
	return err_set(err, EOPNOTSUPP,
		       "not supported: a sandbox's limits are those of its start, "
		       "and its memory is not written down");
}

/* ---- the command line ---- */

static const struct verb {
	const char *name;
	int (*run)(struct call *c, struct err *err);
	size_t least, most; /* words behind it */
	const char *options;
} VERBS[] = {
	{ "create", do_create, 1, 1,
	  "bundle pid-file console-socket preserve-fds no-pivot no-new-keyring" },
	{ "start", do_start, 1, 1, "" },
	{ "state", do_state, 1, 1, "" },
	{ "kill", do_kill, 1, 2, "all" },
	{ "delete", do_delete, 1, 1, "force" },
	{ "exec", do_exec, 1, SIZE_MAX,
	  "pid-file console-socket preserve-fds process detach tty env cwd user" },
	{ "ps", do_ps, 1, 1, "format" },
	{ "list", do_list, 0, 0, "format" },
	{ "pause", do_pause, 1, 1, "" },
	{ "resume", do_resume, 1, 1, "" },
	{ "features", do_features, 0, 0, "" },
	{ "update", do_refuse, 0, SIZE_MAX, "resources" },
	{ "checkpoint", do_refuse, 0, SIZE_MAX, "" },
	{ "restore", do_refuse, 0, SIZE_MAX, "" },
};

static const struct verb *find_verb(const char *word, struct err *err)
{
	const char *names[ARRAY_SIZE(VERBS)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(VERBS); i++) {
		names[i] = VERBS[i].name;
		if (!strcmp(VERBS[i].name, word))
			return &VERBS[i];
	}
	near = closest_name(word, names, ARRAY_SIZE(VERBS));
	err_set(err, EINVAL, "unknown command '%s'%s%s%s", word, near ? ": did you mean '" : "",
		near ? near : "", near ? "'?" : "");
	return NULL;
}

static bool takes(const struct verb *v, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = v->options; (p = strstr(p, option)); p += n)
		if ((p == v->options || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return !strcmp(option, "help");
}

static int read_words(struct call *c, const struct verb *v, int argc, char **argv, struct err *err)
{
	struct option_def defs[ARRAY_SIZE(OPTIONS)] = { 0 };
	size_t n = 0;
	int rest, r;

	for (const struct option_def *d = OPTIONS; d->name; d++)
		if (takes(v, d->name))
			defs[n++] = *d;
	if (v->run == do_exec) { /* behind the id are a command's own */
		r = options_parse(defs, &c->a, argc, argv, &rest, err);
		c->words = argv + rest;
		c->n = r < 0 ? 0 : (size_t)(argc - rest);
	} else {
		r = options_parse_mixed(defs, &c->a, argc, argv, &rest, err);
		c->words = argv + 1;
		c->n = r < 0 ? 0 : (size_t)rest;
	}
	if (r < 0 || c->a.help)
		return r;
	if (c->n < v->least || c->n > v->most)
		return err_set(err, EINVAL, "'%s' takes %s", v->name,
			       v->least ? "the id of a container" : "no id");
	if (v->least && !oci_id_is_good(c->words[0]))
		return err_set(err, EINVAL,
			       "'%.80s' is no container id: letters, digits, _ + . and -, at most "
			       "128",
			       c->words[0]);
	return 0;
}

static void show_version(void)
{
	printf("warder-oci version %s\nspec: " OCI_VERSION "\n", WARDER_VERSION);
}

static void show_help(void)
{
	static struct option_def all[ARRAY_SIZE(GLOBALS) + ARRAY_SIZE(OPTIONS)];
	size_t n = 0;

	for (const struct option_def *d = GLOBALS; d->name; d++)
		if (strcmp(d->name, "help"))
			all[n++] = *d;
	for (const struct option_def *d = OPTIONS; d->name; d++)
		all[n++] = *d;
	cli_usage("oci [OPTIONS] "
		  "create|start|state|kill|delete|exec|ps|list|pause|resume|features "
		  "[OPTIONS] [ID] [SIGNAL | COMMAND...]",
		  PURPOSE, all);
}

static int find_root(struct call *c, struct err *err)
{
	c->root = c->a.root;
	if (c->root && *c->root)
		return 0;
	c->root = c->own_root;
	if ((size_t)snprintf(c->own_root, sizeof(c->own_root), "%s/oci", run_dir()) >=
	    sizeof(c->own_root))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	return 0;
}

int cmd_oci(int argc, char **argv)
{
	static struct call c;
	const struct verb *v;
	struct err err = { 0 };
	int rest, r;

	log_set_prefix("warder oci");
	if (options_parse(GLOBALS, &c.a, argc, argv, &rest, &err) < 0)
		return cli_bad_usage("oci", &err);
	oci_log_set(&c.a);
	if (c.a.help || c.a.version || rest == argc) {
		c.a.version ? show_version() : show_help();
		return c.a.help || c.a.version ? cli_finish_output(0) : 1;
	}
	v = find_verb(argv[rest], &err);
	if (!v || read_words(&c, v, argc - rest, argv + rest, &err) < 0 || find_root(&c, &err) < 0)
		return oci_fail(&err);
	if (c.a.help) {
		show_help();
		return cli_finish_output(0);
	}
	if (geteuid() != 0 && v->run != do_features) {
		err_set(&err, EPERM,
			"a sandbox needs root: it loads BPF programs and creates cgroups");
		return oci_fail(&err);
	}
	r = v->run(&c, &err);
	return r < 0 ? oci_fail(&err) : cli_finish_output(r);
}
