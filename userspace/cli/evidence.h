/* SPDX-License-Identifier: Apache-2.0 */
/* What a session's record, its host's log and its reviews show, and which requirement asks for it. */
#ifndef WARDER_CLI_EVIDENCE_H
#define WARDER_CLI_EVIDENCE_H

#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/store/store.h"

enum proof_kind {
	PROOF_RECORDED, /* who did what, when, with which outcome */
	PROOF_COMPLETE, /* what is missing is named */
	PROOF_INTACT,	/* nobody changed it, and who made it */
	PROOF_TIME,	/* the clock could be trusted */
	PROOF_WATCHED,	/* rules judged it, and acted */
	PROOF_REVIEWED, /* somebody looked, and signed */
	PROOF_RETAINED, /* it is in the host's chain and still there */
	PROOF_ACCESS,	/* who read it is known */
	PROOF_COUNT
};

enum proof_state { PROOF_SHOWN, PROOF_PARTLY, PROOF_MISSING };

struct proof {
	enum proof_state state;
	char text[400]; /* one sentence with the numbers */
};

struct requirement {
	const char *framework, *clause, *text;
	uint32_t proofs; /* bit n: enum proof_kind n */
};

extern const struct requirement requirements[];
extern const size_t requirements_n;

/* Look at the bundle and at this host's log. `id`: "" when it is no session of this host. */
int evidence_collect(struct proof ret[PROOF_COUNT], int bundle_fd, const char *id,
		     const struct verify_options *keys, struct verify_report *ret_report,
		     struct err *err);
/* The worst of those that it needs. */
enum proof_state requirement_state(const struct requirement *r,
				   const struct proof proofs[PROOF_COUNT]);
const char *proof_kind_name(enum proof_kind k);
const char *proof_state_name(enum proof_state s);

#endif
