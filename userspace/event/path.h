/* SPDX-License-Identifier: Apache-2.0 */
/* Lexical path work on strings from a sandbox: nothing is looked up on this host. */
#ifndef WARDER_EVENT_PATH_H
#define WARDER_EVENT_PATH_H

#include <stdbool.h>
#include "userspace/base/arena.h"
#include "userspace/base/str.h"

/* `rel` as seen from directory `base` (ignored when rel is absolute), with "//", "/./" and "/../"
 * taken out; ".." stops at the root. Without a base a relative path stays relative and keeps its
 * leading "..". Symbolic links are not followed, so a ".." behind one is a guess: keep the raw string
 * as well. p == NULL when the arena is full. */
struct str path_join(struct arena *a, struct str base, struct str rel);
/* Absolute, with nothing for path_join to take out? */
bool path_is_clean(struct str path);
/* Last component; empty for "/". */
struct str path_name(struct str path);

#endif
