/* SPDX-License-Identifier: Apache-2.0 */
/* Work on a sandbox's files by commands that run inside, as its payload: paths are resolved there, with its rights, and
 * what a link points at is its own affair. What it answers can be a lie, but only about itself. */
#ifndef WARDER_API_INSIDE_H
#define WARDER_API_INSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/json.h"

/* Scripts for sh -c SCRIPT sh PATH [ARGUMENT]; a path begins with '/' or "./". */
extern const char inside_read[];   /* '+', then the bytes */
extern const char inside_write[];  /* of stdin; argument: mode or "" */
extern const char inside_unlink[]; /* a directory with all that is in it */
extern const char inside_mkdir[];  /* writes 1 if it was made, 0 if it was there */
extern const char inside_list[];   /* argument: depth; for inside_entries */
extern const char inside_stat[];   /* likewise, of one */

/* Their exit codes. */
enum {
	INSIDE_NOT_THERE = 64,
	INSIDE_IS_DIR,
	INSIDE_DENIED,
	INSIDE_NOT_DIR,
	INSIDE_NO_FILE,
};

/* "is a directory"; NULL: none of these. */
const char *inside_problem(uint64_t code);
/* What inside_list wrote, as objects. True: there was more. */
bool inside_entries(struct json *j, struct str text, size_t max);

#endif
