// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/backend.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/log.h"
#include "userspace/base/term.h"
#include "userspace/base/trust.h"
#include "userspace/cli/agent_park.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/named_workspace.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/run_net.h"
#include "userspace/cli/run_print.h"
#include "userspace/cli/run_redact.h"
#include "userspace/cli/run_result.h"
#include "userspace/cli/run_rules.h"
#include "userspace/cli/run_root.h"
#include "userspace/cli/run_secret.h"
#include "userspace/cli/run_sinks.h"
#include "userspace/cli/util.h"
#include "userspace/enrich/baseline.h"
#include "userspace/pipeline/recorder.h"
#include "userspace/pipeline/redaction.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/run_status.h"
#include "userspace/pipeline/store_guard.h"

DEFINE_AUTO(sandbox_plan, sandbox_plan_free)

#define RING_MIN	  (64 << 10)
#define RING_MAX	  (256 << 20)
#define DRAIN_DEFAULT_NS  (10 * NSEC_PER_SEC)
#define HOLD_DEFAULT_NS	  (300 * NSEC_PER_SEC)
#define FREEZE_DEFAULT_NS (900 * NSEC_PER_SEC)

struct run_args {
	const char *backend, *platform, *policy, *session_dir, *name, *tenant, *result, *workspace,
		*cwd;
	const char *kafka, *sign, *witness, *env_values;
	struct option_list secrets;
	struct option_list rules, ro, rw, env, exports, watch_env, watch;
	struct redact_args redact;
	struct net_args network;
	struct root_args root;
	const char *on_pressure, *when_full;
	uint64_t urgent_ring, bulk_ring;
	uint64_t timeout, memory, pids, cpus, disk, tmp, nofile, fsize, export_wait, max_output;
	uint64_t hold_timeout, freeze_timeout;
	const char *hold_default;
	bool dry_run_actions, no_workspace_diff, keep_texts;
	uint64_t usage_period;
	const char *baseline;
	const char *from;
	const char *record;
	uint64_t output_limit;
	uint64_t ttl, idle;
	bool no_agent;
	bool no_default_rules, dry_run, json, quiet, help, kill_output, tty;
};

#define AT(member) offsetof(struct run_args, member)

