// SPDX-License-Identifier: Apache-2.0
#include "userspace/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *err, int code, const char *fmt, ...)
{
	va_list ap;

	if (code < 0)
		code = -code;
	if (!err)
		return -code;
	err->code = code;
	va_start(ap, fmt);
	errno = code; /* for %m */
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -code;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	char old[ERR_TEXT_MAX];
	va_list ap;
	size_t n, room;
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
	if (w < 0 || (size_t)w + 3 > sizeof(err->text))
		return r;
	room = sizeof(err->text) - (size_t)w - 3; /* ": " and the NUL */
	if (n > room)
		n = room;
	memcpy(err->text + w, ": ", 2);
	memcpy(err->text + w + 2, old, n);
	err->text[(size_t)w + 2 + n] = 0;
	return r;
}

const char *err_text(const struct err *err)
{
	if (!err)
		return "";
	return err->text[0] ? err->text : strerror(err->code);
}
