// SPDX-License-Identifier: Apache-2.0
#include "userspace/pipeline/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/egress/egress.h"
#include "runtime/gvisor/guest.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/base/term.h"
#include "userspace/enrich/enrich.h"
#include "userspace/pipeline/console.h"
#include "userspace/pipeline/control.h"
#include "userspace/pipeline/enforcement.h"
#include "userspace/pipeline/execs.h"
#include "userspace/pipeline/limits.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/relay.h"
#include "userspace/pipeline/reload.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/statement.h"
#include "userspace/pipeline/sampler.h"
#include "userspace/pipeline/snapshot_job.h"
#include "userspace/pipeline/trail.h"
#include "userspace/pipeline/workspace_job.h"

#define SANDBOX_ID	  1 /* where this process is alone in the probes' maps */
#define KILL_TIMEOUT_MS	  10000
#define USAGE_EVERY_NS	  (10 * NSEC_PER_SEC) /* where a metrics sink shows how full the maps are */
#define LOOK_EVERY_NS	  (100 * NSEC_PER_MSEC) /* at limits that are hit all the time */
#define OTHER_FDS	  12			/* polled besides those of the limits */
#define OUTPUT_WAIT_MS	  5000 /* for a reader that takes nothing, once all is over */
#define RESOLV_CONF_MAX	  65536
#define FAMILIES_MAX	  32
#define STATE_DIR_DEFAULT "/var/lib/warder"

/* Signals that a person or a supervisor sends to stop, resize or poke the payload. */
static const int FORWARDED[] = { SIGINT,  SIGTERM, SIGHUP,   SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT };

struct run {
	const struct run_options *opt;
	struct run_result *result;
	struct sandbox_spec spec;
	struct capture *capture;
	struct sandbox_plan *plan;
	struct sandbox *sandbox;
	struct limits limits;
	struct reloader reloader;
	struct sampler sampler;
	struct workspace_job workspace;
	struct snapshot_job snapshot;
	struct capture_usage usage;
	uint64_t next_usage; /* CLOCK_MONOTONIC; 0 = nobody wants to know */
	struct execs execs;
	struct relay *relay;	 /* NULL: stdio goes straight through */
	struct console *console; /* NULL: the payload has no terminal */
	char host[64];
	char name[SANDBOX_NAME_MAX + 1];
	struct ip_addr resolvers[ENRICH_RESOLVERS_MAX];
	size_t resolvers_n;
	struct enrich_place places[ENRICH_PLACES_MAX];
	size_t places_n;
	int bundle_fd, cursor_fd, keys_fd, status_fd, signal_fd, engine_fd;
	int control_fd;	       /* listening; for the engine */
	int null_fd;	       /* in place of stdio, with a terminal; -1 */
	int egress_fds[2];     /* what the network helper tells: the engine's end, the helper's */
	struct egress *egress; /* NULL: none is needed */
	struct gvisor_guest *guest; /* NULL: the host's view is all there is */
	/* CLOCK_MONOTONIC; when its first event is late; 0 = it is not waited for */
	uint64_t guest_end;
	bool armed;	      /* the guest runs: its gVisor is held to what it does then */
	int proc_fds[2];      /* single processes to end: ours, the engine's end */
	int output_fds[2];    /* output to be recorded: ours, the engine's end; -1 */
	bool enforces;	      /* probes were loaded for it */
	bool parked;	      /* probes were loaded long before */
	bool stopped;	      /* the sandbox stands still */
	bool starting;	      /* init has not said yet that the payload runs */
	bool connected;	      /* the payload's output comes out */
	bool told_begun;      /* to the door */
	uint64_t next_secret; /* CLOCK_MONOTONIC; when one is to go; 0 = never */
	uint64_t begun;	      /* CLOCK_MONOTONIC; its life counts from here */
	uint64_t next_end;  /* CLOCK_MONOTONIC; when its life or its idle time is over; 0 = never */
	uint64_t start_end; /* CLOCK_MONOTONIC; when that is late */
	uint8_t host_key[KEY_LEN];
	bool watched;
	uint32_t id; /* of the sandbox, in the probes' maps */
	pid_t engine;
	uid_t uid;
	gid_t gid;
};

const char *state_dir(void)
{
	const char *dir = getenv("WARDER_STATE");

	return dir && *dir ? dir : STATE_DIR_DEFAULT;
}

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

static void add_degraded(struct run_result *res, const char *text)
{
	if (res->degraded_n == RUN_DEGRADED_MAX)
		return;
	snprintf(res->degraded_text[res->degraded_n], sizeof(res->degraded_text[0]), "%s", text);
	res->degraded[res->degraded_n] = res->degraded_text[res->degraded_n];
	res->degraded_n++;
}

/* What loads and attaches may still not fire: each family has to see its own event first. */
static void test_probes(struct run *run)
{
	struct err err = { 0 };

	if (run->parked) /* they have */
		return;
	if (capture_selftest(run->capture, false, NULL, 0, &err) < 0)
		log_warn("%s: this session counts as degraded", err_text(&err));
}