static const struct option_def OPTIONS[] = {
	{ "backend", 0, OPT_STR, AT(backend), "NAME", "sandbox backend: ns, gvisor (default: ns)" },
	{ "platform", 0, OPT_STR, AT(platform), "NAME",
	  "gvisor: how the guest's calls are caught, ptrace or systrap (default: ptrace, if runsc has it)" },
	{ "policy", 0, OPT_STR, AT(policy), "NAME|FILE",
	  "YAML file with such settings, or a shipped one (warder policy list); options override" },
	{ "rules", 'r', OPT_STRLIST, AT(rules), "PATH",
	  "rule file, or directory of them, after the default packs; repeatable. Read again while it "
	  "runs when it changes or on SIGHUP" },
	{ "baseline", 0, OPT_STR, AT(baseline), "FILE",
	  "of `warder rules baseline`: programs, files and destinations that are not in it are marked "
	  "baseline.new" },
	{ "no-default-rules", 0, OPT_FLAG, AT(no_default_rules), NULL,
	  "leave the default packs out" },
	{ "timeout", 't', OPT_DURATION, AT(timeout), "TIME",
	  "kill after this long: 30s, 5m (default: 0, never)" },
	{ "ttl", 0, OPT_DURATION, AT(ttl), "TIME",
	  "its life, frozen or not: reason ttl (default: 0, as long as it likes)" },
	{ "idle", 0, OPT_DURATION, AT(idle), "TIME",
	  "of a sandbox without a command (create): end it when for so long nothing ran in it and "
	  "nobody was attached: reason idle (default: 0, never)" },
	{ "memory", 'm', OPT_SIZE, AT(memory), "SIZE", "memory limit: 256M (default: 1G)" },
	{ "pids", 0, OPT_U64, AT(pids), "N", "most tasks at once (default: 512)" },
	{ "cpus", 0, OPT_FRACTION, AT(cpus), "X",
	  "CPUs' worth of time: 0.5 (default: 0, no limit)" },
	{ "disk", 0, OPT_SIZE, AT(disk), "SIZE", "size of the private /workspace, or of a named one (default: 512M)" },
	{ "tmp", 0, OPT_SIZE, AT(tmp), "SIZE",
	  "size of each private /tmp, /run, /dev/shm (default: 256M)" },
	{ "nofile", 0, OPT_U64, AT(nofile), "N", "most open files a process (default: 1024)" },
	{ "fsize", 0, OPT_SIZE, AT(fsize), "SIZE", "largest file (default: 0, no limit)" },
	{ "max-output", 0, OPT_SIZE, AT(max_output), "SIZE",
	  "pass on this much of stdout and of stderr, count and drop the rest (default: 0, all)" },
	{ "tty", 0, OPT_FLAG, AT(tty), NULL,
	  "give it a terminal of its own, joined with this one: keys, job control and size work; what "
	  "it writes reaches this terminal as it is, escape sequences too" },
	{ "record", 0, OPT_STR, AT(record), "WHAT",
	  "keep what it writes in the record: output (default: stdout and stderr, or the terminal), "
	  "none, or input: with --tty also what is typed, but never while it is not echoed" },
	{ "output-limit", 0, OPT_SIZE, AT(output_limit), "SIZE",
	  "keep so much of each stream, the first and the last half (default: 16M)" },
	{ "kill-output", 0, OPT_FLAG, AT(kill_output), NULL,
	  "end the sandbox at --max-output: reason output_limit, exit 137" },
	{ "net", 'n', OPT_STR, AT(network.mode), "MODE",
	  "none (default); allow=HOST[:PORT],...: these names only, *.NAME too; open: all but private "
	  "addresses; host: UNSAFE, shares the host's network" },
	{ "net-allow", 0, OPT_STRLIST, AT(network.allow), "HOST[:PORT[/CHECK]]",
	  "a name for --net allow; without a port 443 and 80. CHECK of the first bytes: tls, http, "
	  "opaque; repeatable" },
	{ "net-service", 0, OPT_STRLIST, AT(network.services), "NAME[:PORT]=IP:PORT",
	  "with allow or open: a service that is reached as NAME, private or this host's own too; "
	  "repeatable" },
	{ "net-route", 0, OPT_STRLIST, AT(network.routes), "NAME=URL,header=H:FILE",
	  "with allow or open: http://NAME/ is this upstream (https://HOST[:PORT][/PREFIX]), asked from "
	  "outside by verified TLS, with header H: what FILE holds, which the sandbox never sees; "
	  "header= up to 4 times, ca=FILE: who certifies it, to=IP[:PORT]: where it is. FILE must be yours "
	  "alone; repeatable" },
	{ "net-limit", 0, OPT_STR, AT(network.limit), "KEY=N,...",
	  "with allow or open: connections=64 at once, rate=50 new a second, dns=20 questions a second, "
	  "idle=600 seconds, bytes=16G in all" },
	{ "net-dns", 0, OPT_STR, AT(network.dns), "IP[:PORT]",
	  "with allow or open: resolver to ask (default: the host's)" },
	{ "ro", 0, OPT_STRLIST, AT(ro), "PATH[:AT]", "show a host path read-only; repeatable" },
	{ "rw", 0, OPT_STRLIST, AT(rw), "PATH[:AT]", "show a host path writable; repeatable" },
	{ "workspace", 'w', OPT_STR, AT(workspace), "DIR",
	  "host directory as /workspace, writable (default: private, gone at the end); name:NAME: one "
	  "that stays, for one sandbox at a time (warder workspace)" },
	{ "from", 0, OPT_STR, AT(from), "SNAPSHOT",
	  "begin with the files of a snapshot of the tenant's (warder snapshot) in /workspace, /tmp and "
	  "/var/tmp" },
	{ "cwd", 0, OPT_STR, AT(cwd), "DIR", "start in this directory (default: /workspace)" },
	{ "root", 0, OPT_STR, AT(root.root), "ROOT",
	  "its files: host (default: this host's /usr and little more, read-only), image:NAME or "
	  "image@sha256:DIGEST (warder image), or a directory. The last two are not changed: what it "
	  "writes counts as --tmp and is gone at the end. An image's Env, WorkingDir, User, Entrypoint "
	  "and Cmd go where nothing is given here; a command takes the place of the last two" },
	{ "image-key", 0, OPT_STRLIST, AT(root.keys), "FILE",
	  "take only images signed by one of the keys in FILE (warder image sign); repeatable" },
	{ "seccomp", 0, OPT_STR, AT(root.seccomp), "FILE",
	  "system calls: a profile as OCI's runtime-spec or Docker writes it, besides warder's own "
	  "filter: what that denies stays denied (default: default, that alone)" },
	{ "user", 0, OPT_STR, AT(root.user), "UID[:GID]",
	  "what it is called inside (default: 1000, or the image's User). There is one id and nothing "
	  "behind the name: 0 has no rights either" },
	{ "env", 'e', OPT_STRLIST, AT(env), "K=V", "environment variable; repeatable" },
	{ "secret", 0, OPT_STRLIST, AT(secrets), "NAME=FILE[,ttl=TIME]",
	  "show what FILE holds as " SECRET_DIR "/NAME, to the payload alone, for so long; in no "
	  "environment, and taken out of the record whole or in a usual encoding, but not in parts "
	  "that the payload makes of it. FILE must be yours alone, at most 16K; repeatable" },
	{ "watch", 0, OPT_STRLIST, AT(watch), "PATH",
	  "tell reads of this file, too, by its path inside and by inode: links and other mounts do "
	  "not hide it; DIR/ = all below, PREFIX* = all that begin so; repeatable" },
	{ "usage-period", 0, OPT_DURATION, AT(usage_period), "TIME",
	  "between samples of usage.*, taken while rules use them: from 50ms (default: 1s)" },
	{ "watch-env", 0, OPT_STRLIST, AT(watch_env), "NAME[,...]",
	  "keep these variables' values in the record, NAME* too (default: names only); repeatable" },
	{ "redact", 0, OPT_STRLIST, AT(redact.rules), "FILE",
	  "rules of secrets to take out of the record, after the built-in ones; off: none at all; "
	  "repeatable" },
	{ "redact-value", 0, OPT_STRLIST, AT(redact.values), "TEXT",
	  "a secret to take out wherever it stands; for policy files: others can see options" },
	{ "redact-value-file", 0, OPT_STRLIST, AT(redact.value_files), "FILE",
	  "such secrets, one a line; the file must be root's alone; repeatable. Values of --env whose "
	  "names say secret are known without it" },
	{ "redact-escrow", 0, OPT_STR, AT(redact.escrow), "FILE",
	  "keep what is taken out in the record as well, sealed for this public key (warder redact "
	  "keygen), whose secret one is elsewhere" },
	{ "name", 0, OPT_STR, AT(name), "NAME", "name of the sandbox" },
	{ "tenant", 0, OPT_STR, AT(tenant), "NAME", "whose session it is, a word in every event" },
	{ "session-dir", 0, OPT_STR, AT(session_dir), "DIR",
	  "write the record here (new or empty; default: /var/lib/warder/sessions/ID)" },
	{ "result", 0, OPT_STR, AT(result), "FILE",
	  "write how it ended as one JSON object, whole or not at all" },
	{ "kafka", 0, OPT_STR, AT(kafka), "BROKERS",
	  "send events to Kafka, topic warder.events: host:9092,..." },
	{ "export", 0, OPT_STRLIST, AT(exports), "SINK",
	  "send events to file:PATH, kafka:BROKERS[,key=value...], ...; repeatable" },
	{ "export-wait", 0, OPT_DURATION, AT(export_wait), "TIME",
	  "wait at the end for sinks that are behind (default: 10s)" },
	{ "sign", 0, OPT_STR, AT(sign), "WHEN",
	  "sign the record with the host's key: auto (if there is one), always, never" },
	{ "witness", 0, OPT_STR, AT(witness), "FILE",
	  "append the signed record's checkpoints to FILE, better on another machine's disk; see verify" },
	{ "when-full", 0, OPT_STR, AT(when_full), "WHAT",
	  "when the record cannot be written: continue (default; what is lost is counted), pause, kill" },
	{ "on-pressure", 0, OPT_STR, AT(on_pressure), "WHAT",
	  "when events come too fast: drop (default, counted), stop the producer, kill" },
	{ "urgent-ring", 0, OPT_SIZE, AT(urgent_ring), "SIZE",
	  "kernel buffer for exec, exit and escape events (default: 4M)" },
	{ "bulk-ring", 0, OPT_SIZE, AT(bulk_ring), "SIZE",
	  "kernel buffer for file and network events (default: 8M)" },
	{ "hold-timeout", 0, OPT_DURATION, AT(hold_timeout), "TIME",
	  "how long a rule's question (action: hold) waits for an answer (default: 5m; 0: for ever)" },
	{ "hold-default", 0, OPT_STR, AT(hold_default), "ANSWER",
	  "the answer when nobody gives one: deny (default: the sandbox is killed) or approve" },
	{ "freeze-timeout", 0, OPT_DURATION, AT(freeze_timeout), "TIME",
	  "kill a sandbox that was frozen for so long (default: 15m; 0: never)" },
	{ "no-workspace-diff", 0, OPT_FLAG, AT(no_workspace_diff), NULL,
	  "do not compare /workspace and --rw places at the end" },
	{ "keep-texts", 0, OPT_FLAG, AT(keep_texts), NULL,
	  "keep small texts that changed there in the record, before and after" },
	{ "dry-run-actions", 0, OPT_FLAG, AT(dry_run_actions), NULL,
	  "rules only tell what they would do: nothing is denied, killed, frozen or held" },
	{ "no-agent", 0, OPT_FLAG, AT(no_agent), NULL,
	  "run it by this very process, also when an agent is there" },
	{ "dry-run", 0, OPT_FLAG, AT(dry_run), NULL, "print what would be done, do nothing" },
	{ "json", 0, OPT_FLAG, AT(json), NULL, "with --dry-run: as JSON" },
	{ "quiet", 'q', OPT_FLAG, AT(quiet), NULL, "no closing line on stderr" },
	{ "help", 'h', OPT_FLAG, AT(help), NULL, "this text" },
	{ 0 },
};

