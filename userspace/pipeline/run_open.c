// SPDX-License-Identifier: Apache-2.0
/* What a session needs, opened and made before it begins. */
#include "userspace/pipeline/run_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/pipeline/confine_files.h"
#include "userspace/pipeline/control.h"
#include "userspace/pipeline/enforcement.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/run_status.h"

#define RESOLV_CONF_MAX 65536

/* What is given away below must not be a directory with a life of its own: "--session-dir /etc". */
static int check_empty(int fd, struct err *err)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	int e = errno;
	struct dirent *de;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return err_set(err, e, "%m");
	}
	while ((de = readdir(dir)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			return err_set(err, ENOTEMPTY, "it must be new or empty, '%s' is in it",
				       de->d_name);
	return 0;
}

/* A directory for root and the engine only; an existing one must be empty. */
static int open_bundle(struct run *run, struct err *err)
{
	struct run_result *res = run->result;
	int r;

	if (run->opt->session_dir)
		r = snprintf(res->bundle, sizeof(res->bundle), "%s", run->opt->session_dir);
	else
		r = snprintf(res->bundle, sizeof(res->bundle), "%s/sessions/%s", state_dir(),
			     res->session);
	if (r < 0 || (size_t)r >= sizeof(res->bundle))
		return err_set(err, ENAMETOOLONG, "session directory: path too long");
	r = dir_make_all(res->bundle, 0711);
	if (r < 0)
		return err_set(err, r, "session directory '%s': %m", res->bundle);
	run->bundle_fd = open(res->bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (run->bundle_fd < 0)
		return err_set(err, errno, "session directory '%s': %m", res->bundle);
	r = check_empty(run->bundle_fd, err);
	if (r < 0)
		return err_wrap(err, r, "session directory '%s'", res->bundle);
	if (fchown(run->bundle_fd, run->uid, run->gid) < 0 || fchmod(run->bundle_fd, 0700) < 0)
		return err_set(err, errno, "session directory '%s': giving it to the engine: %m",
			       res->bundle);
	return 0;
}

int cursors_open(int *ret_fd, uid_t uid, gid_t gid, struct err *err)
{
	auto_close int fd = -1;
	char path[4096];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/cursors", state_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	r = dir_make_all(path, 0711);
	if (r < 0)
		return err_set(err, r, "cursor directory '%s': %m", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchown(fd, uid, gid) < 0 || fchmod(fd, 0700) < 0)
		return err_set(err, errno, "cursor directory '%s': %m", path);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Cursors outlive the run: what a sink has not taken is sent by a later `warder export`. */
static int open_cursors(struct run *run, struct err *err)
{
	if (!run->opt->sinks_n && !run->opt->witness)
		return 0;
	return cursors_open(&run->cursor_fd, run->uid, run->gid, err);
}

int keys_open(int *ret_fd, bool create, struct err *err)
{
	auto_close int fd = -1;
	char path[4096];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/keys", state_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "state directory: path too long");
	if (create) {
		r = dir_make_all(path, 0711);
		if (r < 0)
			return err_set(err, r, "key directory '%s': %m", path);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(err, errno, "key directory '%s': %m", path);
	*ret_fd = take_fd(fd);
	return 0;
}

/* Signed whenever the host has a key, unless told otherwise. */
static int open_keys(struct run *run, struct err *err)
{
	struct err why = { 0 };
	int r;

	if (run->opt->sign == RUN_SIGN_NEVER)
		return 0;
	r = keys_open(&run->keys_fd, false, &why);
	if (r == 0)
		r = keys_public(run->keys_fd, run->host_key, &why);
	if (r == -ENOENT && run->opt->sign == RUN_SIGN_IF_KEY) {
		if (run->keys_fd >= 0)
			close(take_fd(run->keys_fd));
		return 0;
	}
	if (r == -ENOENT)
		return err_set(
			err, ENOENT,
			"the record is to be signed, and this host has no key: warder keys init");
	if (r < 0)
		return err_set(err, r, "%s", err_text(&why));
	run->result->is_signed = true;
	return 0;
}

/* For `warder status`. A session runs without it. */
static void open_status(struct run *run)
{
	auto_buf struct buf text = { 0 };
	char started[RFC3339_NS_LEN + 1];
	struct err err = { 0 };
	struct json j;

	run_status_sweep();
	if (run_status_open(&run->status_fd, run->result->session, run->uid, run->gid, &err) < 0) {
		log_warn("%s: ignoring it, `warder status` will not show this session",
			 err_text(&err));
		return;
	}
	json_init(&j, &text);
	json_object_begin(&j);
	json_key(&j, "name");
	json_strz(&j, run->name);
	json_key(&j, "pid");
	json_u64(&j, (uint64_t)getpid());
	json_key(&j, "started");
	rfc3339_ns(started, clock_real_ns());
	json_strz(&j, started);
	json_key(&j, "backend");
	json_strz(&j, run->spec.backend);
	json_key(&j, "bundle");
	json_strz(&j, run->result->bundle);
	json_key(&j, "command");
	json_array_begin(&j);
	redaction_of_words(run->opt->redactor, run->spec.argv, &j);
	json_array_end(&j);
	json_key(&j, "degraded");
	json_array_begin(&j);
	for (size_t i = 0; i < run->result->degraded_n; i++)
		json_strz(&j, run->result->degraded[i]);
	json_array_end(&j);
	json_object_end(&j);
	/* Too long a command: then it is shown by its sinks and probes only. */
	run_status_write(run->status_fd, "run", (struct str){ text.p, text.n });
	if (control_listen(&run->control_fd, run->status_fd, run->uid, run->gid, &err) < 0)
		log_warn("%s: ignoring it, this session cannot be approved, thawed or killed from "
			 "outside",
			 err_text(&err));
}

/* On the host's network only the host's resolvers may name addresses: a payload can run a DNS server
 * of its own and call any address anything. */
static void read_resolvers(struct run *run)
{
	auto_free char *text = NULL;
	char *save = NULL;

	if (run->spec.net != SANDBOX_NET_HOST ||
	    file_read_at(AT_FDCWD, "/etc/resolv.conf", RESOLV_CONF_MAX, &text, NULL) < 0)
		return;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char word[64];

		if (run->resolvers_n == ENRICH_RESOLVERS_MAX ||
		    sscanf(line, "nameserver %63s", word) != 1)
			continue;
		if (ip_addr_parse(str_from(word), &run->resolvers[run->resolvers_n]) == 0)
			run->resolvers_n++;
	}
}

static void read_places(struct run *run)
{
	struct sandbox_place rows[ENRICH_PLACES_MAX];

	run->places_n = sandbox_plan_places(run->plan, rows, ENRICH_PLACES_MAX);
	for (size_t i = 0; i < run->places_n; i++)
		run->places[i] = (struct enrich_place){ rows[i].inside, rows[i].host };
}

/* Where a watched path lies on the host: by the longest place that holds it, or as it is written, which may
 * be the name that the operator knows it by. */
static int watch_host_path(const struct run *run, const char *text, char *ret, size_t max)
{
	size_t n = strlen(text), longest = 0;
	const char *host = NULL;

	for (size_t i = 0; i < run->places_n; i++) {
		size_t k = strlen(run->places[i].inside);

		if (k < longest || strncmp(text, run->places[i].inside, k) != 0 ||
		    (text[k] && text[k] != '/'))
			continue;
		longest = k;
		host = run->places[i].host;
	}
	n = (size_t)snprintf(ret, max, "%s%s", host ? host : "", host ? text + longest : text);
	return n < max ? 0 : -ENAMETOOLONG;
}

#define WATCH_PATH_MAX 4096

/* The entries, and behind them the paths that they point to. */
static struct watch_entry *watch_entries(const struct run *run)
{
	size_t n = run->opt->watch_n;
	struct watch_entry *v = malloc(n * (sizeof(*v) + WATCH_PATH_MAX) + 1);
	char *at = (char *)(v + n);

	for (size_t i = 0; v && i < n; i++, at += WATCH_PATH_MAX) {
		v[i] = (struct watch_entry){ .text = run->opt->watch[i] };
		if (watch_host_path(run, v[i].text, at, WATCH_PATH_MAX) == 0)
			v[i].host_path = at;
	}
	return v;
}

/* Its filter of system calls it makes itself. */
static int drop_helper(uid_t uid, gid_t gid, struct err *err)
{
	struct confine_files c;
	int r = privdrop(uid, gid, err);

	if (r == 0)
		r = confine_files_begin(&c, err);
	if (r == 0)
		r = confine_files_add_libraries(&c, err);
	return r < 0 ? r : confine_files_end(&c, err);
}

/* Early: there is nothing in this process yet that it should not have, and it gets ready while probes load. */
static int start_egress(struct run *run, struct err *err)
{
	struct egress_options opt = { .policy = sandbox_plan_egress(run->plan),
				      .uid = run->uid,
				      .gid = run->gid,
				      .drop = drop_helper };
	int r;

	if (run->spec.net == SANDBOX_NET_HOST)
		log_warn(
			"UNSAFE: the sandbox shares the host's network; local services and metadata "
			"addresses are open to it");
	if (!opt.policy)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run->egress_fds) < 0)
		return err_set(err, errno, "socket pair: %m");
	opt.events = run->egress_fds[1];
	r = egress_start(&run->egress, &opt, err);
	close(take_fd(run->egress_fds[1]));
	return r;
}

/* What goes on when processes were kept: from the sentry to the engine, unread. */
static int pass_processes(void *arg, int fd)
{
	const struct run *run = arg;

	return engine_send_processes(run->engine_fd, fd);
}

/* They are for the very runtime that wrote them, and for the law they lived under. */
static int check_processes(struct run *run, struct err *err)
{
	const struct snapshots_row *row = run->opt->restore;
	struct sandbox_runtime own;
	int r;

	if (run->opt->processes_fd <= 0)
		return 0;
	r = sandbox_plan_keeps(run->plan, &own, err);
	if (r < 0)
		return err_wrap(err, r, "snapshot '%s'", row->name);
	if (strcmp(own.name, row->runtime) != 0)
		return err_set(
			err, EXDEV,
			"snapshot '%s': its processes go on under '%s' alone, and this is '%s' "
			"(with a command only its files are taken)",
			row->name, row->runtime, own.name);
	if (strcmp(sandbox_plan_hash(run->plan), row->policy) != 0)
		return err_set(
			err, EXDEV,
			"snapshot '%s': its processes go on under the policy that they had "
			"alone, %.12s, and this is %.12s: give the same options (with a command "
			"only its files are taken)",
			row->name, row->policy, sandbox_plan_hash(run->plan));
	return 0;
}

/* Of a sandbox that has a kernel of its own the host's kernel sees little: that one is asked, too. */
static int open_guest(struct run *run, struct err *err)
{
	char path[PATH_MAX];
	int r;

	if (strcmp(run->spec.backend, "gvisor") != 0)
		return 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/guests", run_dir()) >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	r = dir_make_all(run_dir(), 0711);
	if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r < 0)
		return err_set(err, r, "run directory '%s': %m", path);
	gvisor_guest_sweep(path);
	if ((size_t)snprintf(path, sizeof(path), "%s/guests/%s", run_dir(), run->result->session) >=
	    sizeof(path))
		return err_set(err, ENAMETOOLONG, "run directory: path too long");
	r = gvisor_guest_new(&run->guest, path, 0, err);
	if (r < 0)
		return r;
	gvisor_guest_on_processes(run->guest, pass_processes, run);
	sandbox_set_guest(run->sandbox, gvisor_guest_view(run->guest));
	return 0;
}