static void collect_degraded(struct run *run)
{
	struct capture_family_state rows[FAMILIES_MAX];
	size_t n = capture_families(run->capture, rows, FAMILIES_MAX);
	const char *const *layers;
	char text[64];

	for (size_t i = 0; i < n; i++) {
		if (rows[i].ok)
			continue;
		snprintf(text, sizeof(text), "probe.%.50s", rows[i].name);
		add_degraded(run->result, text);
	}
	n = sandbox_plan_degraded(run->plan, &layers);
	for (size_t i = 0; i < n; i++)
		add_degraded(run->result, layers[i]);
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

static struct rule_session rule_session(const struct run *run)
{
	return (struct rule_session){ .backend = run->spec.backend,
				      .tier = run->capture ? capture_tier(run->capture) : NULL,
				      .tenant = run->spec.tenant,
				      .policy = sandbox_plan_hash(run->plan) };
}

static int load_enforcement(struct run *run, struct err *err)
{
	const struct rule_session rs = rule_session(run);

	if (!run->opt->rules || !run->enforces)
		return 0;
	return enforcement_load(run->capture, run->opt->rules, &rs, err);
}

static int watch_sandbox(struct run *run, struct err *err)
{
	struct sandbox_cfg cfg = { .id = run->id, .pressure = run->opt->pressure };
	int r;

	if (sandbox_plan_holds(run->plan))
		cfg.flags |= SANDBOX_F_HELD;
	if (run->opt->rules && !run->opt->dry_run_actions)
		cfg.kill_escape = ruleset_kernel_kill_escapes(run->opt->rules);
	cfg.enforce = run->enforces ? ENFORCEMENT_SET : 0;
	r = capture_watch(run->capture, sandbox_cgroup_fd(run->sandbox), &cfg, err);
	if (r == 0)
		run->watched = true;
	return r;
}

/* Walking tables is for those who look at them. */
static void look_at_maps(struct run *run)
{
	struct err err = { 0 };
	bool wanted = false;

	for (size_t i = 0; i < run->opt->sinks_n; i++)
		wanted |= !strcmp(run->opt->sinks[i].class->name, "metrics");
	if (!wanted)
		return;
	if (capture_usage(getpid(), &run->usage, &err) < 0)
		log_warn("%s: ignoring it, the metrics will not show it", err_text(&err));
	else
		run->next_usage = clock_ns(CLOCK_MONOTONIC) + USAGE_EVERY_NS;
}

static void tell_usage(struct run *run, uint64_t now)
{
	if (!run->next_usage || now < run->next_usage)
		return;
	capture_usage_again(&run->usage);
	engine_send_usage(run->engine_fd, &run->usage);
	run->next_usage = now + USAGE_EVERY_NS;
}

static int start_engine(struct run *run, struct err *err)
{
	const char *secrets[SANDBOX_SECRETS_MAX];
	const struct sandbox_spec *spec = &run->spec;
	struct run_result *res = run->result;
	struct clock_state clock;
	int r;
	struct engine_options eo = {
		.capture = run->capture,
		.rules = run->opt->rules,
		.bundle = res->bundle,
		.bundle_fd = run->bundle_fd,
		.cursor_dirfd = run->cursor_fd,
		.keys_dirfd = run->keys_fd,
		.status_dirfd = run->status_fd,
		.control_fd = run->control_fd,
		.egress_fd = run->egress_fds[0],
		.guest_fds = { gvisor_guest_listen_fd(run->guest),
			       gvisor_guest_news_fd(run->guest) },
		.guest_mirror = sandbox_plan_mirrors(run->plan),
		.guest_net = run->spec.net != SANDBOX_NET_NONE,
		.output_fd = -1,
		.output_limit = run->opt->output_limit,
		.no_workspace = run->opt->workspace == RUN_WORKSPACE_IGNORED,
		.owner = getuid(),
		.sinks = run->opt->sinks,
		.sinks_n = run->opt->sinks_n,
		.witness = run->opt->witness,
		.redactor = run->opt->redactor,
		.usage = run->next_usage ? &run->usage : NULL,
		.pressure = run->opt->pressure,
		.when_full = run->opt->when_full,
		.drain_ms = run->opt->drain_ms,
		.uid = run->uid,
		.gid = run->gid,
		.session =
			{
				.sandbox_id = run->id,
				.session = res->session,
				.name = run->name,
				.tenant = spec->tenant,
				.host = run->host,
				.tier = capture_tier(run->capture),
				.backend = spec->backend,
				.policy = sandbox_plan_hash(run->plan),
				.clock = &clock,
				.baseline = run->opt->baseline,
				.memory_limit = spec->limits.memory,
				.pids_limit = spec->limits.pids,
				.resolvers = run->resolvers,
				.resolvers_n = run->resolvers_n,
				.env_values = run->opt->env_values,
				.places = run->places,
				.places_n = run->places_n,
				.watch = run->opt->watch,
				.watch_n = run->opt->watch_n,
				.real_offset_ns = (int64_t)(clock_real_ns() - clock_boot_ns()),
				.target =
					{
						.kill_fd = sandbox_kill_fd(run->sandbox),
						.freeze_fd = sandbox_freeze_fd(run->sandbox),
						.events_fd = sandbox_events_fd(run->sandbox),
						.proc_fd = run->proc_fds[1],
					},
				.hold = run->opt->hold,
				.dry_run = run->opt->dry_run_actions,
			},
		.record =
			{
				.sandbox_id = run->id,
				.backend = spec->backend,
				.name = run->name,
				.tenant = spec->tenant,
				.policy = sandbox_plan_hash(run->plan),
				.image = sandbox_plan_image(run->plan),
				.host = run->host,
				.command = spec->argv,
				.degraded = res->degraded,
				.degraded_n = res->degraded_n,
				.secrets = secrets,
				.secrets_n = spec->secrets_n,
			},
	};

	for (size_t i = 0; i < spec->secrets_n; i++)
		secrets[i] = spec->secrets[i].name;

	if (!run->opt->output_unrecorded) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, run->output_fds) < 0)
			return err_set(err, errno, "recording output: %m");
		eo.output_fd = run->output_fds[1];
	}
	clock_state_read(&clock);
	memcpy(eo.host_key, run->host_key, sizeof(eo.host_key));
	r = engine_start(&run->engine, &run->engine_fd, &eo, err);
	if (run->guest)
		gvisor_guest_given(run->guest);
	if (run->output_fds[1] >= 0)
		close(take_fd(run->output_fds[1]));
	return r;
}

static int block_signals(struct run *run, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(FORWARDED); i++)
		sigaddset(&set, FORWARDED[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	run->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signal_fd < 0 ? err_set(err, errno, "signalfd: %m") : 0;
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

/* Early: there is nothing in this process yet that it should not have, and it gets ready while probes load. */
static int start_egress(struct run *run, struct err *err)
{
	struct egress_options opt = { .policy = sandbox_plan_egress(run->plan),
				      .uid = run->uid,
				      .gid = run->gid,
				      .drop = privdrop };
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
	sandbox_set_guest(run->sandbox, gvisor_guest_view(run->guest));
	return 0;
}

/* What of the operator's the payload may write, and its state now. */
static int open_workspace(struct run *run, struct err *err)
{
	struct sandbox_place rows[ENRICH_PLACES_MAX];
	size_t n = sandbox_plan_places(run->plan, rows, ENRICH_PLACES_MAX);

	if (run->opt->workspace == RUN_WORKSPACE_IGNORED)
		return 0;
	run->workspace.keep_texts = run->opt->workspace == RUN_WORKSPACE_TEXTS;
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].is_shared)
			continue;
		if (workspace_job_add(&run->workspace, rows[i].inside, rows[i].host) < 0)
			log_warn("'%s' cannot be looked at: ignoring it, what changes there will "
				 "not be told: %s",
				 rows[i].host, strerror(errno));
	}
	return workspace_job_before(&run->workspace, run->uid, run->gid, err);
}

