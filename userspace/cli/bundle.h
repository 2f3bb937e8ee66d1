/* SPDX-License-Identifier: Apache-2.0 */
/* SESSION|DIR on the command line: a directory, or an id below <state>/sessions (a unique prefix or
 * ending is enough). */
#ifndef WARDER_CLI_BUNDLE_H
#define WARDER_CLI_BUNDLE_H

#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/base/option.h"
#include "userspace/base/ulid.h"
#include "userspace/store/store.h"

/* Opens the bundle's directory to read what is in it; that `command` did so goes into the host log when the
 * session is one of this host's. -ENOENT, -ENOTUNIQ with the candidates in err. */
int bundle_open(int *ret_fd, const char *word, const char *command, struct err *err);
/* The same, and under which id it was found; see bundle_open_id. */
int bundle_open_told(int *ret_fd, char ret_id[ULID_LEN + 1], const char *word, const char *command,
		     struct err *err);

/* Opens it, untold, and says under which id it was found below <state>/sessions; "" when by directory. A record in
 * the wrong place proves itself, but not that it is the one asked for. */
int bundle_open_id(int *ret_fd, char ret_id[ULID_LEN + 1], const char *word, struct err *err);
/* After the last record that could be read, `last` (UINT64_MAX: not counted): -EBADMSG when the manifest tells of
 * more, or the seal is missing or not the last there is, or the terminal's recording is not as long as sealed: what was
 * cut must not look like a short one. */
int bundle_check_end(int fd, uint64_t last, struct err *err);

#define BUNDLE_KEYS_MAX 256

/* The hosts' public keys in these files (`warder keys public`), a line each, for store_verify_signed. Returns how many
 * there are in all. */
int bundle_read_keys(const struct option_list *files, uint8_t keys[][STORE_HASH_LEN],
		     struct err *err);

#endif