const struct option_def *run_options(void)
{
	return OPTIONS;
}

static const char PURPOSE[] =
	"Run COMMAND in a hardened sandbox, watch it from the kernel, judge it by rules and keep a\n"
	"tamper-evident record.\n\n"
	"Exit code: the command's own; 128+n if it died by signal n; 124 timeout; 125 warder's own\n"
	"error; 126 cannot execute; 127 not found; 137 killed by a rule, an operator,\n"
	"the memory, output or event limit: the result tells which.";

/* ---- options -> spec ---- */

static int check_backend(const char *text, struct err *err)
{
	return backend_find(text, err) ? 0 : -EINVAL;
}

static int check_bind(const char *text, struct err *err)
{
	const char *colon = strchr(text, ':'), *target = colon ? colon + 1 : text;

	if (!*text || colon == text || target[0] != '/')
		return err_set(err, EINVAL, "'%s' is not PATH or PATH:/ABSOLUTE", text);
	return 0;
}

static int split_bind(struct sandbox_spec *spec, const char *text, bool writable, struct err *err)
{
	struct sandbox_bind *b;
	char *colon;

	if (spec->binds_n == SANDBOX_MOUNTS_MAX)
		return err_set(err, E2BIG, "more than %d binds", SANDBOX_MOUNTS_MAX);
	b = &spec->binds[spec->binds_n];
	b->source = strdup(text); /* lives as long as the process */
	if (!b->source)
		return -ENOMEM;
	colon = strchr(b->source, ':');
	if (colon)
		*colon = 0;
	b->target = colon ? colon + 1 : b->source;
	b->writable = writable;
	spec->binds_n++;
	return 0;
}

static bool holds_or_in(const char *dir, const char *path)
{
	auto_free char *a = realpath(dir, NULL), *b = realpath(path, NULL);
	size_t n, m;

	if (!a || !b)
		return false;
	n = strlen(a) > 1 ? strlen(a) : 0; /* "/" holds everything */
	m = strlen(b) > 1 ? strlen(b) : 0;
	return (!strncmp(b, a, n) && (!b[n] || b[n] == '/')) ||
	       (!strncmp(a, b, m) && (!a[m] || a[m] == '/'));
}

/* Our own records, keys and sockets are nothing that a payload may write to, whoever asks for it. */
static int check_writable(const struct sandbox_spec *spec, struct err *err)
{
	const char *const ours[] = { state_dir(), run_dir() };

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		if (spec->workspace && holds_or_in(ours[i], spec->workspace))
			return err_set(
				err, EPERM,
				"option '--workspace': '%s' would let the sandbox write to '%s'",
				spec->workspace, ours[i]);
		for (size_t k = 0; k < spec->binds_n; k++)
			if (spec->binds[k].writable && holds_or_in(ours[i], spec->binds[k].source))
				return err_set(
					err, EPERM,
					"option '--rw': '%s' would let the sandbox write to '%s'",
					spec->binds[k].source, ours[i]);
	}
	return 0;
}

