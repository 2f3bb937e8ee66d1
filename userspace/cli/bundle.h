/* SPDX-License-Identifier: Apache-2.0 */
/* SESSION|DIR on the command line: a directory, or an id below <state>/sessions (a unique prefix or
 * ending is enough). */
#ifndef WARDER_CLI_BUNDLE_H
#define WARDER_CLI_BUNDLE_H

#include "userspace/base/err.h"

/* Opens the bundle's directory. -ENOENT, -ENOTUNIQ with the candidates in err. */
int bundle_open(int *ret_fd, const char *word, struct err *err);

#endif
