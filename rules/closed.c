// SPDX-License-Identifier: Apache-2.0
/* Fields whose values are a closed set: a typing error in one makes a rule that never fires, and a fixture that tests
 * another thing than its author thinks. */
#include "rules/internal.h"

#include "userspace/base/option.h"

static const struct closed {
	enum field_id slot;
	const char *what;
	const char *names[9]; /* empty: kinds and escape types, which have tables of their own */
} sets[] = {
	{ F_KIND, "event kind", { NULL } },
	{ F_ESCAPE_TYPE, "escape type", { NULL } },
	{ F_OUTCOME, "outcome", { "success", "failure", "denied", "pending" } },
	{ F_VANTAGE, "vantage", { "kernel", "guest", "runtime", "agent" } },
	{ F_PROC_STDIN,
	  "type of stdin",
	  { "tty", "pipe", "socket", "file", "null", "other", "none" } },
	{ F_FILE_TYPE,
	  "type of file",
	  { "regular", "directory", "symlink", "char", "block", "fifo", "socket" } },
	{ F_PACKAGE_FROM, "origin of packages", { "command", "files" } },
};

static size_t names_of(const struct closed *c, const char *ret[], size_t max)
{
	size_t n = 0;

	for (size_t i = 0; c->slot == F_KIND && i < event_kinds_n && n < max; i++)
		ret[n++] = event_kinds[i].name;
	for (uint32_t t = 1; c->slot == F_ESCAPE_TYPE && t < 64 && n < max; t++)
		if (event_escape_name(t))
			ret[n++] = event_escape_name(t);
	for (size_t i = 0; c->names[i] && n < max; i++)
		ret[n++] = c->names[i];
	return n;
}

bool closed_has(int slot, struct str value, char *ret, size_t size)
{
	const char *names[256];
	char hint[96], word[96];
	size_t n;

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		if ((int)sets[i].slot != slot)
			continue;
		n = names_of(&sets[i], names, ARRAY_SIZE(names));
		for (size_t k = 0; k < n; k++)
			if (str_eqz(value, names[k]))
				return true;
		snprintf(word, sizeof(word), "%.*s", (int)MIN(value.n, sizeof(word) - 1), value.p);
		snprintf(ret, size, "no %s is named '%s'%s", sets[i].what, word,
			 rule_hint(hint, sizeof(hint), word, names, n));
		return false;
	}
	return true;
}

bool closed_check_event(const struct event *ev, char *ret, size_t size)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (event_has(ev, sets[i].slot) &&
		    !closed_has(sets[i].slot, event_str(ev, sets[i].slot), ret, size))
			return false;
	return true;
}
