/* SPDX-License-Identifier: Apache-2.0 */
/* The corpus of attacks on a sandbox, P01 to P60: what each does, and what has to come of it. The tests and `warder
 * selftest` read the same rows. What is done is in payload/, a program of its own that this binary carries. */
#ifndef WARDER_SCENARIOS_SCENARIO_H
#define WARDER_SCENARIOS_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "userspace/base/str.h"

/* What has to come of it: */
enum {
	SCENARIO_BLOCKED = 1,  /* every step was refused, or what it is about is not there */
	SCENARIO_DETECTED = 2, /* the events of `detect` are in the record, and an alert */
	SCENARIO_KILLED = 4,   /* the sandbox ended for it, for `reason` */
};

/* What is put in its way before the sandbox is made, below a scratch directory of the host. */
enum scenario_trap {
	TRAP_NONE,
	TRAP_CWD_FD,	  /* it is to start in a directory by a descriptor's number */
	TRAP_DEV_LINK,	  /* /dev as a tree with links in it */
	TRAP_PROC_LINK,	  /* /proc as a tree with files in it */
	TRAP_TARGET_LINK, /* a bind below the workspace, where a link leads out of it */
	TRAP_SOCKET,	  /* a container engine's socket within reach */
	TRAP_SERVICE,	  /* a service that it may connect to */
};

#define SCENARIO_DETECT_MAX 5
#define SCENARIO_RULES_MAX  4
#define SCENARIO_WORDS_MAX  8
#define SCENARIO_INNER_MAX  4

struct scenario {
	const char *id;
	const char *title;
	const char *attack; /* techniques of ATT&CK, separated by spaces; the first one counts */
	unsigned expect;
	unsigned steps; /* that the payload takes, at least */
	/* Conditions of the rule language: each must be true of an event of its run. */
	const char *detect[SCENARIO_DETECT_MAX];
	/* Of the default packs: each must fire. */
	const char *rules[SCENARIO_RULES_MAX];
	const char *reason; /* of the result, of what is killed */
	const char *killer; /* with reason "rule": which of the default packs */
	/* Words for the payload; @pid: our own process, @service, @planted: names of the trap. */
	const char *words[SCENARIO_WORDS_MAX];
	/* Options of `warder run`, where no policy is given: so that a limit is reached soon. @trap: where its trap is, @bind: one through its link. */
	const char *options[SCENARIO_WORDS_MAX];
	/* A limit of the plan ("timeout_ns"). A policy without it is a hole; with it, `options` make it one that is soon
	 * reached, and harmless to reach: what is tried is whether it holds. */
	const char *limit;
	enum scenario_trap trap;
	bool own; /* makes sense with its own options only: left out with a policy */
	/* The launcher may refuse it, saying this: nothing runs, and that is a block. */
	const char *refused;
	/* It goes out by the network: where the policy has one, that is what the policy gives up. */
	bool goes_out;
	/* How lines of its steps begin ("- open /dev/fuse") that a kernel of the sandbox's own answers: that they work
	 * there opens nothing outside of it. What begins with an error is a refusal in that kernel's words. */
	const char *inner[SCENARIO_INNER_MAX];
	bool no_twin;	    /* what the harmless twin does is not there */
	bool no_observing;  /* one run is enough: the kill is what there is to see */
	const char *remark; /* where this is not what the public table of attacks asks for: why */
};

extern const struct scenario scenarios_sandbox[], scenarios_conduct[];
/* Rows whose verdict is another one there: id, `attack` where it is another one, and all that stands below `steps`
 * but words and options. */
extern const struct scenario scenarios_gvisor[];

/* All of them in order; NULL behind the last. */
const struct scenario *scenario_at(size_t i);
/* As it is judged on this backend. */
struct scenario scenario_under(const struct scenario *s, const char *backend);
/* By its id; "P05" stands for its variants (P05b), too. */
bool scenario_is(const struct scenario *s, struct str id);

/* The payload, an ELF program. */
struct str scenario_payload(void);

#endif