static int check_env(const char *text, struct err *err)
{
	const char *eq = strchr(text, '=');

	return eq && eq != text ? 0 : err_set(err, EINVAL, "'%s' is not NAME=VALUE", text);
}

static void set_env(struct sandbox_spec *spec, const struct option_list *env)
{
	for (size_t i = 0; i < env->n; i++)
		spec->env[spec->env_n++] = env->v[i];
}

/* What stands where no option is given. */
static void args_defaults(struct run_args *a)
{
	struct sandbox_spec spec;

	sandbox_spec_defaults(&spec);
	*a = (struct run_args){
		.timeout = spec.limits.timeout_ns,
		.memory = spec.limits.memory,
		.pids = spec.limits.pids,
		.cpus = spec.limits.cpu_milli,
		.disk = spec.limits.disk,
		.tmp = spec.limits.tmp_bytes,
		.nofile = spec.limits.nofile,
		.fsize = spec.limits.fsize,
		.export_wait = DRAIN_DEFAULT_NS,
		.hold_timeout = HOLD_DEFAULT_NS,
		.freeze_timeout = FREEZE_DEFAULT_NS,
	};
}

/* Below these a 0 would switch off what every sandbox must have. */
static int check_given(const struct run_args *a, struct err *err)
{
	const struct {
		const char *option;
		uint64_t v;
	} rows[] = {
		{ "memory", a->memory }, { "pids", a->pids },	  { "disk", a->disk },
		{ "tmp", a->tmp },	 { "nofile", a->nofile },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!rows[i].v)
			return err_set(err, EINVAL,
				       "option '--%s': 0 would be no limit, and there must be one",
				       rows[i].option);
	return 0;
}

static bool records_input(const struct run_args *a)
{
	return a->record && !strcmp(a->record, "input");
}

static int make_spec(struct sandbox_spec *spec, const struct run_args *a, char **command,
		     struct err *err)
{
	struct sandbox_limits *lim = &spec->limits;
	int r = 0;

	sandbox_spec_defaults(spec);
	spec->argv = command;
	if (a->backend)
		spec->backend = a->backend;
	spec->platform = a->platform;
	spec->name = a->name;
	spec->tenant = a->tenant;
	spec->workspace = a->workspace;
	spec->cwd = a->cwd;
	r = check_given(a, err);
	lim->timeout_ns = a->timeout;
	lim->memory = a->memory;
	lim->pids = a->pids;
	lim->cpu_milli = a->cpus;
	lim->disk = a->disk;
	lim->tmp_bytes = a->tmp;
	lim->nofile = a->nofile;
	lim->fsize = a->fsize;
	for (size_t i = 0; r == 0 && i < a->ro.n; i++)
		r = split_bind(spec, a->ro.v[i], false, err);
	for (size_t i = 0; r == 0 && i < a->rw.n; i++)
		r = split_bind(spec, a->rw.v[i], true, err);
	if (r == 0)
		r = check_writable(spec, err);
	set_env(spec, &a->env);
	spec->tty = a->tty;
	spec->term = getenv("TERM");
	if (r == 0 && a->record && strcmp(a->record, "output") && strcmp(a->record, "none") &&
	    strcmp(a->record, "input"))
		r = err_set(err, EINVAL, "option '--record': '%s' is not output, input or none",
			    a->record);
	if (r == 0 && !a->tty && records_input(a))
		r = err_set(err, EINVAL, "option '--record': input is typed with '--tty' only");
	if (r == 0 && a->output_limit > RECORDER_LIMIT_MAX)
		r = err_set(err, EINVAL, "option '--output-limit': more than 1G");
	if (r == 0 && a->kill_output && !a->max_output)
		r = err_set(err, EINVAL, "option '--kill-output' needs '--max-output'");
	if (r == 0)
		r = net_apply(spec, &a->network, err);
	return r;
}

/* ---- what is watched besides ---- */

static int check_watch_env(const char *text, struct err *err)
{
	return *text && !strchr(text, '=') ? 0 : err_set(err, EINVAL, "'%s' is not a name", text);
}

static int join_watch_env(struct buf *out, const struct option_list *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (buf_printf(out, "%s%s", i ? "," : "", names->v[i]) < 0)
			return -ENOMEM;
	return names->n ? buf_addc(out, 0) : 0;
}

static int check_watch(const char *text, struct err *err)
{
	return watchlist_check(text, err);
}

static int check_watches(const struct option_list *paths, struct err *err)
{
	if (paths->n > WATCHLIST_MAX)
		return err_set(err, E2BIG, "option '--watch': more than %d", WATCHLIST_MAX);
	return 0;
}

/* ---- words that are one of a few ---- */

static int parse_sign(const char *text, enum run_sign *ret, struct err *err)
{
	if (!text || !strcmp(text, "auto"))
		*ret = RUN_SIGN_IF_KEY;
	else if (!strcmp(text, "always"))
		*ret = RUN_SIGN_ALWAYS;
	else if (!strcmp(text, "never"))
		*ret = RUN_SIGN_NEVER;
	else
		return err_set(err, EINVAL, "'%s' is not auto, always or never", text);
	return 0;
}

static int check_sign(const char *text, struct err *err)
{
	enum run_sign sign;

	return parse_sign(text, &sign, err);
}

