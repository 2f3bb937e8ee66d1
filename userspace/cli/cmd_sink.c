// SPDX-License-Identifier: Apache-2.0
/* One marked event through a sink, as a session would send it, and what the other side said. */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/base/log.h"
#include "userspace/base/ulid.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/sinks.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/source.h"

DEFINE_AUTO(fanout, fanout_free)

#define WAIT_DEFAULT_NS (15 * NSEC_PER_SEC)

struct sink_args {
	uint64_t wait;
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "wait", 'w', OPT_DURATION, offsetof(struct sink_args, wait), "TIME",
	  "give up when the event was not taken by then (default: 15s)" },
	{ "json", 0, OPT_FLAG, offsetof(struct sink_args, json), NULL,
	  "one JSON object; of a list: an array of {name, class}" },
	{ "help", 'h', OPT_FLAG, offsetof(struct sink_args, help), NULL, "this text" },
	{ 0 },
};

/* ---- a journal of one event ---- */

struct one {
	struct buf rec;
	bool read;
};

static int one_next(void *arg, struct str *ret_rec, uint64_t *ret_seq, struct err *err)
{
	struct one *o = arg;

	(void)err;
	if (o->read)
		return 0;
	o->read = true;
	*ret_rec = (struct str){ o->rec.p, o->rec.n };
	*ret_seq = 1;
	return 1;
}

static int one_seek(void *arg, uint64_t seq, struct err *err)
{
	(void)err;
	((struct one *)arg)->read = seq > 0;
	return 0;
}

static int one_open(void *arg, struct export_source *ret, struct err *err)
{
	(void)err;
	*ret = (struct export_source){ arg, one_next, one_seek, NULL };
	return 0;
}

/* An event about the audit itself, which says what it is: it starts no alarm, and is found again. */
static int make_event(struct buf *out, const char *session)
{
	char time[RFC3339_NS_LEN + 1], host[256] = "", text[400], id[64];
	struct json j;

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = 0;
	rfc3339_ns(time, clock_real_ns());
	snprintf(id, sizeof(id), "%s:1", session);
	snprintf(text, sizeof(text),
		 "warder sink test: a test event from host '%s', no session ran", host);
	const struct {
		const char *key, *value;
	} rows[] = {
		{ "kind", "audit.start" },  { "vantage", "agent" },    { "session", session },
		{ "sandbox", "sink-test" }, { "tenant", "sink-test" }, { "host", host },
	};

	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "v");
	json_u64(&j, 1);
	json_key(&j, "id");
	json_strz(&j, id);
	json_key(&j, "seq");
	json_u64(&j, 1);
	json_key(&j, "time");
	json_strz(&j, time);
	json_key(&j, "mono");
	json_u64(&j, clock_boot_ns());
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_key(&j, rows[i].key);
		json_strz(&j, rows[i].value);
	}
	json_key(&j, "audit");
	json_object_begin(&j);
	json_key(&j, "message");
	json_strz(&j, text);
	json_object_end(&j);
	json_object_end(&j);
	return out->failed ? -ENOMEM : 0;
}

/* ---- what came of it ---- */

static void report_json(const struct fanout_status *row, const char *id, bool taken, uint64_t ms)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "sink");
	json_strz(&j, row->name);
	json_key(&j, "taken");
	json_bool(&j, taken);
	json_key(&j, "id");
	json_strz(&j, id);
	json_key(&j, "milliseconds");
	json_u64(&j, ms);
	json_key(&j, "said");
	json_strz(&j, row->poison ? row->why : taken ? row->said : row->text);
	json_object_end(&j);
	cli_print_line(&out);
}

static int report(const struct fanout_status *row, const char *id, uint64_t ms, bool json)
{
	bool taken = row->acked >= 1 && !row->poison && !row->skipped;

	if (json)
		report_json(row, id, taken, ms);
	else if (row->poison)
		printf("%s: refused for good: %s\n", row->name, row->why);
	else if (row->skipped)
		printf("%s: its filter does not let audit.start through; nothing was sent\n",
		       row->name);
	else if (taken)
		printf("%s: taken after %llu ms, event id %s%s%s\n", row->name,
		       (unsigned long long)ms, id, row->said[0] ? ": " : "", row->said);
	else
		printf("%s: NOT taken within %llu ms: %s\n", row->name, (unsigned long long)ms,
		       row->text[0] ? row->text : "the other side says nothing");
	return cli_finish_output(taken ? 0 : 1);
}

