// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "exporters/record.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/base/ulid.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/export_render.h"
#include "userspace/cli/sinks.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/checkpoint_source.h"
#include "userspace/pipeline/privdrop.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/source.h"
#include "userspace/store/store.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(fanout, fanout_free)

#define WAIT_DEFAULT_NS (60 * NSEC_PER_SEC)

/* Exit codes of sending */
#define EXIT_BEHIND  1
#define EXIT_REFUSED 3 /* as verify's: all of it, but for what is declared missing */

struct export_args {
	uint64_t wait;
	struct export_render render;
	bool all, help;
};

static const struct option_def OPTIONS[] = {
	{ "wait", 'w', OPT_DURATION, offsetof(struct export_args, wait), "TIME",
	  "give up on a sink that does not take everything within this time (default: 60s)" },
	{ "all", 'a', OPT_FLAG, offsetof(struct export_args, all), NULL,
	  "from the first event, whatever was sent before" },
	{ "format", 'f', OPT_STR, offsetof(struct export_args, render.format), "FORMAT",
	  "write the events here instead: json, ocsf, ecs, cef or leef; or what the terminal or output "
	  "showed: cast (asciicast v2), cast3 (v3) or text" },
	{ "ocsf-version", 'V', OPT_STR, offsetof(struct export_args, render.ocsf_version),
	  "VERSION", "with --format ocsf: 1.8 (default), 1.5, 1.3 or 1.1" },
	{ "filter", 'F', OPT_STR, offsetof(struct export_args, render.filter), "EXPR",
	  "with --format: only events that match a rule condition" },
	{ "output", 'o', OPT_STR, offsetof(struct export_args, render.output), "FILE",
	  "with --format: write to FILE (default: stdout)" },
	{ "help", 'h', OPT_FLAG, offsetof(struct export_args, help), NULL, "this text" },
	{ 0 },
};

/* Session id from the first record, and the number of the last one. */
static int scan_bundle(int fd, char session[ULID_LEN + 1], uint64_t *ret_last, struct err *err)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	struct export_record rec = { 0 };
	struct str text;
	uint64_t seq = 0;
	int r;

	r = journal_reader_open(&reader, fd, err);
	if (r < 0)
		return r;
	r = journal_reader_next(reader, &text, &seq, err);
	if (r == 0)
		return err_set(err, ENODATA, "the session has no events yet");
	if (r < 0)
		return r;
	r = record_scan(&rec, text);
	if (r < 0 || rec.session.n != ULID_LEN)
		return err_set(err, EBADMSG, "the first record names no session");
	memcpy(session, rec.session.p, ULID_LEN);
	session[ULID_LEN] = 0;
	if (!ulid_is_valid(session))
		return err_set(err, EBADMSG, "the first record names no session");
	while ((r = journal_reader_next(reader, &text, ret_last, err)) > 0)
		seq = *ret_last;
	*ret_last = seq;
	return r;
}

/* Refused records are lost for that sink: a script must not take it for success. */
static int report(struct fanout *f, const struct fanout_options *fo, uint64_t last, int behind,
		  FILE *out)
{
	struct fanout_status rows[FANOUT_SINKS_MAX];
	size_t n = MIN(fanout_status(f, rows, ARRAY_SIZE(rows)), ARRAY_SIZE(rows));
	int code = behind ? EXIT_BEHIND : 0;

	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s: %llu of %llu events%s%s\n", rows[i].name,
			(unsigned long long)rows[i].acked,
			(unsigned long long)(rows[i].own_seq ? rows[i].sent : last),
			fanout_status_lag(&rows[i], last) && rows[i].text[0] ? ": " : "",
			fanout_status_lag(&rows[i], last) ? rows[i].text : "");
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].poison)
			continue;
		fprintf(out, "%s: %llu events refused for good: %s\n", rows[i].name,
			(unsigned long long)rows[i].poison, rows[i].why);
		if (fo->cursor_dirfd >= 0)
			fprintf(out, "%s: they are in %s/cursors/%s.%s.dlq.jsonl\n", rows[i].name,
				state_dir(), fo->session, rows[i].name);
		code = code ? code : EXIT_REFUSED;
	}
	return cli_finish_output(code);
}

/* With --all no cursor is needed: who may not write there exports all the same. */
static int open_cursors(struct fanout_options *fo, const struct export_args *a, uid_t uid,
			gid_t gid, struct err *err)
{
	int fd, r;

	r = cursors_open(&fd, geteuid() ? geteuid() : uid, geteuid() ? getegid() : gid, err);
	if (r == 0) {
		fo->cursor_dirfd = fd;
		fo->from_start = a->all;
	} else if (a->all) {
		log_warn("%s: what a sink refuses for good is not kept", err_text(err));
	}
	return a->all ? 0 : r;
}