static int parse_full(const char *text, uint32_t *ret, struct err *err)
{
	static const char *const words[] = {
		[FULL_CONTINUE] = "continue", [FULL_PAUSE] = "pause", [FULL_KILL] = "kill"
	};

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*ret = (uint32_t)i;
			return 0;
		}
	return text ? err_set(err, EINVAL, "'%s' is not continue, pause or kill", text) : 0;
}

static int check_full(const char *text, struct err *err)
{
	uint32_t what;

	return parse_full(text, &what, err);
}

/* What happens when events come faster than they can be taken ... */
static int parse_pressure(const char *text, uint32_t *ret, struct err *err)
{
	static const char *const words[] = {
		[PRESSURE_DROP] = "drop", [PRESSURE_STOP] = "stop", [PRESSURE_KILL] = "kill"
	};

	for (size_t i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
			*ret = (uint32_t)i;
			return 0;
		}
	return text ? err_set(err, EINVAL, "'%s' is not drop, stop or kill", text) : 0;
}

static int check_pressure(const char *text, struct err *err)
{
	uint32_t what;

	return parse_pressure(text, &what, err);
}

/* ... and how much can wait. */
static int check_rings(const struct run_args *a, struct err *err)
{
	const uint64_t rings[] = { a->urgent_ring, a->bulk_ring };

	for (size_t i = 0; i < ARRAY_SIZE(rings); i++)
		if (rings[i] &&
		    (rings[i] < RING_MIN || rings[i] > RING_MAX || rings[i] & (rings[i] - 1)))
			return err_set(err, EINVAL,
				       "option '--%s-ring': a power of two from 64K to 256M",
				       i ? "bulk" : "urgent");
	return 0;
}

static int check_hold_default(const char *text, struct err *err)
{
	return !strcmp(text, "deny") || !strcmp(text, "approve")
		       ? 0
		       : err_set(err, EINVAL, "'%s' is not deny or approve", text);
}

static struct hold_policy hold_policy_of(const struct run_args *a)
{
	return (struct hold_policy){
		.timeout_ns = a->hold_timeout,
		.freeze_timeout_ns = a->freeze_timeout,
		.approve = a->hold_default && !strcmp(a->hold_default, "approve"),
	};
}

/* ---- the command ---- */

/* Values that can be judged by themselves: where they stand in a policy, its error names the line. */
static const struct value_check {
	const char *option;
	size_t at;
	bool list;
	int (*fn)(const char *value, struct err *err);
} CHECKS[] = {
	{ "backend", AT(backend), false, check_backend },
	{ "net", AT(network.mode), false, net_check_mode },
	{ "net-allow", AT(network.allow), true, net_check_allow },
	{ "net-service", AT(network.services), true, net_check_service },
	{ "net-route", AT(network.routes), true, net_check_route },
	{ "net-limit", AT(network.limit), false, net_check_limit },
	{ "net-dns", AT(network.dns), false, net_check_dns },
	{ "root", AT(root.root), false, root_check },
	{ "user", AT(root.user), false, user_check },
	{ "ro", AT(ro), true, check_bind },
	{ "rw", AT(rw), true, check_bind },
	{ "env", AT(env), true, check_env },
	{ "secret", AT(secrets), true, secret_check },
	{ "watch", AT(watch), true, check_watch },
	{ "watch-env", AT(watch_env), true, check_watch_env },
	{ "sign", AT(sign), false, check_sign },
	{ "when-full", AT(when_full), false, check_full },
	{ "on-pressure", AT(on_pressure), false, check_pressure },
	{ "hold-default", AT(hold_default), false, check_hold_default },
};

static int check_value(const char *option, const char *value, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(CHECKS); i++) {
		int r = strcmp(CHECKS[i].option, option) ? 0 : CHECKS[i].fn(value, err);

		if (r < 0)
			return err_wrap(err, r, "option '--%s'", option);
	}
	return 0;
}

