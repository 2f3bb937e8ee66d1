// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/walk.h"
#include "userspace/replay/report.h"
#include "userspace/store/store.h"

DEFINE_AUTO(report, report_free)

#define PAGE_MAX ((size_t)1 << 30)

struct report_args {
	struct option_list keys;
	const char *output;
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "output", 'o', OPT_STR, offsetof(struct report_args, output), "FILE",
	  "the page (default: stdout)" },
	{ "key", 'k', OPT_STRLIST, offsetof(struct report_args, keys), "FILE",
	  "a host's public key the record must be signed by; repeatable" },
	{ "help", 'h', OPT_FLAG, offsetof(struct report_args, help), NULL, "this text" },
	{ 0 },
};

static int add_event(void *report, const struct event *ev, struct err *err)
{
	int r = report_add(report, ev);

	return r < 0 ? err_set(err, r, "record %llu: %m", (unsigned long long)event_u64(ev, F_SEQ))
		     : 0;
}

/* What can be read is shown, and the verdict says how far it can be trusted. */
static int make_page(int fd, const struct verify_report *v, struct buf *page, struct err *err)
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
	};
	AUTO(report) struct report *report = NULL;
	int r;

	r = report_new(&report);
	if (r < 0)
		return err_set(err, r, "%m");
	r = session_walk(fd, add_event, report, NULL, err);
	if (r < 0 && v->state != VERIFY_ALTERED)
		return r;
	*err = (struct err){ 0 };
	r = report_write(report, &evidence, page);
	return r < 0 ? err_set(err, r, "writing the page: %m") : 0;
}

static int write_page(const char *path, const struct buf *page, struct err *err)
{
	if (path && strcmp(path, "-"))
		return cli_write_file(path, page, 0600, err);
	fwrite(page->p, 1, page->n, stdout);
	return 0;
}

int cmd_report(int argc, char **argv)
{
	uint8_t keys[BUNDLE_KEYS_MAX][STORE_HASH_LEN];
	struct verify_options opt = { .keys = (const uint8_t(*)[STORE_HASH_LEN])keys };
	struct report_args args = { 0 };
	struct verify_report rep;
	auto_close int fd = -1;
	auto_buf struct buf page;
	struct err err = { 0 };
	int n;

	buf_init(&page, PAGE_MAX);
	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("report", &err);
	if (args.help) {
		cli_usage(
			"report [OPTIONS] SESSION|DIR",
			"Write a session as one HTML page: timeline, process tree, alerts, files, network,\n"
			"and the verdict of verify. The page needs no network and opens from disk.\n\n"
			"Exit code: that of verify: 0 intact and sealed, 1 altered, 2 open or truncated,\n"
			"3 intact with declared gaps; 125 no page was written.",
			OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL, n == 0 ? "which session?" : "one session at a time");
		return cli_bad_usage("report", &err);
	}
	opt.n_keys = args.keys.n;
	if (bundle_read_keys(&args.keys, keys, &err) < 0 ||
	    bundle_open(&fd, argv[1], "report", &err) < 0)
		return cli_fail(&err);
	if (store_verify_signed(fd, &opt, &rep, NULL, NULL, &err) < 0 ||
	    make_page(fd, &rep, &page, &err) < 0) {
		err_wrap(&err, -EBADMSG, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	if (write_page(args.output, &page, &err) < 0)
		return cli_fail(&err);
	return cli_finish_output(rep.state);
}
