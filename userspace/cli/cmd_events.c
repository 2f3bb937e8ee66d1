// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <unistd.h>

#include "rules/rule.h"
#include "userspace/base/auto.h"
#include "userspace/base/log.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/store/files.h"
#include "userspace/store/store.h"

DEFINE_AUTO(journal_reader, journal_reader_free)
DEFINE_AUTO(rule_filter, rule_filter_free)

#define FOLLOW_US     50000
#define EVENT_MEM_MAX (16u << 20)

struct events_args {
	const char *filter;
	bool follow, help;
};

static const struct option_def OPTIONS[] = {
	{ "filter", 'f', OPT_STR, offsetof(struct events_args, filter), "EXPR",
	  "only events that match a rule condition, e.g. 'kind = exec and proc.exe startswith /tmp'" },
	{ "follow", 'F', OPT_FLAG, offsetof(struct events_args, follow), NULL,
	  "wait for more until the session is sealed" },
	{ "help", 'h', OPT_FLAG, offsetof(struct events_args, help), NULL, "this text" },
	{ 0 },
};

static int print_events(int fd, struct journal_reader *reader, const struct rule_filter *filter,
			bool follow, struct err *err)
{
	struct arena arena;
	uint64_t seq = 0, last = 0;
	bool alone = false; /* nobody writes any more, since before the last look */
	struct str rec;
	int r;

	arena_init(&arena, EVENT_MEM_MAX);
	for (;;) {
		r = journal_reader_next(reader, &rec, &seq, err);
		if (r < 0)
			break;
		if (r == 0) {
			if (fflush(stdout) != 0 || !follow || journal_reader_at_end(reader)) {
				r = bundle_check_end(fd, last, err);
				break;
			}
			if (alone) {
				r = bundle_check_end(fd, last, err);
				if (r == 0)
					r = err_set(err, EBADMSG,
						    "its writer has gone and left no seal; what is "
						    "there ends at record %llu",
						    (unsigned long long)last);
				break;
			}
			alone = !store_has_writer(fd);
			if (!alone)
				usleep(FOLLOW_US);
			continue;
		}
		last = seq;
		alone = false;
		r = cli_record_wanted(filter, &arena, rec, err);
		if (r < 0) {
			err_wrap(err, r, "record %llu", (unsigned long long)seq);
			break;
		}
		if (r > 0 && !cli_print_record(rec, stdout)) {
			r = 0; /* the reader of our output has gone, or cli_finish_output tells */
			break;
		}
	}
	arena_done(&arena);
	return r;
}

int cmd_events(int argc, char **argv)
{
	AUTO(journal_reader) struct journal_reader *reader = NULL;
	AUTO(rule_filter) struct rule_filter *filter = NULL;
	struct events_args args = { 0 };
	auto_close int fd = -1;
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("events", &err);
	if (args.help) {
		cli_usage(
			"events [OPTIONS] SESSION|DIR",
			"Print the events of a session, one JSON object a line.\n\n"
			"SESSION: its id, or at least four characters of its start or end. DIR: with a '/'.\n"
			"Filters know the fields of `warder fields` and the names of Falco.",
			OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL, n == 0 ? "which session?" : "one session at a time");
		return cli_bad_usage("events", &err);
	}
	if (args.filter && rule_filter_new(&filter, str_from(args.filter), &err) < 0) {
		err_wrap(&err, -EINVAL, "--filter");
		return cli_fail(&err);
	}
	if (bundle_open(&fd, argv[1], "events", &err) < 0)
		return cli_fail(&err);
	if (journal_reader_open(&reader, fd, &err) < 0 ||
	    print_events(fd, reader, filter, args.follow, &err) < 0) {
		fflush(stdout);
		err_wrap(&err, -EBADMSG, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	return cli_finish_output(0);
}