static void end_workspace(struct run *run)
{
	auto_close int items = -1;
	struct err err = { 0 };

	if (workspace_job_end(&run->workspace, &items, &err) < 0)
		log_warn("%s", err_text(&err));
	else
		engine_send_workspace(run->engine_fd, items);
}

/* At the end: waits for it. */
static void compare_workspace(struct run *run, enum wire_scan_when when)
{
	struct err err = { 0 };

	if (run->opt->workspace == RUN_WORKSPACE_IGNORED)
		return;
	if (workspace_job_busy(&run->workspace)) {
		if (when == WIRE_SCAN_DEMAND)
			return; /* who asks gets the result of the one under way */
		end_workspace(run);
	}
	workspace_job_own(&run->workspace, sandbox_workspace_fd(run->sandbox));
	if (workspace_job_begin(&run->workspace, when, run->uid, run->gid, &err) < 0)
		log_warn("%s", err_text(&err));
	else if (when == WIRE_SCAN_STOP || workspace_job_fd(&run->workspace) < 0)
		end_workspace(run);
}

/* ---- snapshots ---- */

static void tell_snapshot(struct run *run, const struct snapshots_row *row, const char *who,
			  bool is_restore, int r)
{
	auto_buf struct buf rec = { 0 };

	if (record_snapshot(&rec, run->id, row, who, is_restore, r) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

static int begin_snapshot(struct run *run, const char *name, uint64_t max, struct err *err)
{
	if (run->starting)
		return err_set(err, EAGAIN, "the sandbox does not run yet");
	if (run->opt->host_workspace)
		return err_set(err, EOPNOTSUPP,
			       "snapshot: /workspace is a directory of the host: it is not the "
			       "sandbox's to copy");
	return snapshot_job_begin(&run->snapshot, run->sandbox,
				  run->spec.tenant ? run->spec.tenant : "default", name, max,
				  run->uid, run->gid, err);
}

/* By somebody at the other end of the hub. */
static void want_snapshot(void *arg, uint32_t id, const char *name, uint64_t max, const char *who)
{
	struct snapshots_row row = { 0 };
	struct run *run = arg;
	struct err err = { 0 };
	int r = begin_snapshot(run, name, max, &err);

	if (r == 0) {
		run->snapshot.id = id;
		snprintf(run->snapshot.who, sizeof(run->snapshot.who), "%s", who);
		return;
	}
	execs_answer(&run->execs, id, r, err_text(&err));
	if (run->snapshot.busy || run->starting)
		return;
	engine_send_thaw(run->engine_fd);
	snprintf(row.name, sizeof(row.name), "%s", tenant_dir_name_is_good(name) ? name : "");
	tell_snapshot(run, &row, who, false, r);
}

static void end_snapshot(struct run *run)
{
	struct snapshots_row *row = &run->snapshot.file.row;
	auto_buf struct buf text = { 0 };
	struct err err = { 0 };
	struct json j;
	int r;

	snprintf(row->session, sizeof(row->session), "%s", run->result->session);
	snprintf(row->sandbox, sizeof(row->sandbox), "%s", run->name);
	snprintf(row->policy, sizeof(row->policy), "%s", sandbox_plan_hash(run->plan));
	r = snapshot_job_end(&run->snapshot, run->sandbox, &err);
	engine_send_thaw(run->engine_fd);
	tell_snapshot(run, row, run->snapshot.who, false, r);
	json_init(&j, &text);
	snapshots_json(&j, row);
	buf_addc(&text, 0);
	if (r < 0)
		execs_answer(&run->execs, run->snapshot.id, r, err_text(&err));
	else
		execs_answer(&run->execs, run->snapshot.id, 0, text.failed ? "null" : text.p);
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

static int prepare(struct run *run, struct err *err)
{
	auto_free struct watch_entry *watch = NULL;
	int r;

	/* What a warder that was killed left behind: nobody else comes by to remove it. */
	r = sandbox_sweep(NULL);
	if (r > 0 && run->opt->hub_fd <= 0) /* an agent's client has nothing to do with it */
		log_info("removed what %d killed sandbox%s left behind", r, r == 1 ? "" : "es");
	r = sandbox_plan_new(&run->plan, &run->spec, err);
	if (r < 0)
		return r;
	read_places(run);
	r = block_signals(run, err);
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
	r = load_enforcement(run, err);
	if (r < 0)
		return r;
	r = sandbox_create(&run->sandbox, run->plan, err);
	if (r < 0)
		return r;
	sandbox_set_egress(run->sandbox, run->egress);
	r = open_guest(run, err);
	if (r < 0)
		return r;
	r = restore_files(run, err); /* before it is watched: it is nothing that the payload does */
	if (r < 0)
		return r;
	test_probes(run);
	sandbox_notify(run->sandbox, !capture_sees_refused(run->capture),
		       !capture_sees_refused_sockets(run->capture));
	collect_degraded(run);
	r = watch_sandbox(run, err);
	if (r < 0)
		return r;
	r = open_bundle(run, err);
	if (r < 0)
		return r;
	r = open_cursors(run, err);
	if (r == 0)
		r = open_keys(run, err);
	if (r == 0)
		r = open_workspace(run, err);
	if (r < 0)
		return r;
	open_status(run);
	look_at_maps(run);
	r = start_engine(run, err);
	if (r == 0 && run->opt->restore)
		tell_snapshot(run, run->opt->restore, "", true, 0);
	return r;
}

/* A sandbox may begin without a command, and wait for further ones. */
static bool has_first(const struct run *run)
{
	return run->spec.argv[0];
}

/* A person who wants it to end must not wait for a program that cannot hear it. */
static bool ends_stopped(const struct run *run, uint32_t sig)
{
	return (run->stopped || !has_first(run)) &&
	       (sig == SIGINT || sig == SIGTERM || sig == SIGQUIT || sig == SIGHUP);
}

/* True: it was ended. */
static bool forward_signals(struct run *run)
{
	struct signalfd_siginfo si;

	while (read(run->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		/* Somebody's SIGHUP is a request to load rule files again; one from the kernel says that the
		 * terminal is gone, which is the payload's business. */
		if (si.ssi_signo == SIGHUP && si.ssi_code != SI_KERNEL &&
		    reloader_ask(&run->reloader, "SIGHUP"))
			continue;
		if (run->console && si.ssi_signo == SIGWINCH) {
			console_resize(run->console);
			continue;
		}
		if (run->console && si.ssi_signo == SIGCONT)
			term_raw_again();
		if (ends_stopped(run, si.ssi_signo)) {
			sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
			return true;
		}
		sandbox_signal(run->sandbox, (int)si.ssi_signo);
	}
	return false;
}

/* ---- other rules while it runs ---- */

#define LATE_KILLS \
	"kills are decided in user space: this session began without a rule for the kernel's tables"

/* The kernel's part goes first: what cannot be kept is not promised. */
static int enforce_others(struct run *run, const struct ruleset *rules, bool *ret_late,
			  struct err *err)
{
	const struct rule_session rs = rule_session(run);
	bool wanted;
	int r;

	if (run->opt->dry_run_actions)
		return 0;
	r = enforcement_is_wanted(rules, &rs, &wanted, err);
	if (r < 0)
		return r;
	if (run->enforces)
		r = enforcement_load(run->capture, rules, &rs, err);
	else if (wanted) /* kills are left to user space, a deny would be a lie */
		r = enforcement_check(run->capture, rules, &rs, err);
	*ret_late = wanted && !run->enforces;
	if (r == 0)
		r = capture_set_kills(run->capture, sandbox_cgroup_fd(run->sandbox),
				      ruleset_kernel_kill_escapes(rules), err);
	return r;
}

static void reload_rules(struct run *run)
{
	struct engine_rules msg = { 0 };
	struct reloader_result res;
	bool late = false;

	if (!reloader_run(&run->reloader, &res))
		return;
	snprintf(msg.why, sizeof(msg.why), "%s", res.why);
	if (res.rules && enforce_others(run, res.rules, &late, &res.err) < 0) {
		close(take_fd(res.texts_fd));
		res.rules = NULL;
	}
	if (res.rules && late) {
		snprintf(msg.why, sizeof(msg.why), "%s; %s", res.why, LATE_KILLS);
		log_warn("rules: %s", LATE_KILLS);
	}
	if (!res.rules)
		snprintf(msg.text, sizeof(msg.text), "%s", err_text(&res.err));
	msg.actions = run->opt->rule_files->actions;
	if (res.rules)
		sampler_switch(&run->sampler, ruleset_uses(res.rules, "usage."));
	engine_send_rules(run->engine_fd, res.texts_fd, &msg);
	if (res.texts_fd >= 0)
		close(res.texts_fd);
}

/* ---- what the engine asks for ---- */

/* Text from a process that may have been taken over: one line, nothing for the terminal. */
static void say_stopped(struct run *run, struct engine_msg *msg)
{
	msg->text[sizeof(msg->text) - 1] = 0;
	for (char *p = msg->text; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	run->stopped = msg->text[0];
	run->snapshot.let_go |= !run->stopped;
	run->start_end = clock_ns(CLOCK_MONOTONIC) + SANDBOX_START_MS * NSEC_PER_MSEC;
	if (run->console)
		console_frozen(run->console, run->stopped);
	if (run->stopped)
		log_warn("the sandbox is stopped: %s", msg->text);
	else
		log_info("the sandbox goes on");
}

static void start_sampler(struct run *run)
{
	uint64_t period = run->opt->usage_period_ns;

	run->sampler = (struct sampler){
		.sandbox = run->sandbox,
		.capture = run->capture,
		.sandbox_id = run->id,
		.period_ns = period ? MAX(period, USAGE_PERIOD_MIN_NS) : USAGE_PERIOD_DEFAULT_NS,
	};
	if (run->opt->rules && ruleset_uses(run->opt->rules, "usage."))
		sampler_switch(&run->sampler, true);
}

static void tell_sample(struct run *run)
{
	struct wire_usage rec;

	if (!sampler_take(&run->sampler, &rec))
		return;
	record_usage(&rec, run->id);
	engine_send_record(run->engine_fd, &rec, sizeof(rec));
}

static void hear_engine(struct run *run)
{
	struct engine_msg msg;

	while (engine_next(run->engine_fd, &msg)) {
		if (msg.type == ENGINE_RESUME) {
			capture_resume(run->capture);
		} else if (msg.type == ENGINE_RELOAD) {
			reloader_ask(&run->reloader, "operator");
		} else if (msg.type == ENGINE_WORKSPACE) {
			compare_workspace(run, WIRE_SCAN_DEMAND);
		} else if (msg.type == ENGINE_STOPPED) {
			say_stopped(run, &msg);
		} else if (msg.type == ENGINE_RULES_DONE) {
			reloader_answered(&run->reloader);
			msg.rules.text[sizeof(msg.rules.text) - 1] = 0;
			if (msg.rules.ok)
				log_info("%s", msg.rules.text);
			else
				log_warn("%s", msg.rules.text);
		}
	}
}

/* End processes for rules with `scope: process`. That they are of this sandbox is for us to check. */
static void hear_kills(struct run *run)
{
	struct action_proc a;

	while (recv(run->proc_fds[0], &a, sizeof(a), 0) == (ssize_t)sizeof(a)) {
		a.result = capture_kill_process(run->capture, run->id, a.tgid, a.start);
		(void)!send(run->proc_fds[0], &a, sizeof(a), MSG_NOSIGNAL);
	}
}

static void tell_limit(void *arg, const struct limit_hit *hit)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };

	if (record_limit(&rec, run->id, hit) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
	run->result->limits_hit |= 1u << hit->type;
}

/* The sandbox goes on without it: that is no limit it has hit. */
static void tell_secret_gone(void *arg, const struct sandbox_secret *gone)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };
	char place[sizeof(SECRET_DIR) + 1 + SANDBOX_SECRET_NAME_MAX];
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TTL,
		.target = place,
		.value = gone->ttl_ns,
		.used = gone->ttl_ns,
		.count = 1,
	};

	snprintf(place, sizeof(place), "%s/%s", SECRET_DIR, gone->name);
	if (record_limit(&rec, run->id, &hit) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

static void hit_timeout(struct run *run)
{
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TIMEOUT,
		.value = run->spec.limits.timeout_ns,
		.used = run->spec.limits.timeout_ns,
		.count = 1,
		.killed = true,
	};

	run->result->facts.timed_out = true;
	tell_limit(run, &hit);
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
}

/* One of the payload's streams has reached the cap. True when that is to end it. */
static bool hit_output(struct run *run)
{
	struct limit_hit hit = {
		.type = WIRE_LIMIT_OUTPUT,
		.value = run->opt->output_max,
		.count = 1,
		.killed = run->opt->output_kill,
	};
	eventfd_t n;

	eventfd_read(relay_fd(run->relay), &n);
	hit.target = relay_hit(run->relay, &hit.used);
	if (!hit.target)
		return false;
	tell_limit(run, &hit);
	if (!hit.killed)
		return false;
	run->result->facts.output_killed = true;
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
	return true;
}

/* What its terminal says besides what is typed. True: it was ended. */
static bool hear_console(struct run *run)
{
	switch (console_event(run->console)) {
	case CONSOLE_INTERRUPT:
		if (!ends_stopped(run, SIGINT))
			break;
		sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
		return true;
	case CONSOLE_GONE:
		sandbox_signal(run->sandbox, SIGHUP);
		break;
	case CONSOLE_NOTHING:
		break;
	}
	return false;
}

/* Its time begins with the payload: one that was stopped before init could say so runs, too. */
static bool has_begun(const struct run *run)
{
	return !run->starting || run->stopped;
}

static void end_life(struct run *run, bool *fact, const char *what, uint64_t limit)
{
	const struct limit_hit hit = {
		.type = WIRE_LIMIT_TIMEOUT,
		.target = what,
		.value = limit,
		.used = limit,
		.count = 1,
		.killed = true,
	};

	*fact = true;
	tell_limit(run, &hit);
	sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
}

/* Its life, its idle time, or whom it ran for: true when one is over. */
static bool look_at_life(struct run *run, uint64_t now)
{
	struct run_facts *facts = &run->result->facts;
	uint64_t ttl = run->opt->ttl_ns, idle = run->opt->idle_ns;

	run->next_end = 0;
	if (run->execs.gone) {
		facts->hung_up = true;
		sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
		return true;
	}
	execs_look_idle(&run->execs, has_first(run), now);
	if (ttl && now - run->begun >= ttl) {
		end_life(run, &facts->ttl_over, "ttl", ttl);
		return true;
	}
	if (idle && run->execs.idle_ns && now - run->execs.idle_ns >= idle) {
		end_life(run, &facts->idle, "idle", idle);
		return true;
	}
	if (ttl)
		run->next_end = run->begun + ttl;
	if (idle && run->execs.idle_ns &&
	    (!run->next_end || run->execs.idle_ns + idle < run->next_end))
		run->next_end = run->execs.idle_ns + idle;
	return false;
}

/* By somebody at the other end of the hub. */
static void signal_first(void *arg, int sig)
{
	struct run *run = arg;

	if (ends_stopped(run, (uint32_t)sig))
		run->execs.gone = true;
	else
		sandbox_signal(run->sandbox, sig);
}

static int wait_timeout(const struct run *run, uint64_t end, uint64_t now, uint64_t look)
{
	int limits = limits_timeout(&run->limits), reload = reloader_timeout(&run->reloader);
	int sample = sampler_timeout(&run->sampler), work = workspace_job_timeout(&run->workspace);
	uint64_t ms = 60000;

	if (end)
		ms = MIN(ms, (end - now) / NSEC_PER_MSEC + 1);
	if (!has_begun(run))
		ms = MIN(ms, SANDBOX_START_MS);
	if (limits >= 0)
		ms = MIN(ms, (uint64_t)limits);
	if (look > now) /* counts changed, but they were looked at just now */
		ms = MIN(ms, (look - now) / NSEC_PER_MSEC + 1);
	if (reload >= 0)
		ms = MIN(ms, (uint64_t)reload);
	if (sample >= 0)
		ms = MIN(ms, (uint64_t)sample);
	if (work >= 0)
		ms = MIN(ms, (uint64_t)work);
	if (run->next_secret) /* it is later than `now` */
		ms = MIN(ms, (run->next_secret - now) / NSEC_PER_MSEC + 1);
	if (run->guest_end)
		ms = MIN(ms, run->guest_end > now ? (run->guest_end - now) / NSEC_PER_MSEC + 1 : 0);
	if (run->next_end) /* so is this */
		ms = MIN(ms, (run->next_end - now) / NSEC_PER_MSEC + 1);
	if (run->next_usage)
		ms = MIN(ms,
			 run->next_usage > now ? (run->next_usage - now) / NSEC_PER_MSEC + 1 : 0);
	return end || !has_begun(run) || limits >= 0 || look > now || reload >= 0 || sample >= 0 ||
			       work >= 0 || run->next_usage || run->next_secret || run->next_end ||
			       run->guest_end
		       ? (int)ms
		       : -1;
}

/* -ENOENT and the like of the command itself, in words and as the shell's exit code. */
static int start_failed(struct run *run, int r, struct err *err)
{
	struct run_facts *facts = &run->result->facts;

	switch (r) {
	case -ENOENT:
		facts->exit_code = 127;
		if (run->spec.cwd)
			return err_set(err, ENOENT,
				       "command '%s' or directory '%s' not found in the sandbox",
				       run->spec.argv[0], run->spec.cwd);
		return err_set(err, ENOENT, "command '%s' not found in the sandbox",
			       run->spec.argv[0]);
	case -EACCES:
	case -ENOEXEC:
		facts->exit_code = 126;
		return err_set(err, r, "command '%s' cannot be executed: %m", run->spec.argv[0]);
	default:
		facts->internal = true;
		return err_wrap(err, r, "starting the sandbox");
	}
}

/* Nobody writes any more: the true counts. */
static void take_output(struct run *run)
{
	struct run_facts *facts = &run->result->facts;
	struct relay_counts counts;

	if (run->console)
		console_stop(run->console);
	if (!run->relay)
		return;
	relay_finish(run->relay, OUTPUT_WAIT_MS, &counts);
	facts->stdout_bytes = counts.out;
	facts->stderr_bytes = counts.err;
	facts->truncated = counts.cut;
	console_free(take_ptr(run->console), facts->signal != 0);
}

/* The beginning and the end of each record are bound into the host's own chain: one that goes missing later is
 * missed, also when nobody could tell of its end. */
static void tell_host_log(const struct run *run, const char *reason)
{
	const struct run_result *res = run->result;
	struct err err = { 0 };
	int r;

	if (run->opt->unlogged)
		return;
	r = reason ? trail_add_session(run->bundle_fd, res->session, res->bundle, reason, &err)
		   : trail_add_start(res->session, res->bundle, &err);
	if (r < 0 &&
	    (r != -ENOENT || !run->opt->session_dir)) /* no state directory, none asked for */
		log_warn("the session could not be written to the host log: %s", err_text(&err));
}

static void end_egress(struct run *run)
{
	egress_free(take_ptr(run->egress));
}

/* Where the payload's output comes out, and its three descriptors: pipes and our stdin, or nothing, where it gets a
 * terminal of its own instead. */
static int open_output(struct run *run, int stdio[3], struct err *err)
{
	uint64_t cap = run->opt->output_max ? run->opt->output_max : RELAY_ALL;

	stdio[0] = STDIN_FILENO;
	if (!run->spec.tty && has_first(run) && run->opt->stderr_fd)
		return relay_new_on(&run->relay, cap,
				    (const int[]){ STDOUT_FILENO, run->opt->stderr_fd }, stdio + 1,
				    err);
	if (!run->spec.tty && has_first(run))
		return relay_new(&run->relay, cap, stdio + 1, err);
	run->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (run->null_fd < 0)
		return err_set(err, errno, "'/dev/null': %m");
	stdio[0] = stdio[1] = stdio[2] = run->null_fd;
	if (!has_first(run))
		return 0;
	return relay_new_tty(&run->relay, cap, err);
}

/* The payload runs: its terminal and ours become one. */
static int start_output(struct run *run, struct err *err)
{
	int record = run->output_fds[0], r = 0;
	struct console_options co = {
		.in = STDIN_FILENO,
		.master = sandbox_tty_fd(run->sandbox),
		.copy = record,
		.record_input = run->opt->input_recorded,
	};

	if (!has_first(run))
		return 0;
	if (run->spec.tty)
		r = console_start(&run->console, &co, err);
	if (r == 0 && run->spec.tty)
		r = relay_tty(run->relay, co.master, err);
	if (r == 0 && record >= 0)
		relay_copy_to(run->relay, take_fd(run->output_fds[0]));
	return r < 0 ? r : relay_start(run->relay, err);
}

/* From the first moment on, but for a terminal: that is the payload's when there is one. */
static int connect_output(struct run *run, struct err *err)
{
	if (run->connected || (run->spec.tty && has_first(run) &&
			       (!has_begun(run) || sandbox_tty_fd(run->sandbox) < 0)))
		return 0;
	run->connected = true;
	return start_output(run, err);
}

/* Who answers for what the filter refuses is the engine alone: when it ends, nobody is left who could answer. */
static void pass_listener(struct run *run)
{
	auto_close int listener = sandbox_take_notify(run->sandbox);
	int e = sandbox_notify_refused(run->sandbox);
	char why[128] = "";

	if (e) {
		snprintf(why, sizeof(why),
			 "seccomp.notify: %s: attempts that no probe sees are refused and not told",
			 e == EBUSY ? "under another listener already" : strerror(e));
		log_warn("%s", why);
		add_degraded(run->result, "seccomp.notify");
	}
	if (listener >= 0 || e)
		engine_send_notify(run->engine_fd, listener, why);
}

/* Something was said from inside. True when nothing more is to be waited for. */
static bool hear_sandbox(struct run *run, int *ret_start, struct err *err)
{
	int r;

	if (run->starting) {
		r = sandbox_follow(run->sandbox, 0, err);
		pass_listener(run);
		if (r == SANDBOX_STARTING)
			return false;
		run->starting = r < 0;
		if (r == SANDBOX_RUNNING)
			r = connect_output(run, err);
		if (r < 0) {
			*ret_start = start_failed(run, r, err);
			return true;
		}
		execs_started(&run->execs);
		tell_host_log(run, NULL);
	}
	return sandbox_dispatch(run->sandbox) != SANDBOX_RUNNING;
}

/* GVisor says nothing when it could not set up what it is to tell, and runs on: who tells nothing is not let run.
 * True: it is too late. */
static bool look_at_guest(struct run *run, uint64_t now, int *fd, struct err *err)
{
	bool closed = false;

	if (!run->guest || *fd < 0)
		return false;
	if (gvisor_guest_has_started(run->guest, &closed) && !run->armed) {
		run->armed = true;
		if (capture_arm(run->capture, sandbox_cgroup_fd(run->sandbox), err) < 0)
			return true;
	}
	if (run->armed || run->stopped) {
		run->guest_end = 0;
		if (!run->stopped || closed)
			*fd = -1;
		return false;
	}
	if (run->starting)
		return false;
	if (!run->guest_end)
		run->guest_end = now + GVISOR_FIRST_MS * NSEC_PER_MSEC;
	if (closed || now >= run->guest_end) {
		err_set(err, ETIMEDOUT, "gVisor tells nothing of its guest");
		return true;
	}
	return false;
}

static void tell_begun(struct run *run, int r, const struct err *why)
{
	const struct run_door *door = run->opt->door;

	if (door && !run->told_begun)
		door->began(door->arg, r, why);
	run->told_begun = true;
}

/* Until the payload has ended, the time is over, or the engine has died: it is the one that can stop
 * a misbehaving sandbox, so without it nothing may go on. The payload is judged from its first act on, before init
 * says that it runs: that is one more thing to wait for, and none to wait for alone. A start that failed: -errno. */
static int wait_for_end(struct run *run, struct err *err)
{
	uint64_t limit = run->spec.limits.timeout_ns, end = 0, look = 0;
	struct pollfd fds[OTHER_FDS + LIMITS_FDS] = {
		{ .fd = sandbox_fd(run->sandbox), .events = POLLIN },
		{ .fd = run->signal_fd, .events = POLLIN },
		{ .fd = run->engine_fd, .events = POLLIN },
		{ .fd = run->relay ? relay_fd(run->relay) : -1, .events = POLLIN },
		{ .fd = run->reloader.inotify_fd, .events = POLLIN },
		{ .fd = run->proc_fds[0], .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = -1, .events = POLLIN },
		{ .fd = gvisor_guest_fd(run->guest), .events = POLLIN },
		{ .fd = run->opt->door ? run->opt->door->fd : -1, .events = POLLIN },
	};
	int start = 0;

	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC);
		bool changed = false;

		start = connect_output(run, err);
		if (start < 0)
			return start_failed(run, start, err);
		if (has_begun(run))
			tell_begun(run, 0, NULL);
		if (look_at_life(run, now))
			return 0;
		if (has_begun(run))
			run->next_secret =
				sandbox_expire_secrets(run->sandbox, now, tell_secret_gone, run);
		if (!has_begun(run) && now >= run->start_end)
			return start_failed(run, err_set(err, ETIMEDOUT, "sandbox set-up: %m"),
					    err);
		if (limit && !end && has_begun(run))
			end = now + limit;
		if (end && now >= end) {
			hit_timeout(run);
			return 0;
		}
		if (look_at_guest(run, now, &fds[10].fd, err))
			return start_failed(run, -ETIMEDOUT, err);
		fds[1].fd =
			has_begun(run) ? run->signal_fd : -1; /* there is nobody yet to take one */
		fds[7].fd = run->console ? console_fd(run->console) : -1;
		fds[8].fd = run->execs.hub;
		fds[9].fd = snapshot_job_fd(&run->snapshot);
		/* While they wait to be looked at again, they must not wake us. */
		limits_poll(&run->limits, fds + OTHER_FDS);
		fds[6].fd = workspace_job_fd(&run->workspace);
		for (int i = 0; now < look && i < LIMITS_FDS; i++)
			fds[OTHER_FDS + i].fd = -1;
		if (poll(fds, ARRAY_SIZE(fds), wait_timeout(run, end, now, look)) < 0 &&
		    errno != EINTR)
			return 0;
		for (int i = 0; i < LIMITS_FDS; i++)
			changed |= fds[OTHER_FDS + i].revents != 0;
		if (changed || limits_timeout(&run->limits) == 0) {
			capture_count_missed(run->capture);
			limits_look(&run->limits, tell_limit, run);
			look = clock_ns(CLOCK_MONOTONIC) + LOOK_EVERY_NS;
		}
		tell_usage(run, clock_ns(CLOCK_MONOTONIC));
		if (fds[3].revents && hit_output(run))
			return 0;
		if (fds[1].revents && forward_signals(run))
			return 0;
		if (fds[7].revents && hear_console(run))
			return 0;
		if (fds[0].revents && hear_sandbox(run, &start, err))
			return start;
		if (fds[11].revents)
			run->opt->door->hear(run->opt->door->arg, signal_first, run);
		if (fds[8].revents)
			execs_hear(&run->execs, signal_first, run);
		if (fds[9].revents && snapshot_job_fd(&run->snapshot) >= 0)
			end_snapshot(run);
		if (fds[4].revents)
			reloader_look(&run->reloader);
		reload_rules(run);
		if (fds[5].revents)
			hear_kills(run);
		tell_sample(run);
		if (workspace_job_fd(&run->workspace) >= 0 &&
		    (fds[6].revents || workspace_job_timeout(&run->workspace) == 0))
			end_workspace(run);
		if (fds[2].revents)
			hear_engine(run);
		if (fds[2].revents & (POLLHUP | POLLERR)) {
			run->result->facts.internal = true;
			return 0;
		}
	}
}

