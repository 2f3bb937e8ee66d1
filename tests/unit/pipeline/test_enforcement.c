// SPDX-License-Identifier: Apache-2.0
/* Push-down. For many rules, paths and addresses: what the kernel's tables say is compared with what the rules
 * say of the event. A decision without a matching rule would be a wrong kill; one that is missing although the
 * rule is "whole" would be a hole. */
#include "tests/unit/rules/rules_test.h"

#include <sys/socket.h>

#include "rules/push.h"
#include "userspace/capture/enforce.h"

#define ACT_RULE(name, action, cond)                                                         \
	"- rule: " name "\n  desc: d\n  output: o\n  priority: INFO\n  action: " action "\n" \
	"  condition: " cond "\n"

static struct push_plan *push(const struct ruleset *rs, bool full)
{
	struct push_plan *p = NULL;
	struct err err = { 0 };

	if (ruleset_push(&p, rs, NULL, push_means(full), &err) < 0)
		fail_msg("%s", err_text(&err));
	return p;
}

/* ---- as the kernel does it ---- */

static int pick(const struct enforce_rules *r, uint16_t kind, uint16_t port)
{
	for (size_t i = 0; i < ENFORCE_RULES && r->r[i].id; i++)
		if (r->r[i].kinds >> kind & 1 && port >= r->r[i].port_from &&
		    port <= r->r[i].port_to)
			return r->r[i].verdict << 16 | r->r[i].id;
	return 0;
}

static int by_path(const struct enforce_tables *t, const char *path, uint16_t kind)
{
	char bytes[ENFORCE_PATH_MAX + 8] = { 0 };
	const struct enforce_path_row *best = NULL;
	int v;

	memcpy(bytes, path, MIN(strlen(path), (size_t)ENFORCE_PATH_MAX));
	for (size_t i = 0; i < t->paths_n; i++)
		if (!memcmp(t->paths[i].key.path, bytes, (t->paths[i].key.prefixlen - 32) / 8) &&
		    (!best || t->paths[i].key.prefixlen > best->key.prefixlen))
			best = &t->paths[i];
	v = best && t->set.kinds[ENFORCE_BY_PATH] >> kind & 1 ? pick(&best->rules, kind, 0) : 0;
	if (t->set.kind_verdict[kind] << 16 > v)
		v = t->set.kind_verdict[kind] << 16 | t->set.kind_id[kind];
	return v >> 16 ? v : 0;
}

