// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <unistd.h>

#include "exporters/scan.h"
#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/base/plain.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/cli/verify_host.h"
#include "userspace/cli/witness.h"
#include "userspace/store/store.h"

struct verify_args {
	struct option_list keys;
	const char *witness;
	bool json, quiet, host_log, help;
};

static const struct option_def OPTIONS[] = {
	{ "key", 'k', OPT_STRLIST, offsetof(struct verify_args, keys), "FILE",
	  "a host's public key (warder keys public): the record must be signed by it; repeatable" },
	{ "witness", 'w', OPT_STR, offsetof(struct verify_args, witness), "FILE",
	  "checkpoints kept elsewhere (run --witness, or Kafka's): the record must be what they saw" },
	{ "host-log", 0, OPT_FLAG, offsetof(struct verify_args, host_log), NULL,
	  "no session: this host's log, and that no record it tells of is gone or another" },
	{ "json", 0, OPT_FLAG, offsetof(struct verify_args, json), NULL, "one JSON object" },
	{ "quiet", 'q', OPT_FLAG, offsetof(struct verify_args, quiet), NULL, "only the exit code" },
	{ "help", 'h', OPT_FLAG, offsetof(struct verify_args, help), NULL, "this text" },
	{ 0 },
};

#define BAR 30 /* characters */

static void progress(void *arg, uint64_t done, uint64_t total)
{
	static const char full[] = "##############################";
	unsigned percent = total ? (unsigned)(done * 100 / total) : 100;

	(void)arg;
	fprintf(stderr, "\rverifying [%-*.*s] %3u%%", BAR, (int)(percent * BAR / 100), full,
		percent);
	if (done >= total)
		fputs("\r\033[K", stderr);
}

/* What the session could not see, by the first record: a complete record may be one of half of what
 * happened. A JSON array of strings; empty: it names nothing. */
static void find_degraded(int bundle, const struct verify_report *rep, struct buf *ret)
{
	struct journal_reader *reader = NULL;
	auto_buf struct buf room = { 0 };
	struct str rec, list;
	uint64_t seq;

	if (rep->state == VERIFY_ALTERED || journal_reader_open(&reader, bundle, NULL) < 0)
		return;
	if (journal_reader_next(reader, &rec, &seq, NULL) > 0 && seq == 1 &&
	    plain_json(rec, &room, &rec) == 0 && scan_find(rec, "degraded", &list) && list.n > 2 &&
	    *list.p == '[')
		buf_add(ret, list.p, list.n);
	journal_reader_free(reader);
}