/* The sentry made a call that its own filter forbids: gVisor's code does not. */
#define GUEST_END_MS 20000

/* A guest that is over before look_at_guest has lost its patience has not run unseen either. */
static int check_told(struct run *run, struct err *err)
{
	int r;

	if (!run->guest || run->stopped)
		return 0;
	r = gvisor_guest_wait_started(run->guest, GUEST_END_MS, err);
	if (r < 0)
		err_wrap(err, r, "gVisor told nothing of its guest");
	return r < 0 ? start_failed(run, r, err) : 0;
}

/* The sentry ends with its guest, and at times before it has answered who waits for that. It says so by its exit code, as
 * `runsc run` has it; but it ends with the same codes when it panics, so the guest's own end must have been told, too. */
static bool ended_well(struct run *run, struct sandbox_result *sr)
{
	int status, code, sig;

	if (sr->death_signal || !run->guest ||
	    !gvisor_guest_has_ended(run->guest, GUEST_END_MS, &status))
		return false;
	sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	code = sig ? 128 + sig : WEXITSTATUS(status);
	if (code != sr->death_code)
		return false;
	sr->died = false;
	sr->exit_code = code;
	sr->signal = sig;
	return true;
}

static void tell_forbidden(struct run *run)
{
	struct wire_escape rec;

	record_escape(&rec, run->id, WIRE_ESCAPE_SECCOMP);
	engine_send_record(run->engine_fd, &rec, sizeof(rec));
}

