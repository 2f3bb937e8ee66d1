/* SPDX-License-Identifier: Apache-2.0 */
/* Options of `warder run` about redaction -> a redactor. */
#ifndef WARDER_CLI_RUN_REDACT_H
#define WARDER_CLI_RUN_REDACT_H

#include "runtime/sandbox.h"
#include "userspace/base/option.h"
#include "userspace/redact/gitleaks.h"
#include "userspace/redact/redact.h"

struct redact_args {
	struct option_list rules;  /* files, after the built-in ones; "off" alone: none at all */
	struct option_list values; /* known secrets, of a policy */
	struct option_list value_files; /* one a line */
	const char *escrow;		/* file of a public key; NULL: originals are not kept */
};

enum redact_key {
	REDACT_KEY_HOST, /* the host's; made when there is none yet */
	REDACT_KEY_KNOWN, /* the same, but without a state directory one for this session alone: records go elsewhere */
	REDACT_KEY_TRIAL, /* for now: nothing stays, and it is only asked whether it could be made */
};

/* *ret: NULL when it is off. As root. Values of the sandbox's environment whose names say that they are secrets are
 * known, too. */
int run_redactor(struct redactor **ret, const struct redact_args *a,
		 const struct sandbox_spec *spec, enum redact_key which, struct err *err);
/* What of gitleaks' files is not in the set: `note` is told of each, and how many rules and keys it was. */
struct redact_lacks {
	gitleaks_note_fn note;
	void *arg;
	size_t rules, keys;
};

/* The same without values, and with a key for now: rules for `warder redact`. `lacks` NULL: a warning a file. */
int redactor_of_files(struct redactor **ret, const struct option_list *files,
		      struct redact_lacks *lacks, struct err *err);

#endif