static int test(const struct sink_args *a, const char *word, struct err *err)
{
	__attribute__((cleanup(exporter_config_done))) struct exporter_config cfg = { 0 };
	uint64_t began, wait = a->wait ? a->wait : WAIT_DEFAULT_NS;
	AUTO(fanout) struct fanout *fanout = NULL;
	char session[ULID_LEN + 1], id[64];
	static struct one one; /* the fan-out's thread reads it until the end */
	struct fanout_status row;
	struct fanout_options fo = {
		.session = session,
		.cursor_dirfd = -1,
		.open_source = one_open,
		.open_source_arg = &one,
		.filters = &sink_filters,
	};

	ulid_make(session, clock_real_ns());
	snprintf(id, sizeof(id), "%s:1", session);
	if (make_event(&one.rec, session) < 0)
		return err_set(err, ENOMEM, "out of memory");
	if (sinks_parse(&cfg, word, err) < 0)
		return -EINVAL;
	if (exporter_config_warning(&cfg))
		log_warn("sink '%s': %s", cfg.name, exporter_config_warning(&cfg));
	if (fanout_new(&fanout, &fo, err) < 0 || fanout_add(fanout, &cfg, err) < 0)
		return -EINVAL;
	began = clock_ns(CLOCK_MONOTONIC);
	if (fanout_start(fanout, err) < 0)
		return -EINVAL;
	fanout_drain(fanout, 1, (int)MIN(wait / NSEC_PER_MSEC, (uint64_t)INT_MAX));
	fanout_status(fanout, &row, 1);
	return report(&row, id, (clock_ns(CLOCK_MONOTONIC) - began) / NSEC_PER_MSEC, a->json);
}

/* Descriptions may hold secrets: only the class is shown. */
static void print_list(const struct flat_file *f, bool as_json)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	for (size_t i = 0; !as_json && i < f->n; i++)
		printf("%-24s %.*s\n", f->v[i].key, (int)strcspn(f->v[i].value, ":"),
		       f->v[i].value);
	if (!as_json)
		return;
	json_init(&j, &out);
	json_array_begin(&j);
	for (size_t i = 0; i < f->n; i++) {
		struct str class = { f->v[i].value, strcspn(f->v[i].value, ":") };

		json_object_begin(&j);
		json_key(&j, "name");
		json_strz(&j, f->v[i].key);
		json_key(&j, "class");
		json_str(&j, class);
		json_object_end(&j);
	}
	json_array_end(&j);
	cli_print_line(&out);
}

/* A host without the file has no named sinks: an empty list. */
static int list(bool as_json, struct err *err)
{
	struct flat_file f = { 0 };
	char path[PATH_MAX];
	int r = sinks_path(path, sizeof(path), err);

	if (r == 0)
		r = flat_load(&f, path, err);
	if (r < 0 && r != -ENOENT)
		return r;
	print_list(&f, as_json);
	if (r == 0)
		flat_done(&f);
	return cli_finish_output(0);
}

int cmd_sink(int argc, char **argv)
{
	struct sink_args args = { 0 };
	struct err err = { 0 };
	int n, r;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("sink", &err);
	if (args.help) {
		cli_usage(
			"sink test [OPTIONS] NAME|SINK\n       warder sink list [--json]",
			"Send one marked event (audit.start, sandbox \"sink-test\") to a sink, and tell what\n"
			"the other side said. NAME: out of /etc/warder/sinks.yaml, a line each:\n"
			"  soc: kafka:broker:9092,topic=sandboxes\n"
			"SINK: file:PATH, kafka:BROKERS[,key=value...], ... (exporters/README.md)\n\n"
			"Exit code: 0 taken, 1 not taken or refused, 125 warder's own error.",
			OPTIONS);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	if (n == 1 && !strcmp(argv[1], "list")) {
		r = list(args.json, &err);
	} else if (n == 2 && !strcmp(argv[1], "test")) {
		r = test(&args, argv[2], &err);
	} else {
		err_set(&err, EINVAL, "expected 'test NAME|SINK' or 'list'");
		return cli_bad_usage("sink", &err);
	}
	return r < 0 ? cli_fail(&err) : r;
}
