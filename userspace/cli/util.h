/* SPDX-License-Identifier: Apache-2.0 */
/* What commands share. */
#ifndef WARDER_CLI_UTIL_H
#define WARDER_CLI_UTIL_H

#include <stdio.h>
#include <sys/types.h>
#include "rules/rule.h"
#include "userspace/base/option.h"
#include "userspace/pipeline/rule_files.h"

/* WARDER_CONFIG or /etc/warder. */
const char *config_dir(void);
/* Usage, purpose and the option table on stdout (or where help.h has it go). */
void cli_usage(const char *usage, const char *purpose, const struct option_def *defs);
/* Log the error with the command's name, return EXIT_WARDER. */
int cli_fail(const struct err *err);
/* Usage errors: the message and where help is. Returns EXIT_WARDER. */
int cli_bad_usage(const char *command, const struct err *err);
/* To stdout, the second with a line end. Of a text that found no memory nothing is printed: cli_finish_output tells. */
void cli_print(const struct buf *text);
void cli_print_line(const struct buf *text);
/* Flush stdout; a closed pipe is no error. Returns the exit code. */
int cli_finish_output(int code);
/* A file with this content and mode, whole or not at all. -errno, with the path in err. */
int cli_write_file(const char *path, const struct buf *text, mode_t mode, struct err *err);

/* Texts of rule_texts_read compiled, for a caller that can do `actions` (0: as ruleset_new). Problems go to
 * stderr as below. */
int cli_compile_rules(struct ruleset **ret, struct str texts, unsigned actions);
/* Default packs and files into a compiled set. Every problem goes to stderr as file:line:col, so a
 * negative result needs no further word. */
int cli_load_rules(struct ruleset **ret, bool default_packs, const struct option_list *files);
/* 1: it matches, or there is no condition; 0; -errno when it is no event of ours. The arena is emptied. */
int cli_record_wanted(const struct rule_filter *f, struct arena *arena, struct str record,
		      struct err *err);
/* A record as a line, whoever wrote it: one that was forged is still one line, and drives no terminal. False: nobody
 * reads on, or closing tells. */
bool cli_print_record(struct str record, FILE *out);
/* The text of a JSON object's member, a string's without its quotes; empty where there is none. It comes from an
 * engine or a sandbox: what a terminal would act on becomes '?'. Returns `ret`. */
const char *cli_member(struct str object, const char *key, char *ret, size_t size);

#endif