static void tell_began(void *arg, uint32_t pid, const char *words, size_t n)
{
	struct run *run = arg;
	auto_buf struct buf rec = { 0 };

	buf_init(&rec, UINT16_MAX);
	if (record_exec(&rec, run->id, pid, words, n) == 0)
		engine_send_record(run->engine_fd, rec.p, rec.n);
}

static int launch_and_wait(struct run *run, struct err *err)
{
	struct run_facts *facts = &run->result->facts;
	struct sandbox_result sr = { 0 };
	int stdio[3], start, r;

	r = open_output(run, stdio, err);
	if (r < 0) {
		facts->internal = true;
		if (run->output_fds[0] >= 0) /* the recorder waits for its end */
			close(take_fd(run->output_fds[0]));
		return r;
	}
	run->result->started_ns = clock_real_ns();
	limits_init(&run->limits, run->sandbox, &run->spec.limits);
	start_sampler(run);
	execs_begin(&run->execs, run->sandbox, run->plan, run->output_fds[0]);
	run->begun = clock_ns(CLOCK_MONOTONIC);
	start = sandbox_begin(run->sandbox, stdio, err);
	run->starting = true;
	run->start_end = clock_ns(CLOCK_MONOTONIC) + SANDBOX_START_MS * NSEC_PER_MSEC;
	if (start == 0)
		start = wait_for_end(run, err);
	else
		start_failed(run, start, err);
	snapshot_job_drop(&run->snapshot);
	if (run->output_fds[0] >= 0) /* nothing came out */
		close(take_fd(run->output_fds[0]));
	/* No producer may be left when the engine drains for the last time. */
	r = sandbox_kill(run->sandbox, KILL_TIMEOUT_MS);
	end_egress(run);
	if (r < 0)
		log_warn("sandbox not empty after %d s: %s", KILL_TIMEOUT_MS / 1000, strerror(-r));
	r = capture_kill_left(run->capture, sandbox_cgroup_fd(run->sandbox));
	if (r > 0)
		log_warn("killed what had left the sandbox's control group");
	capture_count_missed(run->capture);
	run->result->ended_ns = clock_real_ns();
	sandbox_result(run->sandbox, &sr);
	if (start == 0) {
		facts->exit_code = sr.exit_code;
		facts->signal = sr.signal;
	}
	if (start == 0 && !sr.died)
		start = check_told(run, err);
	if (sr.died && ended_well(run, &sr) && start == 0) {
		facts->exit_code = sr.exit_code;
		facts->signal = sr.signal;
	}
	facts->died = sr.died;
	facts->death_code = sr.death_code;
	facts->death_signal = sr.death_signal;
	if (sr.died && (sr.death_signal == SIGSYS || sr.death_code == 128 + SIGSYS))
		tell_forbidden(run);
	facts->cpu_usec = sr.cpu_usec;
	facts->mem_peak = sr.mem_peak;
	facts->pids_peak = sr.pids_peak;
	facts->oom_kills = sr.oom_kills;
	facts->pids_denied = sr.pids_denied;
	limits_look(&run->limits, tell_limit, run);
	limits_done(&run->limits);
	execs_stop(&run->execs);
	take_output(run);
	if (start == 0)
		compare_workspace(run, WIRE_SCAN_STOP);
	return start;
}

