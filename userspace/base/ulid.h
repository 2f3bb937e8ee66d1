/* SPDX-License-Identifier: Apache-2.0 */
/* ULID (github.com/ulid/spec): 48 bits of milliseconds, 80 random bits, Crockford base 32. Sorts by
 * time, needs no coordination. Names sessions. */
#ifndef WARDER_BASE_ULID_H
#define WARDER_BASE_ULID_H

#include <stdbool.h>
#include <stdint.h>

#define ULID_LEN 26

/* Writes ULID_LEN characters and a NUL. */
void ulid_make(char out[ULID_LEN + 1], uint64_t real_ns);
bool ulid_is_valid(const char *text);

#endif