static bool in_net(const struct enforce_addr_row *row, const struct ip_addr *ip)
{
	unsigned bits = row->key.prefixlen - 32;

	if (row->v6 != (ip->family == 6))
		return false;
	for (unsigned i = 0; i < bits; i++)
		if ((row->key.addr[i / 8] ^ ip->b[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

static int by_addr(const struct enforce_tables *t, const struct ip_addr *ip, uint16_t port,
		   uint16_t kind)
{
	const struct enforce_addr_row *best = NULL;
	int v;

	for (size_t i = 0; i < t->addrs_n; i++)
		if (in_net(&t->addrs[i], ip) &&
		    (!best || t->addrs[i].key.prefixlen > best->key.prefixlen))
			best = &t->addrs[i];
	v = best ? pick(&best->rules, kind, port) : 0;
	return v >> 16 ? v : 0;
}

static struct enforce_tables tables(const struct push_plan *p)
{
	struct enforce_tables t;
	struct err err = { 0 };

	if (enforce_compile(&t, 1, p->v, p->n, &err) < 0)
		fail_msg("%s", err_text(&err));
	return t;
}

/* ---- both must say the same ---- */

static bool matches(const struct ruleset *rs, const struct event *ev, size_t rule)
{
	struct rule_matches m;

	ruleset_eval(rs, ev, &m);
	for (size_t i = 0; i < m.n; i++)
		if (m.v[i] == ruleset_get(rs, rule))
			return true;
	return false;
}

static size_t compare(const struct ruleset *rs, const struct push_plan *p, int decided,
		      const char *spec, uint16_t kind)
{
	struct made_event e;
	size_t n = 0;

	make_event(&e, spec);
	if (decided && !matches(rs, &e.ev, (size_t)(decided & 0xffff) - 1))
		fail_msg("%s: decided by rule %d, which does not match", spec, decided & 0xffff);
	for (size_t i = 0; i < p->rules_n; i++) {
		if (!matches(rs, &e.ev, i))
			continue;
		n++;
		if (!decided && p->rule[i].whole >> kind & 1)
			fail_msg("%s: rule '%s' is the kernel's, which lets it pass", spec,
				 ruleset_get(rs, i)->name);
	}
	drop_event(&e);
	return n;
}

static const char *const PATH_RULES[] = {
	ACT_RULE("a", "kill", "kind = file.open and file.path startswith /etc"),
	ACT_RULE("a", "kill",
		 "kind = file.open and file.path startswith /etc/ and not file.path in "
		 "(/etc/a, /etc/b)"),
	ACT_RULE("a", "deny",
		 "kind in (file.open, file.delete, file.mkdir) and not file.path pmatch "
		 "(/tmp, /workspace)"),
	ACT_RULE("a", "kill", "kind = file.open and file.path = /etc/passwd")
		ACT_RULE("b", "kill", "kind = file.delete and file.path startswith /etc"),
	/* another's exception is no exception of this one */
	ACT_RULE("a", "kill",
		 "kind = file.open and file.path startswith /etc and not file.path "
		 "startswith /etc/ssl")
		ACT_RULE("b", "deny", "kind = file.open and file.path startswith /etc/ssl/private")
			ACT_RULE("c", "kill", "kind = file.delete and file.path pmatch (/etc/ssl)"),
	ACT_RULE("a", "kill", "kind = file.open and (file.path startswith /a or proc.comm = x)"),
	ACT_RULE("a", "kill", "kind = file.open and file.path startswith /a and proc.comm = x"),
	ACT_RULE("a", "kill",
		 "kind = file.open and file.path endswith .ssh/id and file.path != /a"),
	ACT_RULE("a", "kill",
		 "kind = file.open and file.path in (/tmp/x, /a) and file.path endswith a"),
	ACT_RULE("a", "kill", "file.path startswith /etc"),
	ACT_RULE("a", "kill",
		 "evt.type in (open, openat, openat2, creat, open_by_handle_at) and "
		 "fd.name startswith /etc"),
	ACT_RULE("a", "kill", "evt.type = openat and fd.name startswith /etc"),
	ACT_RULE("a", "kill",
		 "kind = file.open and not (file.path startswith /etc and not file.path "
		 "startswith /etc/ssl)"),
	ACT_RULE("a", "kill", "kind = file.open and file.path pmatch (/)"),
	ACT_RULE("a", "kill", "kind = file.attr and file.path startswith /etc and file.op = chmod"),
	ACT_RULE("a", "kill", "kind = file.attr and file.path startswith /etc"),
	ACT_RULE("a", "deny",
		 "kind = file.attr and file.path startswith /etc and not file.op = setxattr"),
	ACT_RULE("a", "kill", "kind = file.open"),
	ACT_RULE("a", "kill", "kind = file.open and file.path exists"),
	ACT_RULE("a", "deny", "kind = file.delete and tolower(file.path) startswith /etc"),
};

static void one_path(void **state)
{
	static const char *const paths[] = {
		"/",
		"/etc",
		"/etc/",
		"/etc/a",
		"/etc/ab",
		"/etc/b/c",
		"/etcx",
		"/etc/passwd",
		"/etc/passwdx",
		"/etc/ssl",
		"/etc/ssl/x",
		"/etc/sslx",
		"/tmp",
		"/tmp/x",
		"/tmpx",
		"/a",
		"/ab",
		"/ETC/a",
		"/b",
		"/etc/ssl/private",
		"/etc/ssl/private/k",
		"/workspace/y",
		"/home/u/.ssh/id",
		"memfd:x",
		"pipe:[1]",
	};
	static const char *const kinds[] = { "file.open", "file.delete", "file.mkdir",
					     "file.attr" };
	static const char *const ops[] = { "chmod", "chown", "truncate", "setxattr" };

	(void)state;
	for (size_t full = 0; full < 2; full++)
		for (size_t i = 0; i < ARRAY_SIZE(PATH_RULES); i++) {
			struct said said;
			struct ruleset *rs = load(PATH_RULES[i], &said);
			struct enforce_tables t;
			struct push_plan *p;

			if (!rs)
				fail_msg("%s%s", PATH_RULES[i], said.text);
			p = push(rs, full);
			t = tables(p);
			for (size_t k = 0; k < ARRAY_SIZE(kinds) * 4 * ARRAY_SIZE(paths); k++) {
				const char *path = paths[k / 16], *kind = kinds[k / 4 % 4];
				uint16_t id = event_kind_by_name(str_from(kind))->id;
				bool attr = id == WIRE_FILE_ATTR;
				char spec[256];

				snprintf(spec, sizeof(spec), "%s; file.path=%s; syscall=openat%s%s",
					 kind, path, attr ? "; file.op=" : "",
					 attr ? ops[k % 4] : "");
				/* A deny has no way to refuse this one, and is not asked. */
				if (attr && k % 4 == 3 && strstr(PATH_RULES[i], "action: deny"))
					continue;
				compare(rs, p, by_path(&t, path, id), spec, id);
			}
			enforce_tables_done(&t);
			push_plan_free(p);
			ruleset_free(rs);
		}
}

static void two_paths(void **state)
{
	static const char *const rules[] = {
		ACT_RULE("a", "kill", "kind = file.rename and file.path startswith /etc"),
		ACT_RULE("a", "kill",
			 "kind = file.rename and (file.path startswith /etc or "
			 "file.old_path startswith /etc)"),
		ACT_RULE("a", "kill",
			 "kind = file.rename and (file.path startswith /etc or "
			 "file.old_path startswith /tmp)"),
		ACT_RULE("a", "kill",
			 "kind = file.rename and file.path startswith /etc and "
			 "file.old_path startswith /etc"),
		ACT_RULE("a", "kill", "kind = file.rename and file.path startswith /"),
	};
	static const bool whole[] = { false, true, false, false, false };
	static const char *const paths[] = { "/etc/a", "/tmp/a", "/b", "/etc" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct said said;
		struct ruleset *rs = load(rules[i], &said);
		struct push_plan *p = push(rs, true);
		struct enforce_tables t = tables(p);

		assert_int_equal(p->rule[0].whole >> WIRE_FILE_RENAME & 1, whole[i]);
		for (size_t k = 0; k < 16; k++) {
			const char *a = paths[k / 4], *b = paths[k % 4];
			int va = by_path(&t, a, WIRE_FILE_RENAME);
			int vb = by_path(&t, b, WIRE_FILE_RENAME);
			char spec[128];

			snprintf(spec, sizeof(spec), "file.rename; file.path=%s; file.old_path=%s",
				 a, b);
			compare(rs, p, MAX(va, vb), spec, WIRE_FILE_RENAME);
		}
		enforce_tables_done(&t);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

static const char *const NET_RULES[] = {
	ACT_RULE("a", "deny", "kind = net.connect and net.dst.ip in (10.0.0.0/8)"),
	ACT_RULE("a", "kill",
		 "kind in (net.connect, net.send) and not net.dst.ip in (10.0.0.0/8, "
		 "10.1.0.0/16, fd00::/8)"),
	ACT_RULE("a", "deny",
		 "kind = net.connect and net.family in (inet, inet6) and not (net.dst.ip "
		 "in (10.0.0.0/8) and net.dst.port in (80, 443))"),
	ACT_RULE("a", "deny", "kind = net.connect and net.dst.port in (22, 23, 25, 3306)")
		ACT_RULE("b", "kill",
			 "kind = net.connect and net.dst.ip = 10.1.2.3 and net.dst.port < "
			 "1024"),
	ACT_RULE("a", "kill", "kind = net.connect and net.dst.ip != 10.1.2.3"),
	ACT_RULE("a", "kill", "kind = net.connect and net.dst.ip in (::ffff:10.1.2.3)"),
	ACT_RULE("a", "kill",
		 "kind = net.connect and net.dst.ip in (10.0.0.0/8) and net.unresolved = "
		 "true"),
	ACT_RULE("a", "kill", "evt.type = connect and fd.sip = 10.1.2.3 and fd.sport = 80"),
	ACT_RULE("a", "kill", "evt.type = connect and fd.snet in (10.0.0.0/8) and fd.typechar = 4"),
	ACT_RULE("a", "kill", "evt.type = connect and fd.typechar = 6"),
	ACT_RULE("a", "kill", "kind = net.connect"),
	ACT_RULE("a", "kill", "net.dst.ip in (0.0.0.0/0)"),
};

static void addresses(void **state)
{
	static const char *const ips[] = { "10.1.2.3", "10.200.0.1", "11.0.0.1", "fd00::1",
					   "fe80::1",  "0.0.0.0",    "::" };
	static const unsigned ports[] = { 0, 22, 24, 25, 79, 80, 81, 443, 1023, 1024, 3306, 65535 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NET_RULES); i++) {
		struct said said;
		struct ruleset *rs = load(NET_RULES[i], &said);
		struct enforce_tables t;
		struct push_plan *p;

		if (!rs)
			fail_msg("%s%s", NET_RULES[i], said.text);
		p = push(rs, false);
		t = tables(p);
		for (size_t k = 0; k < 2 * ARRAY_SIZE(ips) * ARRAY_SIZE(ports); k++) {
			const char *ip = ips[k / 2 % ARRAY_SIZE(ips)];
			unsigned port = ports[k / 2 / ARRAY_SIZE(ips)];
			uint16_t kind = k % 2 ? WIRE_NET_SEND : WIRE_NET_CONNECT;
			struct ip_addr a;
			char spec[128];

			assert_int_equal(ip_addr_parse(str_from(ip), &a), 0);
			snprintf(spec, sizeof(spec),
				 "%s; net.family=%s; net.dst.ip=%s; net.dst.port=%u",
				 k % 2 ? "net.send" : "net.connect",
				 a.family == 4 ? "inet" : "inet6", ip, port);
			compare(rs, p, by_addr(&t, &a, (uint16_t)port, kind), spec, kind);
		}
		enforce_tables_done(&t);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

/* More ranges than the kernel has room for: one rule goes back to user space, nothing is decided wrongly. */
static void more_ports_than_fit(void **state)
{
	static const char text[] =
		ACT_RULE("many", "kill",
			 "kind = net.connect and net.dst.ip exists and net.dst.port in "
			 "(1, 3, 5, 7, 9, 11, 13, 15, 17, 19)")
			ACT_RULE("one", "kill", "kind = net.connect and net.dst.ip = 10.0.0.1");
	struct said said;
	struct ruleset *rs = load(text, &said);
	struct push_plan *p = push(rs, false);
	struct enforce_tables t = tables(p);
	struct ip_addr a;

	(void)state;
	assert_non_null(strstr(p->rule[0].why, "too many ranges of ports"));
	assert_false(p->rule[0].complete);
	assert_true(p->rule[1].complete);
	assert_int_equal(ip_addr_parse(STR("10.0.0.1"), &a), 0);
	assert_int_equal(by_addr(&t, &a, 2, WIRE_NET_CONNECT), ENFORCE_KILL << 16 | 2);
	enforce_tables_done(&t);
	push_plan_free(p);
	ruleset_free(rs);
}

/* A list that no table holds: a kill is user space's, a deny is refused. Neither is an error of the set. */
static void more_paths_than_fit(void **state)
{
	static const char *const actions[] = { "kill", "deny" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf text = { 0 };
		struct err err = { 0 };
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;

		buf_printf(&text, "- list: l\n  items: [");
		for (int k = 0; k < 5000; k++)
			buf_printf(&text, "/tmp/f%d, ", k);
		buf_printf(&text,
			   "/x]\n" ACT_RULE("r", "%s", "kind = file.open and file.path in (l)"),
			   actions[i]);
		buf_addc(&text, 0);
		rs = load(text.p, &said);
		assert_non_null(rs);
		p = push(rs, true);
		assert_int_equal(p->n, 0);
		assert_false(p->rule[0].complete);
		assert_int_equal(push_check_deny(p, push_means(true), &err), i ? -ENOTSUP : 0);
		if (i)
			assert_non_null(strstr(err_text(&err), "file.open: more than 2048 paths"));
		push_plan_free(p);
		ruleset_free(rs);
	}
}

/* ---- deny ---- */

static void what_can_be_denied(void **state)
{
	static const struct {
		const char *rule;
		const char *portable, *full; /* part of the complaint; NULL = it can */
	} rows[] = {
		{ "kind = net.connect and net.dst.ip in (10.0.0.0/8)", NULL, NULL },
		{ "kind in (net.connect, net.send) and net.dst.port = 25",
		  "only internet addresses", "only internet addresses" },
		{ "kind = net.connect and net.dst.ip exists and net.dst.port = 25", NULL, NULL },
		{ "kind = net.connect and net.dst.ip exists and proc.comm = x",
		  "net.connect: the kernel does not know 'proc.comm'", "proc.comm" },
		{ "net.dst.ip in (10.0.0.0/8)", "cannot be denied", "cannot be denied" },
		{ "kind = file.open and file.path startswith /etc",
		  "file.open: cannot be denied in the portable tier", NULL },
		{ "kind = file.open and file.path startswith /etc and file.path endswith x",
		  "cannot be denied in the portable tier", "file.path" },
		{ "kind = exec and proc.exe startswith /tmp/", "exec: cannot be denied", NULL },
		{ "kind = exec and proc.args contains x", "cannot be denied", "proc.args" },
		{ "kind = file.attr and file.path startswith /etc", "cannot be denied",
		  "extended attributes" },
		{ "kind = file.attr and file.path startswith /etc and not file.op = setxattr",
		  "cannot be denied", NULL },
		{ "kind = file.rename and file.path startswith /etc", "cannot be denied",
		  "name both" },
		{ "kind = escape and escape.type = mknod", NULL, NULL },
		{ "kind = escape and escape.type = device", "in some of its forms only",
		  "in some" },
		{ "kind = escape and escape.type = unshare", "own walls", "own walls" },
		{ "kind = dns.query", "dns.query: cannot be denied",
		  "dns.query: cannot be denied" },
		{ "kind = gap", "gap: no act of a program", "gap: no act" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const char *want = i % 2 ? rows[i / 2].full : rows[i / 2].portable;
		const struct push_means *m = push_means(i % 2);
		struct err err = { 0 };
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;
		char text[512];
		int r;

		snprintf(text, sizeof(text), ACT_RULE("r", "deny", "%s"), rows[i / 2].rule);
		rs = load(text, &said);
		if (!rs)
			fail_msg("%s%s", text, said.text);
		p = push(rs, i % 2);
		r = push_check_deny(p, m, &err);
		if ((r < 0) != (want != NULL) || (want && !strstr(err_text(&err), want)))
			fail_msg("%s (%s): %d '%s'", rows[i / 2].rule, m->tier, r, err_text(&err));
		push_plan_free(p);
		ruleset_free(rs);
		/* Who settles for a kill may. */
		strcat(text, "  deny_fallback: kill\n");
		rs = load(text, &said);
		p = push(rs, i % 2);
		assert_int_equal(push_check_deny(p, m, NULL), 0);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

static void what_is_not_pushed(void **state)
{
	static const char *const rules[] = {
		ACT_RULE("r", "alert", "kind = file.open and file.path startswith /etc"),
		ACT_RULE("r", "freeze", "kind = file.open and file.path startswith /etc"),
		ACT_RULE("r", "hold", "kind = file.open and file.path startswith /etc"),
		ACT_RULE("r", "kill",
			 "kind = file.open and file.path startswith /etc") "  dry_run: true\n",
		ACT_RULE("r", "kill",
			 "kind = file.open and file.path startswith /etc") "  enabled: false\n",
		/* the mask of the sandbox has it */
		ACT_RULE("r", "kill", "kind = escape and escape.type = unshare"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		struct said said;
		struct ruleset *rs = load(rules[i], &said);
		struct push_plan *p = push(rs, true);

		if (p->n)
			fail_msg("%s", rules[i]);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

/* A path that was cut has no head to look at: it fails closed for who forbids, and only there. */
static void cut_paths(void **state)
{
	static const char text[] =
		ACT_RULE("a", "kill", "kind = file.open and file.path startswith /etc")
			ACT_RULE("b", "deny", "kind = file.delete and file.path startswith /etc");
	struct said said;
	struct ruleset *rs = load(text, &said);
	struct push_plan *p = push(rs, true);
	struct enforce_tables t = tables(p);

	(void)state;
	assert_int_equal(t.set.cut_kinds, ENFORCE_KIND(WIRE_FILE_DELETE));
	assert_int_equal(t.set.cut_verdict, ENFORCE_DENY);
	assert_int_equal(t.set.cut_id, 2);
	enforce_tables_done(&t);
	push_plan_free(p);
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_path),
		cmocka_unit_test(two_paths),
		cmocka_unit_test(addresses),
		cmocka_unit_test(more_ports_than_fit),
		cmocka_unit_test(more_paths_than_fit),
		cmocka_unit_test(what_can_be_denied),
		cmocka_unit_test(what_is_not_pushed),
		cmocka_unit_test(cut_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