/* 0: the payload may begin. Else all that was made for it goes again. */
static int pass_door(struct run *run)
{
	const struct run_door *door = run->opt->door;
	int r = door ? door->gate(door->arg, run->engine_fd) : 0;

	if (r == 0)
		return 0;
	run->told_begun = true;
	run->result->started_ns = run->result->ended_ns = clock_real_ns();
	run->result->facts.hung_up = true;
	run->result->facts.signal = SIGKILL;
	run->result->facts.exit_code = 128 + SIGKILL;
	if (run->output_fds[0] >= 0) /* the recorder waits for its end */
		close(take_fd(run->output_fds[0]));
	end_egress(run);
	return r;
}

static void cleanup(struct run *run)
{
	if (run->watched)
		capture_unwatch(run->capture, sandbox_cgroup_fd(run->sandbox));
	workspace_job_done(&run->workspace);
	console_free(run->console, false);
	relay_free(run->relay);
	reloader_done(&run->reloader);
	sandbox_free(run->sandbox);
	gvisor_guest_free(run->guest);
	capture_close(run->capture);
	sandbox_plan_free(run->plan);
	if (run->engine_fd >= 0)
		close(run->engine_fd);
	if (run->bundle_fd >= 0)
		close(run->bundle_fd);
	if (run->cursor_fd >= 0)
		close(run->cursor_fd);
	if (run->keys_fd >= 0)
		close(run->keys_fd);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	if (run->control_fd >= 0)
		close(run->control_fd);
	if (run->null_fd >= 0)
		close(run->null_fd);
	end_egress(run);
	for (int i = 0; i < 2; i++)
		if (run->egress_fds[i] >= 0)
			close(run->egress_fds[i]);
	for (int i = 0; i < 2; i++) {
		if (run->proc_fds[i] >= 0)
			close(run->proc_fds[i]);
		if (run->output_fds[i] >= 0)
			close(run->output_fds[i]);
	}
	run_status_remove(run->status_fd, run->result->session);
	if (run->status_fd >= 0)
		close(run->status_fd);
}

