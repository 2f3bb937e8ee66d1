// SPDX-License-Identifier: Apache-2.0
/* config.json, "linux.resources": limits. One that a sandbox cannot keep is refused; a share of what is left over is
 * none. */
#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/oci/parser.h"

#define CPU_PERIOD_DEFAULT 100000 /* us, as the kernel's */

/* A whole number that may be -1, 0 or absent for "no limit": 0. */
static int read_limit(struct oci_parser *s, const struct json_node *object, const char *key,
		      uint64_t *ret)
{
	const struct json_node *m;
	int r = oci_member(s, object, key, JSON_NUMBER, &m);
	int64_t v;

	*ret = 0;
	if (r < 0 || !m)
		return r;
	if (!json_i64_of(m, &v) || v < -1)
		return oci_bad(s, m, ERANGE, "'%s': expected a limit, or -1", key);
	*ret = v > 0 ? (uint64_t)v : 0;
	return 0;
}

/* 0, false, -1 and "" ask for nothing. */
static bool asks(const struct json_node *m)
{
	int64_t v;

	if (!m || (m->type == JSON_BOOL && !m->truth))
		return false;
	if (m->type == JSON_NUMBER && json_i64_of(m, &v) && v <= 0)
		return false;
	if (m->type == JSON_STRING)
		return m->text.n != 0;
	if (m->type == JSON_ARRAY || m->type == JSON_OBJECT)
		return m->first != NULL;
	return true;
}

static int refuse(struct oci_parser *s, const struct json_node *object, const char *where,
		  const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct json_node *m = json_given(object, keys[i]);

		if (asks(m))
			return oci_bad(s, m, EOPNOTSUPP,
				       "linux.resources.%s%s: a limit that a sandbox cannot keep",
				       where, keys[i]);
	}
	return 0;
}

static void pass_over(struct oci_parser *s, const struct json_node *object, const char *where,
		      const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (asks(json_given(object, keys[i])))
			oci_note(s, "linux.resources.%s%s: not applied", where, keys[i]);
}

static int read_memory(struct oci_parser *s, const struct json_node *m)
{
	static const char *const never[] = { "disableOOMKiller", "kernelTCP" };
	static const char *const notes[] = { "reservation", "swap", "kernel", "swappiness",
					     "checkBeforeUpdate" };
	static const char *const known[] = {
		"limit",  "disableOOMKiller", "kernelTCP",    "reservation",	  "swap",
		"kernel", "swappiness",	      "useHierarchy", "checkBeforeUpdate"
	};
	int r = read_limit(s, m, "limit", &s->c->memory);

	if (r == 0)
		r = refuse(s, m, "memory.", never, ARRAY_SIZE(never));
	pass_over(s, m, "memory.", notes, ARRAY_SIZE(notes));
	oci_unknown(s, m, "linux.resources.memory", known, ARRAY_SIZE(known));
	return r;
}

static int read_cpu(struct oci_parser *s, const struct json_node *m)
{
	static const char *const never[] = { "cpus", "mems", "realtimeRuntime", "realtimePeriod" };
	static const char *const notes[] = { "shares", "burst", "idle" };
	static const char *const known[] = { "quota",		"period", "cpus",  "mems",
					     "realtimeRuntime", "shares", "burst", "idle",
					     "realtimePeriod" };
	uint64_t quota, period = CPU_PERIOD_DEFAULT;
	int r = read_limit(s, m, "quota", &quota);

	if (r == 0)
		r = oci_number(s, m, "period", 1000000, &period);
	if (r == 0 && quota > UINT64_MAX / 1000)
		r = oci_bad(s, m, ERANGE, "linux.resources.cpu.quota: too much");
	if (r == 0 && quota && !period)
		period = CPU_PERIOD_DEFAULT;
	if (r == 0 && quota)
		s->c->cpu_milli = MAX(quota * 1000 / period, (uint64_t)1);
	if (r == 0)
		r = refuse(s, m, "cpu.", never, ARRAY_SIZE(never));
	pass_over(s, m, "cpu.", notes, ARRAY_SIZE(notes));
	oci_unknown(s, m, "linux.resources.cpu", known, ARRAY_SIZE(known));
	return r;
}

/* What a container may do with device nodes: a sandbox has six, and can make none. */
static int read_device_rules(struct oci_parser *s, const struct json_node *list)
{
	for (const struct json_node *d = list->first; d; d = d->next) {
		bool allow = false;
		int r = d->type == JSON_OBJECT ? oci_flag(s, d, "allow", &allow)
					       : oci_bad(s, d, EBADMSG, "devices: no object");

		if (r < 0)
			return r;
		if (allow && !json_given(d, "major"))
			return oci_bad(
				s, d, EOPNOTSUPP,
				"linux.resources.devices: all devices are allowed: a sandbox "
				"has none of the host's (--privileged)");
	}
	return 0;
}

int oci_parse_resources(struct oci_parser *s, const struct json_node *node)
{
	static const char *const never[] = { "hugepageLimits", "rdma", "unified" };
	static const char *const known[] = { "memory",	"cpu",	   "pids",
					     "devices", "blockIO", "network",
					     "rdma",	"unified", "hugepageLimits" };
	static const char *const io[] = { "throttleReadBpsDevice", "throttleWriteBpsDevice",
					  "throttleReadIOPSDevice", "throttleWriteIOPSDevice" };
	static const char *const weights[] = { "weight", "leafWeight", "weightDevice" };
	static const char *const marks[] = { "network" };
	const struct json_node *m;
	int r = oci_member(s, node, "memory", JSON_OBJECT, &m);

	if (r == 0 && m)
		r = read_memory(s, m);
	if (r == 0)
		r = oci_member(s, node, "cpu", JSON_OBJECT, &m);
	if (r == 0 && m)
		r = read_cpu(s, m);
	if (r == 0)
		r = oci_member(s, node, "pids", JSON_OBJECT, &m);
	if (r == 0 && m)
		r = read_limit(s, m, "limit", &s->c->pids);
	if (r == 0)
		r = oci_member(s, node, "devices", JSON_ARRAY, &m);
	if (r == 0 && m)
		r = read_device_rules(s, m);
	if (r == 0)
		r = oci_member(s, node, "blockIO", JSON_OBJECT, &m);
	if (r == 0 && m)
		r = refuse(s, m, "blockIO.", io, ARRAY_SIZE(io));
	if (r == 0 && m)
		pass_over(s, m, "blockIO.", weights, ARRAY_SIZE(weights));
	if (r == 0)
		r = refuse(s, node, "", never, ARRAY_SIZE(never));
	pass_over(s, node, "", marks, ARRAY_SIZE(marks));
	oci_unknown(s, node, "linux.resources", known, ARRAY_SIZE(known));
	return r;
}
