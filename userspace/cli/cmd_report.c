// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/fd_new.h"
#include "userspace/base/log.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/report_extra.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/walk.h"
#include "userspace/replay/report.h"
#include "userspace/store/manifest.h"
#include "userspace/store/store.h"

DEFINE_AUTO(report, report_free)

#define ALIASES_MAX 256

struct report_args {
	struct option_list keys;
	const char *output;
	uint64_t from, to, events;
	bool quiet, help;
};

static const struct option_def OPTIONS[] = {
	{ "output", 'o', OPT_STR, offsetof(struct report_args, output), "FILE",
	  "the page, for its owner alone: who called sudo, or root (default: stdout)" },
	{ "key", 'k', OPT_STRLIST, offsetof(struct report_args, keys), "FILE",
	  "a host's public key the record must be signed by; repeatable" },
	{ "from", 0, OPT_DURATION, offsetof(struct report_args, from), "TIME",
	  "only what happened this long after the start, or later (90s, 2h)" },
	{ "to", 0, OPT_DURATION, offsetof(struct report_args, to), "TIME",
	  "only what happened this long after the start, or earlier" },
	{ "events", 'n', OPT_U64, offsetof(struct report_args, events), "N",
	  "at most so many events in the page (200000); the others are counted by time" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct report_args, quiet), NULL,
	  "no progress, no warning about the record" },
	{ "help", 'h', OPT_FLAG, offsetof(struct report_args, help), NULL, "this text" },
	{ 0 },
};

struct making {
	struct report *report;
	uint64_t records, seen; /* progress: of how many */
	bool progress;
};

static void show_progress(const char *what, uint64_t done, uint64_t total)
{
	fprintf(stderr, "\r%s %3u%%", what, total ? (unsigned)(done * 100 / total) : 100);
	if (done >= total)
		fputs("\r                  \r", stderr);
}

static void verifying(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	show_progress("verifying", done, total);
}

static int add_event(void *arg, const struct event *ev, struct err *err)
{
	struct making *m = arg;
	int r = report_add(m->report, ev);

	if (m->progress && ++m->seen % 10000 == 0)
		show_progress("writing", MIN(m->seen, m->records), m->records);
	return r < 0 ? err_set(err, r, "writing the output: %s", strerror(-r)) : 0;
}

static size_t aliases_of_rules(struct report_alias *ret)
{
	size_t n = 0;

	for (size_t i = 0; n < ALIASES_MAX; i++) {
		int r = rule_field_alias(i, &ret[n].name, &ret[n].field);

		if (r < 0)
			break;
		n += r > 0;
	}
	return n;
}

/* What can be read is shown, and the page says how far that was. *ret_damage: what stopped it, "" nothing. */
static int make_page(int fd, const struct report_args *args, const struct verify_report *v,
		     struct fd_new *file, struct err *ret_damage, struct err *err)
{
	const struct report_evidence evidence = {
		.code = v->state,
		.text = v->text,
		.head = v->head,
		.host_key = v->host_key,
		.is_signed = v->is_signed,
		.is_trusted = v->is_trusted,
		.records = v->records,
		.lost = v->gaps,
		.checkpoints = v->checkpoints,
		.redactions = v->redactions,
	};
	struct report_alias aliases[ALIASES_MAX];
	struct report_options opt = { .write = fd_new_write,
				      .write_arg = file,
				      .from_ns = args->from,
				      .to_ns = args->to,
				      .events_max = (uint32_t)args->events,
				      .has_terminal = report_extra_has_terminal(fd),
				      .aliases = aliases,
				      .aliases_n = aliases_of_rules(aliases) };
	AUTO(report) struct report *report = NULL;
	auto_buf struct buf manifest = { 0 };
	struct making m = { .records = v->records,
			    .progress = !args->quiet && isatty(STDERR_FILENO) };
	int r;

