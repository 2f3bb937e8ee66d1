/* SPDX-License-Identifier: Apache-2.0 */
/* What came of a scenario: from what its payload said and from its record. */
#ifndef WARDER_SCENARIOS_JUDGE_H
#define WARDER_SCENARIOS_JUDGE_H

#include "userspace/scenarios/trial.h"

#define JUDGE_RULES_MAX 16
#define JUDGE_WHY_MAX	400

enum outcome {
	OUTCOME_HOLDS, /* all that was expected */
	OUTCOME_HOLE,  /* something was not */
	OUTCOME_ERROR, /* it could not be tried */
};

struct finding {
	unsigned got; /* SCENARIO_* */
	enum outcome outcome;
	char why[JUDGE_WHY_MAX];    /* the first thing that is not as expected; "" when all is */
	char reason[32], rule[128]; /* how the enforced run ended */
	char tier[32];
	char rules[JUDGE_RULES_MAX][128]; /* that fired, each once */
	size_t rules_n;
	char attack[256]; /* techniques of those rules, separated by spaces */
	bool kills;	  /* a rule that kills has fired */
	unsigned blocked, absent, did;
	enum { TWIN_NONE, TWIN_QUIET, TWIN_LOUD } twin;
};

/* Its runs, one or two, judged. strict: the rules are the default packs, so those of the row have to fire; else any
 * alert will do, and any rule may kill. */
void scenario_try(struct finding *ret, const struct trials *t, const struct scenario *s,
		  bool strict);

/* All harmless twins in one sandbox: fn(arg, id, why) for each one, why NULL: quiet and working. */
typedef void (*twin_fn)(void *arg, struct str id, const char *why);
int twins_try(const struct trials *t, twin_fn fn, void *arg, struct err *err);

/* ---- for the above, and for tests ---- */

/* What the payload's lines say. */
struct steps {
	unsigned blocked, absent, open, did, cannot;
	unsigned inner; /* open, but of the kernel of the sandbox's own */
	bool end;
	char first_open[128], first_cannot[128];
};
void steps_read(struct steps *ret, struct str output, const char *const inner[SCENARIO_INNER_MAX]);
/* Is `technique` among `techniques` (separated by spaces), or one of its sub-techniques, or what it is one of? */
bool attack_covers(const char *techniques, const char *technique);

#endif
