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

static const char cannot[] = "a limit that a sandbox cannot keep";

static int read_memory(struct oci_parser *s, const struct json_node *m)
{
	static const struct oci_key keys[] = {
		{ .key = "limit" },
		{ .key = "useHierarchy" },
		{ .key = "reservation", .noted = true },
		{ .key = "swap", .noted = true },
		{ .key = "kernel", .noted = true },
		{ .key = "swappiness", .noted = true },
		{ .key = "checkBeforeUpdate", .noted = true },
		{ .key = "disableOOMKiller", .never = cannot },
		{ .key = "kernelTCP", .never = cannot },
	};
	int r = read_limit(s, m, "limit", &s->c->memory);

	return r < 0 ? r : oci_check_keys(s, m, "linux.resources.memory", keys, ARRAY_SIZE(keys));
}

static int read_cpu(struct oci_parser *s, const struct json_node *m)
{
	static const struct oci_key keys[] = {
		{ .key = "quota" },
		{ .key = "period" },
		{ .key = "shares", .noted = true },
		{ .key = "burst", .noted = true },
		{ .key = "idle", .noted = true },
		{ .key = "cpus", .never = cannot },
		{ .key = "mems", .never = cannot },
		{ .key = "realtimeRuntime", .never = cannot },
		{ .key = "realtimePeriod", .never = cannot },
	};
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
	return r < 0 ? r : oci_check_keys(s, m, "linux.resources.cpu", keys, ARRAY_SIZE(keys));
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
	static const struct oci_key keys[] = {
		{ .key = "memory" },
		{ .key = "cpu" },
		{ .key = "pids" },
		{ .key = "devices" },
		{ .key = "blockIO" },
		{ .key = "network", .noted = true },
		{ .key = "rdma", .never = cannot },
		{ .key = "unified", .never = cannot },
		{ .key = "hugepageLimits", .never = cannot },
	};
	static const struct oci_key io[] = {
		{ .key = "weight", .noted = true },
		{ .key = "leafWeight", .noted = true },
		{ .key = "weightDevice", .noted = true },
		{ .key = "throttleReadBpsDevice", .never = cannot },
		{ .key = "throttleWriteBpsDevice", .never = cannot },
		{ .key = "throttleReadIOPSDevice", .never = cannot },
		{ .key = "throttleWriteIOPSDevice", .never = cannot },
	};
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
		r = oci_check_keys(s, m, "linux.resources.blockIO", io, ARRAY_SIZE(io));
	if (r == 0)
		r = oci_check_keys(s, node, "linux.resources", keys, ARRAY_SIZE(keys));
	return r;
}
