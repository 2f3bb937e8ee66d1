// SPDX-License-Identifier: Apache-2.0
#include "rules/internal.h"

#include <stdarg.h>
#include "userspace/base/option.h"

/* A quoted token may hold anything; what is printed must not. */
static void make_printable(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = ' ';
}

static void say(struct ruleset *rs, struct pos at, bool warning, const char *fmt, va_list ap)
{
	struct rule_diag d = { .line = at.line, .col = at.col, .warning = warning };

	/* Each kind has its own end: however many warnings there were, an error is told. */
	if ((warning ? rs->warnings : rs->errors) >= RULE_DIAGS_MAX) {
		*(warning ? &rs->warnings : &rs->errors) += 1;
		return;
	}
	d.source = at.src ? at.src->at : 0;
	snprintf(d.file, sizeof(d.file), "%s", at.src ? at.src->name : "(rules)");
	vsnprintf(d.text, sizeof(d.text), fmt, ap);
	make_printable(d.text);
	make_printable(d.file);
	if (warning) {
		rs->warnings++;
	} else if (!rs->errors++) {
		if (d.line)
			err_set(&rs->first, EINVAL, "%s:%d:%d: %s", d.file, d.line, d.col, d.text);
		else
			err_set(&rs->first, EINVAL, "%s: %s", d.file, d.text);
	}
	if (rs->fn)
		rs->fn(rs->fn_arg, &d);
}

void rule_error(struct ruleset *rs, struct pos at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(rs, at, false, fmt, ap);
	va_end(ap);
}

void rule_warn(struct ruleset *rs, struct pos at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(rs, at, true, fmt, ap);
	va_end(ap);
}

const char *rule_hint(char *out, size_t n, const char *word, const char *const *names,
		      size_t names_n)
{
	const char *near = closest_name(word, names, names_n);

	if (near)
		snprintf(out, n, " (did you mean '%s'?)", near);
	else
		out[0] = 0;
	return out;
}
