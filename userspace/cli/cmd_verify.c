// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/store/store.h"

struct verify_args {
	bool json, quiet, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct verify_args, json), NULL, "one JSON object" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct verify_args, quiet), NULL, "only the exit code" },
	{ "help", 'h', OPT_FLAG, offsetof(struct verify_args, help), NULL, "this text" },
	{ 0 },
};

static void progress(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	fprintf(stderr, "\rverifying %3u%%", total ? (unsigned)(done * 100 / total) : 100);
	if (done >= total)
		fputs("\r              \r", stderr);
}

static void print_json(const struct verify_report *rep)
{
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{ "records", rep->records },   { "frames", rep->frames },
		{ "segments", rep->segments }, { "bytes", rep->bytes },
		{ "lost", rep->gaps },	       { "first_bad", rep->first_bad },
	};
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "state");
	json_strz(&j, verify_state_name(rep->state));
	json_key(&j, "code");
	json_u64(&j, rep->state);
	json_key(&j, "session");
	json_strz(&j, rep->session);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		json_key(&j, numbers[i].key);
		json_u64(&j, numbers[i].v);
	}
	json_key(&j, "head");
	json_strz(&j, rep->head);
	json_key(&j, "text");
	json_strz(&j, rep->text);
	json_object_end(&j);
	fwrite(out.p, 1, out.n, stdout);
	putchar('\n');
}

static void print_text(const struct verify_report *rep)
{
	printf("%s\n", rep->text);
	printf("  session   %s\n", rep->session);
	printf("  records   %llu in %llu frames, %llu segments, %llu bytes\n",
	       (unsigned long long)rep->records, (unsigned long long)rep->frames,
	       (unsigned long long)rep->segments, (unsigned long long)rep->bytes);
	printf("  lost      %llu\n", (unsigned long long)rep->gaps);
	printf("  head      %s\n", rep->head);
}

int cmd_verify(int argc, char **argv)
{
	struct verify_args args = { 0 };
	struct verify_report rep;
	auto_close int fd = -1;
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("verify", &err);
	if (args.help) {
		cli_usage("verify [OPTIONS] SESSION|DIR",
			  "Prove that a session's record is complete and unaltered.\n\n"
			  "Exit code: 0 intact and sealed, 1 altered, 2 open or truncated,\n"
			  "3 intact with declared gaps, 125 cannot tell.",
			  OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL, n == 0 ? "which session?" : "one session at a time");
		return cli_bad_usage("verify", &err);
	}
	if (bundle_open(&fd, argv[1], &err) < 0)
		return cli_fail(&err);
	if (store_verify(fd, &rep, isatty(STDERR_FILENO) && !args.quiet ? progress : NULL, NULL,
			 &err) < 0) {
		err_wrap(&err, -EBADMSG, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	if (args.json)
		print_json(&rep);
	else if (!args.quiet)
		print_text(&rep);
	return cli_finish_output(rep.state);
}