static void print_json(const struct verify_report *rep, const struct buf *degraded)
{
	const struct {
		const char *key;
		uint64_t v;
	} numbers[] = {
		{ "records", rep->records },
		{ "frames", rep->frames },
		{ "segments", rep->segments },
		{ "bytes", rep->bytes },
		{ "lost", rep->gaps },
		{ "first_bad", rep->first_bad },
		{ "checkpoints", rep->checkpoints },
		{ "redactions", rep->redactions },
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
	json_key(&j, "signed");
	json_bool(&j, rep->is_signed);
	json_key(&j, "trusted");
	json_bool(&j, rep->is_trusted);
	json_key(&j, "witnessed");
	json_u64(&j, rep->witnessed);
	json_key(&j, "host_key");
	if (rep->is_signed)
		json_strz(&j, rep->host_key);
	else
		json_null(&j);
	json_key(&j, "text");
	json_strz(&j, rep->text);
	json_key(&j, "degraded");
	json_raw(&j, degraded->n ? (struct str){ degraded->p, degraded->n } : STR("[]"));
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
}

/* ["probe.dns","limit.cpu"] -> probe.dns, limit.cpu */
static void print_words(struct str list)
{
	struct scan s = scan_of(list);
	struct str v;

	for (bool first = true; scan_element(&s, &v); first = false)
		printf("%s%.*s", first ? "" : ", ", (int)v.n - 2 * (*v.p == '"'),
		       v.p + (*v.p == '"'));
}

static void print_text(const struct verify_report *rep, bool has_keys, const struct buf *degraded)
{
	printf("%s\n", rep->text);
	printf("  session   %s\n", rep->session);
	printf("  records   %llu in %llu frame%s, %llu segment%s of %llu bytes\n",
	       (unsigned long long)rep->records, (unsigned long long)rep->frames,
	       rep->frames == 1 ? "" : "s", (unsigned long long)rep->segments,
	       rep->segments == 1 ? "" : "s", (unsigned long long)rep->bytes);
	printf("  lost      %llu\n", (unsigned long long)rep->gaps);
	printf("  head      %s\n", rep->head);
	if (rep->is_signed)
		printf("  signed    by %s (%s), %llu checkpoints\n", rep->host_key,
		       rep->is_trusted ? "a key you gave"
		       : has_keys      ? "none of the keys you gave"
				       : "compare it with the host's, or give --key",
		       (unsigned long long)rep->checkpoints);
	else if (rep->checkpoints)
		printf("  signed    %llu checkpoints by %s are good; the one of the seal was not reached\n",
		       (unsigned long long)rep->checkpoints, rep->host_key);
	else
		printf("  signed    no\n");
	if (rep->witnessed)
		printf("  witness   agrees up to record %llu\n",
		       (unsigned long long)rep->witnessed);
	if (!degraded->n)
		return;
	printf("  degraded  ");
	print_words((struct str){ degraded->p, degraded->n });
	putchar('\n');
}

/* An intact record of another session, put where this one was. */
static void check_id(struct verify_report *rep, const char *id)
{
	if (!*id || rep->state == VERIFY_ALTERED || !strcmp(rep->session, id))
		return;
	rep->state = VERIFY_ALTERED;
	snprintf(rep->text, sizeof(rep->text), "altered: in place of session %s lies session %s",
		 id, rep->session);
}

int cmd_verify(int argc, char **argv)
{
	struct verify_args args = { 0 };
	uint8_t keys[BUNDLE_KEYS_MAX][STORE_HASH_LEN];
	struct verify_options opt = { .keys = (const uint8_t(*)[STORE_HASH_LEN])keys };
	__attribute__((cleanup(witness_done))) struct witness witness = { 0 };
	struct verify_report rep;
	char id[ULID_LEN + 1];
	auto_buf struct buf degraded = { 0 };
	auto_close int fd = -1;
	struct err err = { 0 };
	int n, n_keys;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("verify", &err);
	if (args.help) {
		cli_usage(
			"verify [OPTIONS] SESSION|DIR | --host-log",
			"Prove that a session's record is complete and unaltered.\n\n"
			"Exit code: 0 intact and sealed; 1 altered, or with --key not signed or signed by none of\n"
			"them, or with --witness not known to it; 2 open or truncated; 3 intact with declared\n"
			"gaps; 125 cannot tell. The first line says which.",
			OPTIONS);
		return 0;
	}
	if (args.host_log && n == 0) {
		n_keys = bundle_read_keys(&args.keys, keys, &err);
		if (n_keys < 0)
			return cli_fail(&err);
		opt.n_keys = (size_t)n_keys;
		return verify_host_log(&opt, args.json, args.quiet);
	}
	if (n != 1 || args.host_log) {
		err_set(&err, EINVAL,
			args.host_log ? "--host-log takes no session"
			: n == 0      ? "which session?"
				      : "one session at a time");
		return cli_bad_usage("verify", &err);
	}
	n_keys = bundle_read_keys(&args.keys, keys, &err);
	opt.n_keys = (size_t)MAX(n_keys, 0);
	if (n_keys < 0 || bundle_open_told(&fd, id, argv[1], "verify", &err) < 0)
		return cli_fail(&err);
	if (args.witness && witness_read(&witness, args.witness, &err) < 0)
		return cli_fail(&err);
	opt.witness = witness.v;
	opt.n_witness = witness.n;
	if (store_verify_signed(fd, &opt, &rep,
				isatty(STDERR_FILENO) && !args.quiet ? progress : NULL, NULL,
				&err) < 0) {
		err_wrap(&err, -EBADMSG, "session '%s'", argv[1]);
		return cli_fail(&err);
	}
	check_id(&rep, id);
	if (!args.quiet)
		find_degraded(fd, &rep, &degraded);
	if (args.json)
		print_json(&rep, &degraded);
	else if (!args.quiet)
		print_text(&rep, opt.n_keys > 0, &degraded);
	return cli_finish_output(rep.state);
}
