// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void tell_cut(struct err *err)
{
	memcpy(err->text + sizeof(err->text) - sizeof(ERR_CUT), ERR_CUT, sizeof(ERR_CUT));
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;
	int w;

	if (code < 0)
		code = -code;
	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	errno = code; /* for %m */
	w = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (w >= (int)sizeof(err->text))
		tell_cut(err);
	return -code;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	char old[ERR_TEXT_MAX];
	va_list ap;
	size_t n, room;
	bool cut;
	int w;

	if (!err)
		return r;
	n = strlen(err_text(err));
	memcpy(old, err_text(err), n + 1);
	if (!err->code)
		err->code = r < 0 ? -r : r;
	va_start(ap, fmt);
	errno = err->code;
	w = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (w < 0)
		return r;
	if ((size_t)w + 3 > sizeof(err->text)) {
		tell_cut(err);
		return r;
	}
	room = sizeof(err->text) - (size_t)w - 3; /* ": " and the NUL */
	cut = n > room;
	if (cut)
		n = room;
	memcpy(err->text + w, ": ", 2);
	memcpy(err->text + w + 2, old, n);
	err->text[(size_t)w + 2 + n] = 0;
	if (cut)
		tell_cut(err);
	return r;
}

const char *err_text(const struct err *err)
{
	if (!err)
		return "";
	return err->text[0] ? err->text : strerror(err->code);
}