static int restore_files(struct run *run, struct err *err)
{
	return run->opt->restore ? snapshot_restore(run->sandbox, run->opt->restore,
						    run->opt->restore_fd, err)
				 : 0;
}

/* Those that were loaded ahead, if they are what is wanted. */
static int open_capture(struct run *run, const struct watch_entry *watch, struct err *err)
{
	const struct run_options *o = run->opt;
	const bool gvisor = sandbox_plan_holds(run->plan);

	run->parked = o->parked && !gvisor && !o->watch_n && !o->urgent_bytes && !o->bulk_bytes;
	if (run->parked) {
		run->capture = o->parked;
		run->id = capture_id(run->capture);
		return 0;
	}
	capture_close(o->parked);
	return capture_open(
		&run->capture,
		&(struct capture_options){ .quiet_libbpf = true,
					   .enforce = run->enforces,
					   .gvisor = gvisor,
					   .gvisor_net = run->spec.net != SANDBOX_NET_NONE,
					   .gvisor_mirror = sandbox_plan_mirrors(run->plan),
					   .watch = watch,
					   .watch_n = o->watch_n,
					   .urgent_bytes = o->urgent_bytes,
					   .bulk_bytes = o->bulk_bytes },
		err);
}

int run_prepare(struct run *run, struct err *err)
{
	auto_free struct watch_entry *watch = NULL;
	int r;

	/* What a warder that was killed left behind: nobody else comes by to remove it. */
	r = sandbox_sweep(NULL);
	if (r > 0 && run->opt->hub_fd <= 0) /* an agent's client has nothing to do with it */
		log_info("removed what %d killed sandbox%s left behind", r, r == 1 ? "" : "es");
	r = sandbox_plan_new(&run->plan, &run->spec, err);
	if (r == 0)
		r = check_processes(run, err);
	if (r < 0)
		return r;
	read_places(run);
	r = run_block_signals(run, err);
	if (r == 0)
		r = start_egress(run, err);
	if (r < 0)
		return r;
	if (!run->opt->dry_run_actions)
		r = enforcement_is_wanted(run->opt->rules, NULL, &run->enforces, err);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				 run->proc_fds) < 0)
		r = err_set(err, errno, "socket pair: %m");
	if (r < 0)
		return r;
	watch = watch_entries(run);
	if (!watch)
		return err_set(err, ENOMEM, "watched paths: out of memory");
	r = open_capture(run, watch, err);
	if (r < 0)
		return r;
	read_resolvers(run);
	r = run_load_enforcement(run, err);
	if (r < 0)
		return r;
	r = sandbox_create(&run->sandbox, run->plan, err);
	if (r < 0)
		return r;
	sandbox_set_egress(run->sandbox, run->egress);
	if (run->opt->processes_fd > 0)
		sandbox_set_processes(run->sandbox, run->opt->processes_fd);
	r = open_guest(run, err);
	if (r < 0)
		return r;
	r = restore_files(run, err); /* before it is watched: it is nothing that the payload does */
	if (r < 0)
		return r;
	run_test_probes(run);
	sandbox_notify(run->sandbox, !capture_sees_refused(run->capture),
		       !capture_sees_refused_sockets(run->capture));
	run_collect_degraded(run);
	r = run_watch_sandbox(run, err);
	if (r < 0)
		return r;
	r = open_bundle(run, err);
	if (r < 0)
		return r;
	r = open_cursors(run, err);
	if (r == 0)
		r = open_keys(run, err);
	if (r == 0)
		r = run_open_workspace(run, err);
	if (r < 0)
		return r;
	open_status(run);
	run_look_at_maps(run);
	r = run_start_engine(run, err);
	if (r == 0 && run->opt->restore)
		run_tell_snapshot(run, run->opt->restore, "", true, 0);
	return r;
}

void run_init_names(struct run *run)
{
	struct run_result *res = run->result;

	if (run->opt->session)
		snprintf(res->session, sizeof(res->session), "%s", run->opt->session);
	else
		ulid_make(res->session, clock_real_ns());
	if (gethostname(run->host, sizeof(run->host) - 1) < 0)
		snprintf(run->host, sizeof(run->host), "unknown");
	/* The random part of the id: enough to tell sandboxes of one moment apart. */
	snprintf(run->name, sizeof(run->name), "%s",
		 run->spec.name ? run->spec.name : res->session + ULID_LEN - 8);
	snprintf(res->backend, sizeof(res->backend), "%s", run->spec.backend);
	snprintf(res->image, sizeof(res->image), "%s", run->spec.image ? run->spec.image : "");
	run->spec.session = res->session;
	if (!run->spec.name) /* one that is too long for run->name is refused by the plan */
		run->spec.name = run->name;
	engine_ids(&run->uid, &run->gid);
}
