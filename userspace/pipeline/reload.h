/* SPDX-License-Identifier: Apache-2.0 */
/* Other rules for a sandbox that runs. The root part reads the files, tries them and hands their texts to
 * the engine as a sealed memory file; the engine compiles them beside its work and changes over between
 * two events. What is broken changes nothing and is told in the record. */
#ifndef WARDER_PIPELINE_RELOAD_H
#define WARDER_PIPELINE_RELOAD_H

#include <pthread.h>
#include "runtime/sandbox.h"
#include "userspace/pipeline/rule_files.h"

/* ---- the engine's side: compiling in a thread ---- */

struct reload_job {
	pthread_t thread;
	bool running;
	int done_fd; /* eventfd, readable when the thread has ended; -1 = none runs */
	int texts_fd;
	unsigned actions;
	char why[160];
	struct ruleset *rules;
	struct err err;
};

/* Takes the descriptor. -EBUSY: one is being compiled. */
int reload_job_start(struct reload_job *j, int texts_fd, unsigned actions, const char *why);
/* To poll for the end, -1 = nothing runs. */
int reload_job_fd(const struct reload_job *j);
/* Waits for the end. 0: *ret is the caller's. j->why tells what for in both cases. */
int reload_job_take(struct reload_job *j, struct ruleset **ret, struct err *err);

/* ---- the root part's side: when, and from what ---- */

#define RELOAD_SETTLE_MS 100 /* editors and deployments write in several steps */

struct reloader {
	const struct rule_files *files; /* NULL: nothing to load again */
	const struct sandbox_spec *spec;
	int inotify_fd;
	uint64_t due;	       /* CLOCK_MONOTONIC; 0 = nothing to do */
	const char *why;       /* of it */
	bool asked;	       /* by somebody: told even when nothing changed */
	bool busy;	       /* the engine compiles */
	struct buf last;       /* texts tried last */
	struct ruleset *rules; /* of them, until the next ones */
};

/* What the engine is to be told. */
struct reloader_result {
	const struct ruleset *rules; /* compiled, until the next call; NULL: err tells why not */
	int texts_fd;		     /* the caller's to close; -1 without rules */
	const char *why;
	struct err err;
};

/* Watches files and directories as far as they can be watched: SIGHUP works in any case. `texts`: what the
 * rules in force were made of. */
void reloader_init(struct reloader *r, const struct rule_files *files, struct str texts,
		   const struct sandbox_spec *spec);
void reloader_done(struct reloader *r);
/* Somebody asks: "SIGHUP". False when there are no rule files. */
bool reloader_ask(struct reloader *r, const char *why);
/* The inotify descriptor is readable. */
void reloader_look(struct reloader *r);
/* ms until reloader_run has something to do; -1 = nothing. */
int reloader_timeout(const struct reloader *r);
/* True: *ret says what to tell the engine, and it is busy until reloader_answered. */
bool reloader_run(struct reloader *r, struct reloader_result *ret);
void reloader_answered(struct reloader *r);

#endif
