/* SPDX-License-Identifier: Apache-2.0 */
/* Keys for sealed originals, and opening them (userspace/redact/escrow.h). */
#ifndef WARDER_CLI_REDACT_ESCROW_H
#define WARDER_CLI_REDACT_ESCROW_H

#include <stdint.h>
#include "userspace/redact/escrow.h"

/* A new pair: `path`, for its owner alone, and `path`.pub. Neither may be there already. */
int redact_keygen(const char *path, struct err *err);
/* The public key that a file holds. */
int redact_escrow_key_file(uint8_t ret[ESCROW_KEY_LEN], const char *path, struct err *err);
/* Prints the originals of a session, one JSON object a line; `record`: only those whose marks stand in that one, 0 =
 * all. Opens nothing of a record that is altered. */
int redact_reveal(const char *word, const char *key_path, uint64_t record, struct err *err);

#endif