	if (v->state != VERIFY_ALTERED && manifest_load(fd, &manifest) == 0)
		opt.manifest = (struct str){ manifest.p, manifest.n };
	r = report_begin(&report, &opt, &evidence);
	if (r < 0)
		return err_set(err, r, "writing the output: %s", strerror(-r));
	m.report = report;
	r = session_walk(fd, add_event, &m, NULL, ret_damage);
	if (r < 0 && r != -EBADMSG && r != -EINVAL) {
		*err = *ret_damage;
		return r;
	}
	r = report_extra(fd, report, ret_damage, err);
	if (r == 0)
		r = report_end(report, ret_damage->code ? err_text(ret_damage) : NULL);
	if (m.progress)
		show_progress("writing", 1, 1);
	return r < 0 ? err_set(err, r, "writing the output: %s", strerror(-r)) : 0;
}

/* A page that looks whole must not hide on the command line that the record is not. */
static int tell(const struct report_args *args, const struct verify_report *v,
		const struct err *damage)
{
	if (v->state == VERIFY_OK && !damage->code)
		return VERIFY_OK;
	if (!args->quiet && v->state != VERIFY_OK)
		log_warn("the record is not whole: %s", v->text);
	if (!args->quiet && damage->code)
		log_warn("the page ends where the record could not be read: %s", err_text(damage));
	/* intact by its hashes, and still no record of ours: nobody should build on it */
	return damage->code && (v->state == VERIFY_OK || v->state == VERIFY_GAPS) ? VERIFY_ALTERED
										  : (int)v->state;
}

static int write_report(int fd, const struct report_args *args, const struct verify_report *v,
			struct err *err)
{
	struct err damage = { 0 };
	struct fd_new file;
	int r;

	r = fd_new_open(&file, args->output, 0600, err);
	if (r < 0)
		return r;
	fd_new_give_to_caller(&file);
	r = make_page(fd, args, v, &file, &damage, err);
	if (r == 0)
		r = fd_new_commit(&file, err);
	fd_new_done(&file);
	return r < 0 ? r : tell(args, v, &damage);
}

static int usage(void)
{
	cli_usage(
		"report [OPTIONS] SESSION|DIR",
		"Write a session as one HTML page: terminal, process tree, events, alerts, files, network,\n"
		"packages on one clock, and the verdict of verify. The page needs no network and opens from\n"
		"disk. Of very long sessions it holds a part (--from, --to, --events) and says so.\n\n"
		"Exit code: that of verify: 0 intact and sealed, 1 altered, 2 open or truncated,\n"
		"3 intact with declared gaps; 125 no page was written.",
		OPTIONS);
	return 0;
}

static int check_args(const struct report_args *args, int n, struct err *err)
{
	if (n != 1)
		return err_set(err, EINVAL, n == 0 ? "which session?" : "one session at a time");
	if (args->to && args->to <= args->from)
		return err_set(err, EINVAL, "option '--to' must be later than '--from'");
	if (args->events > REPORT_EVENTS_MAX)
		return err_set(err, EINVAL, "option '--events': at most %u", REPORT_EVENTS_MAX);
	return 0;
}

int cmd_report(int argc, char **argv)
{
	uint8_t keys[BUNDLE_KEYS_MAX][STORE_HASH_LEN];
	struct verify_options opt = { .keys = (const uint8_t(*)[STORE_HASH_LEN])keys };
	struct report_args args = { 0 };
	struct verify_report rep;
	auto_close int fd = -1;
	struct err err = { 0 };
	int n, n_keys, r;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("report", &err);
	if (args.help)
		return usage();
	if (check_args(&args, n, &err) < 0)
		return cli_bad_usage("report", &err);
	n_keys = bundle_read_keys(&args.keys, keys, &err);
	opt.n_keys = (size_t)MAX(n_keys, 0);
	if (n_keys < 0 || bundle_open(&fd, argv[1], "report", &err) < 0)
		return cli_fail(&err);
	r = store_verify_signed(fd, &opt, &rep,
				isatty(STDERR_FILENO) && !args.quiet ? verifying : NULL, NULL,
				&err);
	if (r == 0)
		r = write_report(fd, &args, &rep, &err);
	if (r == -EPIPE)
		return rep.state; /* who reads has enough */
	if (r < 0) {
		err_wrap(&err, r, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	return r;
}
