// SPDX-License-Identifier: Apache-2.0
#include "rules/internal.h"

#include <strings.h>

const char *const rule_priority_names[] = {
	[RULE_EMERGENCY] = "emergency",
	[RULE_ALERT] = "alert",
	[RULE_CRITICAL] = "critical",
	[RULE_ERROR] = "error",
	[RULE_WARNING] = "warning",
	[RULE_NOTICE] = "notice",
	[RULE_INFORMATIONAL] = "informational",
	[RULE_DEBUG] = "debug",
};

const char *const rule_for_names[RULE_FOR_KEYS] = { "backend", "tier", "tenant", "policy" };

const char *const rule_action_names[] = {
	[RULE_ACT_ALERT] = "alert",   [RULE_ACT_DENY] = "deny", [RULE_ACT_KILL] = "kill",
	[RULE_ACT_FREEZE] = "freeze", [RULE_ACT_HOLD] = "hold",
};

const char *rule_priority_name(enum rule_priority p)
{
	return (size_t)p < ARRAY_SIZE(rule_priority_names) ? rule_priority_names[p] : "unknown";
}

const char *rule_action_name(enum rule_action a)
{
	return (size_t)a < ARRAY_SIZE(rule_action_names) ? rule_action_names[a] : "unknown";
}

static int find(struct str s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s.n == strlen(names[i]) && !strncasecmp(s.p, names[i], s.n))
			return (int)i;
	return -1;
}

int rule_priority_parse(struct str s, enum rule_priority *ret)
{
	int i = find(s, rule_priority_names, ARRAY_SIZE(rule_priority_names));

	if (i < 0 && s.n == 4 && !strncasecmp(s.p, "info", 4))
		i = RULE_INFORMATIONAL;
	if (i < 0)
		return -EINVAL;
	*ret = (enum rule_priority)i;
	return 0;
}

int rule_action_parse(struct str s, enum rule_action *ret)
{
	int i = find(s, rule_action_names, ARRAY_SIZE(rule_action_names));

	if (i < 0)
		return -EINVAL;
	*ret = (enum rule_action)i;
	return 0;
}
