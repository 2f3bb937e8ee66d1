/* SPDX-License-Identifier: Apache-2.0 */
/* Error text for a person: lives on the caller's stack, never allocates, may be NULL. */
#ifndef WARDER_BASE_ERR_H
#define WARDER_BASE_ERR_H

#include <errno.h>

#define ERR_TEXT_MAX 1024
#define ERR_CUT	     "..." /* ends a text that was longer: who looks for secrets knows by it */

struct err {
	int code; /* positive errno, 0 when nothing was set */
	char text[ERR_TEXT_MAX];
};

/* Set the text. `code` is an errno (either sign); %m in the format prints it.
 * Returns -code, so that `return err_set(err, ENOENT, "...")` works. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put context in front of what is already there ("context: text"). Returns `r`. */
int err_wrap(struct err *err, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The text, or strerror of the code when no text was set. */
const char *err_text(const struct err *err);

#endif