static int check_values(const struct run_args *a, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(CHECKS); i++) {
		const void *at = (const char *)a + CHECKS[i].at;
		const struct option_list one = { { CHECKS[i].list ? NULL : *(char *const *)at },
						 1 };
		const struct option_list *v = CHECKS[i].list ? at : &one;

		for (size_t k = 0; k < v->n; k++) {
			int r = v->v[k] ? check_value(CHECKS[i].option, v->v[k], err) : 0;

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int read_args(struct run_args *a, struct flat_file *policy, int argc, char **argv, int *rest,
		     struct err *err)
{
	struct run_args first;
	int r;

	args_defaults(a);
	args_defaults(&first);
	r = options_parse(OPTIONS, &first, argc, argv, rest, err);
	if (r < 0 || !first.policy || first.help) {
		*a = first;
		return r < 0 ? r : check_values(a, err);
	}
	r = policy_open(policy, first.policy, err);
	if (r == 0)
		r = policy_apply(policy, OPTIONS, a, check_value, err);
	if (r < 0)
		return err_wrap(err, r, "policy");
	r = options_parse(OPTIONS, a, argc, argv, rest, err);
	return r < 0 ? r : check_values(a, err);
}

/* A policy's value, and the file that it names: told with the line it stands in. */
static int check_with_file(const char *option, const char *value, struct err *err)
{
	__attribute__((cleanup(secrets_forget))) struct run_secrets secrets = { 0 };
	const struct option_list one = { { value }, 1 };
	struct sandbox_spec spec = { 0 };
	AUTO(redactor) struct redactor *trial = NULL;
	struct redact_args redact = { 0 };
	int r = check_value(option, value, err);

	if (r < 0)
		return r;
	if (!strcmp(option, "secret"))
		return secrets_read(&secrets, &spec, &one, err);
	if (!strcmp(option, "net-route"))
		return net_check_route_files(value, err);
	if (!strcmp(option, "redact") && strcmp(value, "off"))
		redact.rules = one;
	else if (!strcmp(option, "redact-value-file"))
		redact.value_files = one;
	else if (!strcmp(option, "redact-escrow"))
		redact.escrow = value;
	else
		return 0;
	return run_redactor(&trial, &redact, &spec, REDACT_KEY_TRIAL, err);
}

int run_check_policy(const char *word, struct err *err)
{
	__attribute__((cleanup(run_root_done))) struct run_root root = RUN_ROOT_INIT;
	__attribute__((cleanup(secrets_forget))) struct run_secrets secrets = { 0 };
	__attribute__((cleanup(flat_done))) struct flat_file policy = { 0 };
	__attribute__((cleanup(run_rules_done))) struct run_rules rules = { 0 };
	AUTO(sandbox_plan) struct sandbox_plan *plan = NULL;
	AUTO(redactor) struct redactor *trial = NULL;
	char run[] = "run", yes[] = "true", *argv[] = { run, yes, NULL };
	struct sandbox_spec spec;
	struct run_args a;
	int r;

	args_defaults(&a);
	r = policy_open(&policy, word, err);
	if (r == 0)
		r = policy_apply(&policy, OPTIONS, &a, check_with_file, err);
	if (r < 0)
		return r; /* it says where */
	r = make_spec(&spec, &a, argv + 1, err);
	if (r == 0)
		r = secrets_read(&secrets, &spec, &a.secrets, err);
	if (r == 0)
		r = run_redactor(&trial, &a.redact, &spec, REDACT_KEY_TRIAL, err);
	if (r == 0)
		r = run_root_open(&root, &spec, &a.root, true, err);
	if (r == 0)
		r = check_rings(&a, err);
	if (r == 0)
		r = check_watches(&a.watch, err);
	spec.session = "check";
	if (r == 0)
		r = sandbox_plan_new(&plan, &spec, err);
	if (r < 0)
		return err_wrap(err, r, "%s", policy.path);
	/* What is wrong with a rule file is told there. */
	return run_rules_load(&rules, &a.rules, !a.no_default_rules, a.baseline) < 0 ? -EBADMSG : 0;
}

static int dry_run(struct sandbox_spec *spec, bool json, struct err *err)
{
	AUTO(sandbox_plan) struct sandbox_plan *plan = NULL;

	spec->session = "dry-run"; /* a real one gets its id at the start */
	if (!spec->name)
		spec->name = spec->session;
	if (sandbox_plan_new(&plan, spec, err) < 0 || sandbox_plan_print(plan, json, stdout) < 0)
		return cli_fail(err);
	return cli_finish_output(0);
}

/* A run by an agent's keeper. */
struct run_keep {
	const char *session;
	int hub_fd;
	char *reason;			       /* 32 */
	const struct run_container *container; /* NULL */
};

/* The files that it begins with. */
struct run_from {
	struct snapshots_row row;
	int fd; /* -1: none */
	bool host_workspace;
};

static void run_from_done(struct run_from *f)
{
	if (f->fd >= 0)
		close(take_fd(f->fd));
}

static int open_from(struct run_from *f, const struct run_args *a, bool named, struct err *err)
{
	f->host_workspace = a->workspace;
	if (!a->from)
		return 0;
	if (a->workspace || named)
		return err_set(err, EINVAL,
			       "option '--from' fills the private /workspace: not with "
			       "'--workspace'");
	return snapshots_open(&f->row, &f->fd, a->tenant ? a->tenant : "default", a->from, err);
}

static int run_it(const struct run_keep *keep, const struct run_from *from,
		  const struct run_args *a, const struct sandbox_spec *spec,
		  const struct run_rules *rules, const struct redactor *redactor,
		  struct run_sinks *sinks, enum run_sign sign, uint32_t pressure,
		  uint32_t when_full, struct run_result_file *result)
{
	struct run_options opt = {
		.spec = spec,
		.sign = sign,
		.workspace = a->no_workspace_diff ? RUN_WORKSPACE_IGNORED
			     : a->keep_texts	  ? RUN_WORKSPACE_TEXTS
						  : RUN_WORKSPACE_TOLD,
		.pressure = pressure,
		.when_full = when_full,
		.urgent_bytes = a->urgent_ring,
		.bulk_bytes = a->bulk_ring,
		.rules = rules->set,
		.redactor = redactor,
		.rule_files = &rules->files,
		.rule_texts = { rules->texts.p, rules->texts.n },
		.dry_run_actions = a->dry_run_actions,
		.session_dir = a->session_dir,
		.sinks = sinks->v,
		.sinks_n = sinks->n,
		.witness = sinks->has_witness ? &sinks->witness : NULL,
		.output_max = a->max_output,
		.output_kill = a->kill_output,
		.output_unrecorded = a->record && !strcmp(a->record, "none"),
		.input_recorded = records_input(a),
		.output_limit = a->output_limit,
		.drain_ms = (int)MIN(a->export_wait / NSEC_PER_MSEC, (uint64_t)INT32_MAX),
		.env_values = a->env_values,
		.usage_period_ns = a->usage_period,
		.baseline = rules->baseline,
		.watch = a->watch.v,
		.watch_n = a->watch.n,
		.hold = hold_policy_of(a),
		.ttl_ns = a->ttl,
		.idle_ns = a->idle,
		.restore = from->fd >= 0 ? &from->row : NULL,
		.restore_fd = from->fd,
		.host_workspace = from->host_workspace,
		.parked = keep ? agent_park_take() : NULL,
		.session = keep ? keep->session : NULL,
		.hub_fd = keep ? keep->hub_fd : 0,
		.door = keep && keep->container ? keep->container->door : NULL,
		.stderr_fd = keep && keep->container ? keep->container->stderr_fd : 0,
	};
	struct run_result res;
	struct err err = { 0 };
	int r;

	r = run_session(&res, &opt, &err);
	redaction_of_text(err.text, sizeof(err.text));
	if (err.code)
		log_error("%s", err_text(&err));
	if (r < 0) {
		run_result_write(result, &res, "internal", EXIT_WARDER, err_text(&err));
		return EXIT_WARDER;
	}
	if (keep)
		snprintf(keep->reason, 32, "%s", res.reason);
	if (!a->quiet)
		run_print_closing(&res);
	run_print_troubles(&res);
	if (res.engine.journal_error) {
		log_error("the record could not be sealed: %s", strerror(res.engine.journal_error));
		run_result_write(result, &res, "internal", EXIT_WARDER, "record not sealed");
		return EXIT_WARDER;
	}
	r = run_result_write(result, &res, res.reason, res.exit_code,
			     err.code ? err_text(&err) : NULL);
	if (r < 0) {
		log_error("result file '%s': %s", a->result, strerror(-r));
		return EXIT_WARDER;
	}
	return res.exit_code;
}

/* The agent does it, with us as its terminal. */
static bool is_for_agent(const struct run_args *a)
{
	return !a->no_agent && !a->dry_run && !a->help && agent_is_there();
}

static int hand_over(const struct run_args *a, int argc, char **argv)
{
	auto_free const char **words = calloc((size_t)argc + 1, sizeof(*words));
	struct agent_request q = { .op = AGENT_RUN, .argv = words, .tty = a->tty };
	char dir[4096];

	if (!words)
		return EXIT_WARDER;
	for (int i = 1; i < argc; i++)
		words[q.argc++] = argv[i];
	q.dir = getcwd(dir, sizeof(dir));
	return agent_talk(&q, NULL);
}

static bool has_named_workspace(const struct run_args *a)
{
	return a->workspace && !strncmp(a->workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX));
}

static int run_main(const struct run_keep *keep, int argc, char **argv)
{
	char workspace[4096] = "";
	__attribute__((cleanup(run_root_done))) struct run_root root = RUN_ROOT_INIT;
	__attribute__((cleanup(run_rules_done))) struct run_rules rules = { 0 };
	__attribute__((cleanup(run_sinks_done))) struct run_sinks sinks = { 0 };
	__attribute__((cleanup(secrets_forget))) struct run_secrets secrets = { 0 };
	__attribute__((cleanup(flat_done))) struct flat_file policy = { 0 };
	auto_buf struct buf env_values = { 0 };
	struct run_args a;
	struct sandbox_spec spec;
	__attribute__((cleanup(run_result_done))) struct run_result_file result =
		RUN_RESULT_FILE_INIT;
	struct err err = { 0 };
	__attribute__((cleanup(run_from_done))) struct run_from from = { .fd = -1 };
	enum run_sign sign = RUN_SIGN_IF_KEY;
	uint32_t pressure = PRESSURE_DROP, when_full = FULL_CONTINUE;
	AUTO(redactor) struct redactor *redactor = NULL;
	bool limited = true; /* a directory that the operator names is theirs to limit */
	int rest, code;

	if (read_args(&a, &policy, argc, argv, &rest, &err) < 0)
		return cli_bad_usage("run", &err);
	if (a.help) {
		cli_usage("run [OPTIONS] -- COMMAND [ARGUMENT...]", PURPOSE, OPTIONS);
		return 0;
	}
	if (rest == argc && !keep &&
	    (is_for_agent(&a) || !a.root.root || !image_is_reference(a.root.root))) {
		err_set(&err, EINVAL, "no command given%s",
			a.root.root ? " (an image's own is for --no-agent)" : "");
		return cli_bad_usage("run", &err);
	}
	if (!keep && is_for_agent(&a))
		return hand_over(&a, argc, argv);
	if (has_named_workspace(&a) && (!a.dry_run || keep)) {
		if (named_workspace_take(workspace, &limited, a.tenant ? a.tenant : "default",
					 a.workspace + strlen(WORKSPACE_PREFIX), a.disk, &err) < 0)
			return cli_fail(&err);
		a.workspace = NULL; /* it is ours, and below our state: make_spec would refuse it */
	}
	if (make_spec(&spec, &a, argv + rest, &err) < 0 ||
	    run_sinks_make(&sinks, a.kafka, &a.exports, &err) < 0 ||
	    parse_sign(a.sign, &sign, &err) < 0 ||
	    parse_pressure(a.on_pressure, &pressure, &err) < 0 || check_rings(&a, &err) < 0 ||
	    parse_full(a.when_full, &when_full, &err) < 0 || check_watches(&a.watch, &err) < 0 ||
	    join_watch_env(&env_values, &a.watch_env) < 0)
		return cli_bad_usage("run", &err);
	if (*workspace)
		spec.workspace = workspace;
	spec.workspace_unlimited = !limited;
	if (secrets_no_core(&err) < 0 || secrets_read(&secrets, &spec, &a.secrets, &err) < 0 ||
	    net_read_routes(&spec, &err) < 0)
		return cli_fail(&err);
	if (run_root_open(&root, &spec, &a.root, !keep, &err) < 0)
		return cli_fail(&err);
	if (keep && keep->container &&
	    (keep->container->amend(keep->container->arg, &spec, &err) < 0 ||
	     check_writable(&spec, &err) < 0))
		return cli_fail(&err);
	if (spec.secrets_n && a.watch.n < WATCHLIST_MAX && a.watch.n < OPTION_LIST_MAX)
		a.watch.v[a.watch.n++] = SECRET_DIR "/"; /* who read one, and when */
	if (a.witness && run_sinks_witness(&sinks, a.witness, &sign, &err) < 0)
		return cli_bad_usage("run", &err);
	if (a.result && !a.dry_run && geteuid() == 0 &&
	    run_result_open(&result, a.result, &spec, &err) < 0)
		return cli_fail(&err);
	if (run_rules_load(&rules, &a.rules, !a.no_default_rules, a.baseline) < 0)
		return EXIT_WARDER;
	if (a.dry_run)
		return dry_run(&spec, a.json, &err);
	if (geteuid() != 0) {
		err_set(&err, EPERM,
			"running a sandbox needs root: it loads BPF programs and "
			"creates cgroups (try sudo)");
		return cli_fail(&err);
	}
	if (spec.tty && term_size(STDIN_FILENO, &spec.tty_rows, &spec.tty_cols) < 0) {
		err_set(&err, ENOTTY, "option '--tty': the input device is not a terminal (TTY)");
		return cli_fail(&err);
	}
	a.env_values = env_values.p;
	if (run_redactor(&redactor, &a.redact, &spec,
			 a.session_dir ? REDACT_KEY_KNOWN : REDACT_KEY_HOST, &err) < 0)
		return cli_fail(&err);
	if (redaction_of_log(redactor) < 0)
		return EXIT_WARDER;
	run_sinks_warn(&sinks);
	if (open_from(&from, &a, *workspace, &err) < 0)
		return cli_fail(&err);
	code = run_it(keep, &from, &a, &spec, &rules, redactor, &sinks, sign, pressure, when_full,
		      &result);
	redaction_of_log(NULL);
	net_forget_routes(&spec);
	named_workspace_release();
	return code;
}

int cmd_run(int argc, char **argv)
{
	return run_main(NULL, argc, argv);
}

int run_kept(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32])
{
	return run_contained(argc, argv, session, hub_fd, ret_reason, NULL);
}

