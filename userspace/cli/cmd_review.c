// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"
#include "userspace/pipeline/run.h"
#include "userspace/pipeline/trail.h"
#include "userspace/store/keys.h"

#define NOTE_MAX 4096

struct review_args {
	const char *verdict, *note;
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "verdict", 'v', OPT_STR, offsetof(struct review_args, verdict), "WORD",
	  "approved, rejected or inconclusive" },
	{ "note", 0, OPT_STR, offsetof(struct review_args, note), "TEXT",
	  "why (at most 4096 bytes)" },
	{ "help", 'h', OPT_FLAG, offsetof(struct review_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Sign a verdict on a session into the host log: who, when, about exactly which record. The record is\n"
	"verified first, what that said becomes part of the entry, and one that is altered or not sealed is not approved.\n"
	"See them with `warder sessions log`.\n\n"
	"Exit code: 0 signed; not approved, since the record is 1 altered, 2 not sealed; 125 error.";

static int check_args(const struct review_args *a, struct err *err)
{
	static const char *const verdicts[] = { "approved", "rejected", "inconclusive" };

	for (size_t i = 0; a->verdict && i < ARRAY_SIZE(verdicts); i++)
		if (!strcmp(a->verdict, verdicts[i]))
			return strlen(a->note ? a->note : "") <= NOTE_MAX
				       ? 0
				       : err_set(err, E2BIG, "option '--note': more than %d bytes",
						 NOTE_MAX);
	return err_set(err, EINVAL, "option '--verdict': %s%s%s approved, rejected or inconclusive",
		       a->verdict ? "'" : "it must be", a->verdict ? a->verdict : "",
		       a->verdict ? "' is not" : "");
}

/* An unsigned verdict would be anybody's. */
static int check_key(struct err *err)
{
	auto_close int fd = -1;
	uint8_t key[KEY_LEN];
	int r = keys_open(&fd, false, err);

	if (r == 0)
		r = keys_public(fd, key, err);
	return r == -ENOENT ? err_set(err, r, "this host has no key to sign with: warder keys init")
			    : r;
}

static int sign(const struct review_args *a, const char *id, const struct verify_report *rep,
		struct err *err)
{
	auto_buf struct buf data = { 0 };
	struct json j;

	json_init(&j, &data);
	json_object_begin(&j);
	json_key(&j, "verdict");
	json_strz(&j, a->verdict);
	json_key(&j, "note");
	json_strz(&j, a->note ? a->note : "");
	json_key(&j, "record");
	json_strz(&j, verify_state_name(rep->state));
	json_key(&j, "records");
	json_u64(&j, rep->records);
	json_key(&j, "lost");
	json_u64(&j, rep->gaps);
	json_key(&j, "head");
	json_strz(&j, rep->head);
	json_object_end(&j);
	return data.failed ? err_set(err, ENOMEM, "%m")
			   : trail_add("review", id, (struct str){ data.p, data.n }, err);
}

int cmd_review(int argc, char **argv)
{
	struct review_args args = { 0 };
	struct verify_report rep;
	auto_close int fd = -1;
	char id[ULID_LEN + 1];
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("review", &err);
	if (args.help) {
		cli_usage("review SESSION|DIR --verdict WORD [--note TEXT]", PURPOSE, OPTIONS);
		return 0;
	}
	if (n != 1)
		err_set(&err, EINVAL, n == 0 ? "which session?" : "one session at a time");
	if (n != 1 || check_args(&args, &err) < 0)
		return cli_bad_usage("review", &err);
	if (check_key(&err) < 0 || bundle_open_id(&fd, id, argv[1], &err) < 0 ||
	    store_verify(fd, &rep, NULL, NULL, &err) < 0)
		return cli_fail(&err);
	if (id[0] && strcmp(rep.session, id) != 0) {
		rep.state = VERIFY_ALTERED;
		snprintf(rep.text, sizeof(rep.text),
			 "altered: in place of session %s lies session %s", id, rep.session);
	}
	/* What is not sealed can still grow: the approval would be of something else. */
	if ((rep.state == VERIFY_ALTERED || rep.state == VERIFY_OPEN) &&
	    !strcmp(args.verdict, "approved")) {
		err_set(&err, EBADMSG, "not approved: %s", rep.text);
		cli_fail(&err);
		return rep.state;
	}
	if (sign(&args, rep.session, &rep, &err) < 0)
		return cli_fail(&err);
	printf("%s: %s; %s\n", rep.session, args.verdict, rep.text);
	return cli_finish_output(0);
}
