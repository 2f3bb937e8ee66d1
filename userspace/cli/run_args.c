// SPDX-License-Identifier: Apache-2.0
/* The options of a run: their table, what they are without a word, and reading them. */
#include "userspace/cli/run_args.h"

#include <stddef.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/policy.h"
#include "userspace/cli/run_rules.h"
#include "userspace/cli/run_secret.h"
#include "userspace/pipeline/run.h"

#define DRAIN_DEFAULT_NS  (10 * NSEC_PER_SEC)
#define HOLD_DEFAULT_NS	  (300 * NSEC_PER_SEC)
#define FREEZE_DEFAULT_NS (900 * NSEC_PER_SEC)

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
	{ "disk", 0, OPT_SIZE, AT(disk), "SIZE",
	  "size of the private /workspace, or of a named one (default: 512M)" },
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

void run_args_defaults(struct run_args *a)
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

int run_check_given(const struct run_args *a, struct err *err)
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

bool run_records_input(const struct run_args *a)
{
	return a->record && !strcmp(a->record, "input");
}

int run_read_args(struct run_args *a, struct flat_file *policy, int argc, char **argv, int *rest,
		  struct err *err)
{
	struct run_args first;
	int r;

	run_args_defaults(a);
	run_args_defaults(&first);
	r = options_parse(OPTIONS, &first, argc, argv, rest, err);
	if (r < 0 || !first.policy || first.help) {
		*a = first;
		return r < 0 ? r : run_check_values(a, err);
	}
	r = policy_open(policy, first.policy, err);
	if (r == 0)
		r = policy_apply(policy, OPTIONS, a, run_check_value, err);
	if (r < 0)
		return err_wrap(err, r, "policy");
	r = options_parse(OPTIONS, a, argc, argv, rest, err);
	return r < 0 ? r : run_check_values(a, err);
}

/* A policy's value, and the file that it names: told with the line it stands in. */
static int check_with_file(const char *option, const char *value, struct err *err)
{
	__attribute__((cleanup(secrets_forget))) struct run_secrets secrets = { 0 };
	const struct option_list one = { { value }, 1 };
	struct sandbox_spec spec = { 0 };
	AUTO(redactor) struct redactor *trial = NULL;
	struct redact_args redact = { 0 };
	int r = run_check_value(option, value, err);

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

	run_args_defaults(&a);
	r = policy_open(&policy, word, err);
	if (r == 0)
		r = policy_apply(&policy, OPTIONS, &a, check_with_file, err);
	if (r < 0)
		return r; /* it says where */
	r = run_make_spec(&spec, &a, argv + 1, err);
	if (r == 0)
		r = secrets_read(&secrets, &spec, &a.secrets, err);
	if (r == 0)
		r = run_redactor(&trial, &a.redact, &spec, REDACT_KEY_TRIAL, err);
	if (r == 0)
		r = run_root_open(&root, &spec, &a.root, true, err);
	if (r == 0)
		r = run_check_rings(&a, err);
	if (r == 0)
		r = run_check_watches(&a.watch, err);
	spec.session = "check";
	if (r == 0)
		r = sandbox_plan_new(&plan, &spec, err);
	if (r < 0)
		return err_wrap(err, r, "%s", policy.path);
	/* What is wrong with a rule file is told there. */
	return run_rules_load(&rules, &a.rules, !a.no_default_rules, a.baseline) < 0 ? -EBADMSG : 0;
}