int run_contained(int argc, char **argv, const char *session, int hub_fd, char ret_reason[32],
		  const struct run_container *c)
{
	const struct run_keep keep = { session, hub_fd, ret_reason, c };

	return run_main(&keep, argc, argv);
}

/* ---- for an agent ---- */

/* What somebody may ask for who is not root: none of it reads or writes files of the host, names a key, or weakens what
 * is recorded. */
static const char *const FREE[] = {
	"policy", "timeout",  "ttl",	   "idle",	  "memory",	"pids",	      "cpus",
	"disk",	  "tmp",      "nofile",	   "fsize",	  "name",	"max-output", "env",
	"cwd",	  "tty",      "quiet",	   "kill-output", "keep-texts", "net",	      "workspace",
	"help",	  "no-agent", "watch-env", "from",	  "root",	"user",
};

static int check_free(int argc, char **argv, const struct agent_restrict *who, struct err *err)
{
	struct option_def defs[ARRAY_SIZE(FREE) + 1] = { 0 };
	struct run_args a;
	size_t n = 0;
	int rest, r;

	for (const struct option_def *d = OPTIONS; d->name; d++)
		for (size_t i = 0; i < ARRAY_SIZE(FREE); i++)
			if (!strcmp(FREE[i], d->name))
				defs[n++] = *d;
	args_defaults(&a);
	r = options_parse(defs, &a, argc, argv, &rest, err);
	if (r < 0)
		return err_wrap(err, r, "not for who is not root");
	if (a.policy &&
	    (!policy_is_installed(a.policy) ||
	     (who->policies && who->policies->n && !agent_names_have(who->policies, a.policy))))
		return err_set(err, EPERM, "option '--policy': '%s' is not one that you may use",
			       a.policy);
	if (a.workspace && strncmp(a.workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX)))
		return err_set(err, EPERM, "option '--workspace': only name:NAME is for you");
	if (a.root.root && !image_is_reference(a.root.root) && strcmp(a.root.root, "host"))
		return err_set(err, EPERM, "option '--root': only image:NAME is for you");
	if (a.network.mode && !strcmp(a.network.mode, "host"))
		return err_set(err, EPERM, "option '--net': 'host' is not for you");
	return 0;
}