static void init_names(struct run *run)
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

int run_session(struct run_result *ret, const struct run_options *opt, struct err *err)
{
	struct run run = {
		.opt = opt,
		.result = ret,
		.spec = *opt->spec,
		.id = SANDBOX_ID,
		.bundle_fd = -1,
		.cursor_fd = -1,
		.keys_fd = -1,
		.status_fd = -1,
		.signal_fd = -1,
		.engine_fd = -1,
		.control_fd = -1,
		.null_fd = -1,
		.proc_fds = { -1, -1 },
		.egress_fds = { -1, -1 },
		.output_fds = { -1, -1 },
	};
	struct err engine_err = { 0 };
	int r, start = 0;

	memset(ret, 0, sizeof(*ret));
	ret->facts.stdout_bytes = ret->facts.stderr_bytes = WIRE_UNKNOWN;
	init_names(&run);
	execs_init(&run.execs, opt->hub_fd > 0 ? opt->hub_fd : -1, opt->output_max);
	run.execs.snapshot = want_snapshot;
	run.execs.began = tell_began;
	run.execs.arg = &run;
	run.spec.serve = opt->hub_fd > 0;
	reloader_init(&run.reloader, opt->rule_files, opt->rule_texts, opt->spec);
	r = prepare(&run, err);
	if (r < 0) {
		if (run.bundle_fd >= 0 && !opt->session_dir)
			rmdir(ret->bundle); /* only goes when nothing was written */
		cleanup(&run);
		return r;
	}
	start = pass_door(&run);
	if (start == 0)
		start = launch_and_wait(&run, err);
	r = engine_finish(run.engine_fd, run.engine, &ret->facts, &ret->engine, &engine_err);
	if (r < 0)
		err_set(err, r, "%s", err_text(&engine_err));
	if (r == 0) {
		ret->reason = outcome_reason(ret->engine.reason);
		ret->exit_code = ret->engine.exit_code;
		/* A rule may kill so early that init could not say that the payload runs. */
		if (start < 0 && !strcmp(ret->reason, "internal"))
			r = start;
		else if (start < 0 && ret->facts.internal)
			*err = (struct err){ 0 };
	}
	/* One that a rule killed so early did begin. */
	tell_begun(&run,
		   start < 0 && (r < 0 || !strcmp(ret->reason, "exit") ||
				 !strcmp(ret->reason, "internal"))
			   ? start
			   : r,
		   err);
	tell_host_log(&run, ret->reason ? ret->reason : "internal");
	cleanup(&run);
	return r;
}
