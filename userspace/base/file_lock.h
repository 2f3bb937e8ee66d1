/* SPDX-License-Identifier: Apache-2.0 */
/* A file that says who is there: held as long as the open file is, by whichever process has it open, and looked at
 * without being taken: a look never makes somebody else's try fail. Local file systems only. */
#ifndef WARDER_BASE_FILE_LOCK_H
#define WARDER_BASE_FILE_LOCK_H

#include <stdbool.h>

/* `fd` is open for writing. -EBUSY: another open file has it. */
int file_lock_take(int fd);
/* Has another open file of the same file taken it? */
bool file_lock_is_taken(int fd);

#endif