static int copy_name(char *ret, const char *what, const char *text, struct err *err)
{
	if (strlen(text) >= REGISTRY_NAME)
		return err_set(err, EINVAL, "option '--%s': longer than %d bytes", what,
			       REGISTRY_NAME - 1);
	snprintf(ret, REGISTRY_NAME, "%s", text);
	return 0;
}

int run_inspect(struct run_request *ret, int argc, char **argv,
		const struct agent_restrict *restrict_to, struct err *err)
{
	__attribute__((cleanup(flat_done))) struct flat_file policy = { 0 };
	struct registry_entry *e = &ret->entry;
	struct run_args a;
	int rest, r = 0;

	*ret = (struct run_request){ 0 };
	if (restrict_to)
		r = check_free(argc, argv, restrict_to, err);
	if (r == 0)
		r = read_args(&a, &policy, argc, argv, &rest, err);
	if (r == 0)
		r = check_given(&a, err);
	if (r < 0)
		return r;
	ret->tty = a.tty;
	ret->has_command = rest < argc;
	e->memory = a.memory;
	e->pids = a.pids;
	e->cpu_milli = a.cpus;
	e->disk = a.disk;
	e->ttl_ns = a.ttl;
	e->tty = a.tty;
	e->has_command = ret->has_command;
	r = copy_name(e->name, "name", a.name ? a.name : "", err);
	if (r == 0)
		r = copy_name(e->tenant, "tenant",
			      restrict_to ? restrict_to->tenant
			      : a.tenant  ? a.tenant
					  : "default",
			      err);
	if (r == 0 && a.workspace &&
	    !strncmp(a.workspace, WORKSPACE_PREFIX, strlen(WORKSPACE_PREFIX)))
		r = copy_name(e->workspace, "workspace", a.workspace + strlen(WORKSPACE_PREFIX),
			      err);
	return r;
}
