// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/cli/bundle.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/evidence.h"
#include "userspace/cli/util.h"

struct evidence_args {
	struct option_list keys;
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "key", 'k', OPT_STRLIST, offsetof(struct evidence_args, keys), "FILE",
	  "a host's public key (warder keys public); without one, who signed is only partly shown" },
	{ "json", 0, OPT_FLAG, offsetof(struct evidence_args, json), NULL, "one JSON object" },
	{ "help", 'h', OPT_FLAG, offsetof(struct evidence_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"What the record of a session proves, and the requirements (PCI DSS 10, SOC 2 CC7, ISO 27001\n"
	"A.8.15-16, HIPAA 164.312(b), EU AI Act 12 and 19) that ask for it. Whether it suffices is for the\n"
	"assessor to say.\n\n"
	"Exit code: 0 every line has a proof; 1 some has none, or only in part; 125 error.";

static void print_json(const struct proof proofs[PROOF_COUNT], const struct verify_report *rep)
{
	auto_buf struct buf out = { 0 };
	struct json j;

	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "session");
	json_strz(&j, rep->session);
	json_key(&j, "head");
	json_strz(&j, rep->head);
	json_key(&j, "proofs");
	json_object_begin(&j);
	for (unsigned i = 0; i < PROOF_COUNT; i++) {
		json_key(&j, proof_kind_name(i));
		json_object_begin(&j);
		json_key(&j, "state");
		json_strz(&j, proof_state_name(proofs[i].state));
		json_key(&j, "text");
		json_strz(&j, proofs[i].text);
		json_object_end(&j);
	}
	json_object_end(&j);
	json_key(&j, "requirements");
	json_array_begin(&j);
	for (size_t i = 0; i < requirements_n; i++) {
		const struct requirement *r = &requirements[i];

		json_object_begin(&j);
		json_key(&j, "framework");
		json_strz(&j, r->framework);
		json_key(&j, "clause");
		json_strz(&j, r->clause);
		json_key(&j, "text");
		json_strz(&j, r->text);
		json_key(&j, "state");
		json_strz(&j, proof_state_name(requirement_state(r, proofs)));
		json_key(&j, "proofs");
		json_array_begin(&j);
		for (unsigned k = 0; k < PROOF_COUNT; k++)
			if (r->proofs >> k & 1)
				json_strz(&j, proof_kind_name(k));
		json_array_end(&j);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	cli_print(&out);
	putchar('\n');
}

static void print_text(const struct proof proofs[PROOF_COUNT], const struct verify_report *rep)
{
	printf("session %s\nhead    %s\n\nWhat is proven\n", rep->session, rep->head);
	for (unsigned i = 0; i < PROOF_COUNT; i++)
		printf("  %-9s %-8s %s\n", proof_kind_name(i), proof_state_name(proofs[i].state),
		       proofs[i].text);
	puts("\nWhat asks for it");
	for (size_t i = 0; i < requirements_n; i++) {
		const struct requirement *r = &requirements[i];
		const char *comma = "";

		printf("  %-15s %-11s %-8s %s (", r->framework, r->clause,
		       proof_state_name(requirement_state(r, proofs)), r->text);
		for (unsigned k = 0; k < PROOF_COUNT; k++) {
			if (!(r->proofs >> k & 1))
				continue;
			printf("%s%s", comma, proof_kind_name(k));
			comma = ", ";
		}
		puts(")");
	}
}

int cmd_evidence(int argc, char **argv)
{
	uint8_t keys[BUNDLE_KEYS_MAX][STORE_HASH_LEN];
	struct verify_options opt = { .keys = (const uint8_t(*)[STORE_HASH_LEN])keys };
	struct evidence_args args = { 0 };
	struct proof proofs[PROOF_COUNT] = { 0 };
	struct verify_report rep = { 0 };
	auto_close int fd = -1;
	char id[ULID_LEN + 1];
	struct err err = { 0 };
	bool all = true;
	int n, n_keys;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("evidence", &err);
	if (args.help) {
		cli_usage("evidence [OPTIONS] SESSION|DIR", PURPOSE, OPTIONS);
		return 0;
	}
	if (n != 1) {
		err_set(&err, EINVAL, n == 0 ? "which session?" : "one session at a time");
		return cli_bad_usage("evidence", &err);
	}
	n_keys = bundle_read_keys(&args.keys, keys, &err);
	opt.n_keys = (size_t)MAX(n_keys, 0);
	if (n_keys < 0 || bundle_open_told(&fd, id, argv[1], "evidence", &err) < 0 ||
	    evidence_collect(proofs, fd, id, &opt, &rep, &err) < 0)
		return cli_fail(&err);
	if (args.json)
		print_json(proofs, &rep);
	else
		print_text(proofs, &rep);
	for (unsigned i = 0; i < PROOF_COUNT; i++)
		all &= proofs[i].state == PROOF_SHOWN;
	return cli_finish_output(!all);
}