static bool is_signed(int bundle)
{
	return faccessat(bundle, "checkpoints.log", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int export_to(const struct export_args *a, const char *word, int bundle, char **sinks,
		     int sinks_n, struct err *err)
{
	AUTO(fanout) struct fanout *fanout = NULL;
	struct checkpoint_source_arg checkpoints;
	auto_close int cursors = -1;
	char session[ULID_LEN + 1];
	uint64_t last, wait_ms;
	bool to_stdout = false; /* the events: nothing else may stand between them */
	struct stat st;
	int r;
	uid_t uid;
	gid_t gid;
	struct fanout_options fo = {
		.session = session,
		.cursor_dirfd = -1,
		.open_source = journal_source_open,
		.open_source_arg = &bundle,
		.filters = &sink_filters,
	};

	engine_ids(&uid, &gid);
	if (scan_bundle(bundle, session, &last, err) < 0) {
		err_wrap(err, -EBADMSG, "session '%s'", word);
		return cli_fail(err);
	}
	checkpoints = (struct checkpoint_source_arg){ bundle, session };
	if (open_cursors(&fo, a, uid, gid, err) < 0)
		return cli_fail(err);
	cursors = fo.cursor_dirfd;
	if (fanout_new(&fanout, &fo, err) < 0)
		return cli_fail(err);
	for (int i = 0; i < sinks_n; i++) {
		struct exporter_config cfg = { 0 };

		r = sinks_parse(&cfg, sinks[i], err);

		if (r == 0) {
			const char *path = exporter_config_get(&cfg, "path");

			to_stdout |= path && !strcmp(path, "-");
			if (exporter_config_warning(&cfg))
				log_warn("sink '%s': %s", cfg.name, exporter_config_warning(&cfg));
			r = fanout_add(fanout, &cfg, err);
			if (r == 0 && is_signed(bundle))
				r = checkpoint_sink_add(fanout, &cfg, &checkpoints, err);
			exporter_config_done(&cfg);
		}
		if (r < 0)
			return cli_fail(err);
	}
	/* A bundle that somebody copied may not be readable for the engine's user. */
	if (geteuid() == 0 && fstat(bundle, &st) == 0 && st.st_uid == uid &&
	    privdrop(uid, gid, err) < 0)
		return cli_fail(err);
	if (fanout_start(fanout, err) < 0)
		return cli_fail(err);
	fanout_notify(fanout);
	wait_ms = (a->wait ? a->wait : WAIT_DEFAULT_NS) / NSEC_PER_MSEC;
	r = fanout_drain(fanout, last, (int)MIN(wait_ms, INT32_MAX));
	r = report(fanout, &fo, last, r, to_stdout ? stderr : stdout);
	/* What there is was sent; that it is not all is no success. */
	if (bundle_check_end(bundle, UINT64_MAX, err) < 0) {
		err_wrap(err, -EBADMSG, "session '%s'", word);
		return cli_fail(err);
	}
	return r;
}

int cmd_export(int argc, char **argv)
{
	struct export_args args = { 0 };
	auto_close int fd = -1;
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("export", &err);
	if (args.help) {
		cli_usage(
			"export [OPTIONS] SESSION|DIR SINK...\n"
			"       warder export --format FORMAT [-F EXPR] [-o FILE] SESSION|DIR",
			"Send a session's events to sinks, from where each left off, or write them in a format\n"
			"of a SIEM (exporters/render/README.md), one a line.\n"
			"SINK: file:PATH, kafka:BROKERS[,key=value...], syslog, splunk, elastic, webhook,\n"
			"otlp, metrics (exporters/README.md)\n\n"
			"Exit code: 0 all taken, 1 a sink is behind or an event has no such form, 3 a sink refused\n"
			"events for good (they are kept as dead letters), 125 warder's own error.",
			OPTIONS);
		return 0;
	}
	if (n < 2 - !!args.render.format || (n > 1 && args.render.format)) {
		err_set(&err, EINVAL,
			n == 0	 ? "which session?"
			: n == 1 ? "to which sink, or in which --format?"
				 : "a sink has its format in its description: format=");
		return cli_bad_usage("export", &err);
	}
	if (!args.render.format &&
	    (args.render.ocsf_version || args.render.filter || args.render.output)) {
		err_set(&err, EINVAL, "--ocsf-version, --filter and --output need --format");
		return cli_bad_usage("export", &err);
	}
	signal(SIGPIPE, SIG_IGN);
	if (bundle_open(&fd, argv[1], "export", &err) < 0)
		return cli_fail(&err);
	if (args.render.format)
		return export_render(&args.render, argv[1], fd, &err);
	return export_to(&args, argv[1], fd, argv + 2, n - 1, &err);
}
