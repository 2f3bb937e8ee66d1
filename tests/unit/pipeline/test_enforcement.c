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

	if (enforce_compile(&t, 1, 0, p->v, p->n, &err) < 0)
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

/* ---- programs ---- */

#define CLASSES (ENFORCE_CLASSES + 1)

struct by_program {
	struct enforce_tables t[CLASSES];
	struct enforce_name_row *name;
	size_t n, names_n;
};

static void by_program_init(struct by_program *b, const struct push_plan *p)
{
	uint32_t row[CLASSES];
	struct err err = { 0 };

	*b = (struct by_program){ .n = 1 };
	for (size_t i = 0; i < p->n; i++)
		b->n = MAX(b->n, (size_t)p->v[i].class + 1);
	assert_true(b->n <= CLASSES);
	for (size_t i = 0; i < b->n; i++) {
		row[i] = (uint32_t)i;
		if (enforce_compile(&b->t[i], 1, (unsigned int)i, p->v, p->n, &err) < 0)
			fail_msg("%s", err_text(&err));
	}
	if (enforce_compile_names(&b->name, &b->names_n, 1, row, b->n, p->v, p->n, &err) < 0)
		fail_msg("%s", err_text(&err));
}

static void by_program_done(struct by_program *b)
{
	for (size_t i = 0; i < b->n; i++)
		enforce_tables_done(&b->t[i]);
	free(b->name);
}

/* As the kernel does it: the longest name that is a prefix. */
static const struct enforce_tables *of_program(const struct by_program *b, const char *exe)
{
	char bytes[ENFORCE_PATH_MAX + 8] = { 0 };
	const struct enforce_name_row *best = NULL;

	if (!exe)
		return &b->t[0];
	memcpy(bytes, exe, MIN(strlen(exe), (size_t)ENFORCE_PATH_MAX));
	for (size_t i = 0; i < b->names_n; i++)
		if (!memcmp(b->name[i].key.path, bytes, (b->name[i].key.prefixlen - 32) / 8) &&
		    (!best || b->name[i].key.prefixlen > best->key.prefixlen))
			best = &b->name[i];
	return &b->t[best ? best->class.row : 0];
}

static const char *const PROGRAM_RULES[] = {
	ACT_RULE("a", "deny",
		 "kind = net.connect and net.dst.ip exists and proc.exe = /usr/bin/curl"),
	ACT_RULE("a", "kill",
		 "kind = net.connect and net.dst.ip in (10.0.0.0/8) and not proc.exe "
		 "startswith /usr/lib/"),
	ACT_RULE("a", "kill",
		 "kind = net.connect and proc.exe in (/usr/bin/curl, /bin/sh) and "
		 "net.dst.port = 80"),
	/* an exception for one program is none of the other rule */
	ACT_RULE("a", "deny", "kind = net.connect and net.dst.ip exists and proc.exe != /bin/sh")
		ACT_RULE("b", "kill",
			 "kind = net.connect and proc.exe = /bin/sh and net.dst.ip = "
			 "10.1.2.3"),
	ACT_RULE("a", "kill", "kind = file.open and proc.exe = /usr/bin/curl"),
	ACT_RULE("a", "kill",
		 "kind = file.open and proc.exe pmatch (/usr/bin) and file.path "
		 "startswith /etc and not (proc.exe = /usr/bin/curl and file.path = "
		 "/etc/a)"),
	ACT_RULE("a", "kill", "kind = file.write and proc.exe startswith /usr/bin/"),
	ACT_RULE("a", "kill", "kind = file.write and not proc.exe in (/bin/sh)"),
	ACT_RULE("a", "kill", "kind = file.open and proc.exe endswith /curl"),
	ACT_RULE("a", "kill", "kind = file.open and (proc.exe = /bin/sh or proc.comm = x)"),
	ACT_RULE("a", "kill", "kind = file.open and proc.exe = /bin/sh and proc.comm = x"),
	ACT_RULE("a", "kill", "kind = file.open and not proc.exe exists"),
	ACT_RULE("a", "kill",
		 "kind = file.open and basename(proc.exe) = curl and proc.exe in "
		 "(/usr/bin/curl, /bin/sh)"),
	ACT_RULE("a", "kill", "kind = file.open and proc.exe = val(file.path)"),
	ACT_RULE("a", "kill",
		 "evt.type = connect and proc.exepath = /usr/bin/curl and fd.sip exists"),
	/* argv[0], which it can choose */
	ACT_RULE("a", "kill", "evt.type = connect and proc.exe = /usr/bin/curl and fd.sip exists"),
	ACT_RULE("a", "kill", "kind in (exec, file.open) and proc.exe = /usr/bin/curl"),
	ACT_RULE("a", "kill", "proc.exe = /usr/bin/curl"),
	ACT_RULE("a", "deny", "kind = file.open and proc.exe startswith /usr")
		ACT_RULE("b", "kill", "kind = file.open and file.path startswith /etc")
			ACT_RULE("c", "deny",
				 "kind = file.open and file.path = /etc/a and "
				 "proc.exe = /usr/bin/curlx"),
};

static const char *const PROGRAMS[] = { "/usr/bin/curl", "/usr/bin/curlx", "/usr/bin/cur", "/usr",
					"/usr/lib/x",	 "/bin/sh",	   "/bin/sh/x",	   "/",
					"memfd:x",	 "/usr/binx",	   "/etc/a",	   "/x" };

/* One act: with the program known the two say the same. Not known, the kernel decides only what holds for each program
 * (kill) or for some (deny). */
static void one_act(const struct ruleset *rs, const struct push_plan *p, const struct by_program *b,
		    const char *spec, uint16_t kind,
		    int (*judge)(const struct enforce_tables *t, const void *arg, uint16_t kind),
		    const void *arg)
{
	int unknown = judge(&b->t[0], arg, kind);
	bool some = false, each = true;

	for (size_t i = 0; i < ARRAY_SIZE(PROGRAMS); i++) {
		char full[256];
		struct made_event e;

		snprintf(full, sizeof(full), "%s; proc.exe=%s", spec, PROGRAMS[i]);
		compare(rs, p, judge(of_program(b, PROGRAMS[i]), arg, kind), full, kind);
		if (!unknown)
			continue;
		make_event(&e, full);
		some |= matches(rs, &e.ev, (size_t)(unknown & 0xffff) - 1);
		each &= matches(rs, &e.ev, (size_t)(unknown & 0xffff) - 1);
		drop_event(&e);
	}
	if (unknown && !(unknown >> 16 == ENFORCE_KILL ? each : some))
		fail_msg("%s: decided for a program that is not known", spec);
}

struct target {
	struct ip_addr ip;
	uint16_t port;
};

static int judge_path(const struct enforce_tables *t, const void *arg, uint16_t kind)
{
	return by_path(t, arg, kind);
}

static int judge_addr(const struct enforce_tables *t, const void *arg, uint16_t kind)
{
	const struct target *to = arg;

	return by_addr(t, &to->ip, to->port, kind);
}

static void acts(const struct ruleset *rs, const struct push_plan *p, const struct by_program *b)
{
	static const char *const paths[] = { "/etc/a", "/etc/b", "/tmp/x", "/bin/sh" };
	static const char *const ips[] = { "10.1.2.3", "10.2.0.0", "11.0.0.1", "fd00::1" };
	char spec[128];

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		snprintf(spec, sizeof(spec), "file.open; file.path=%s", paths[i]);
		one_act(rs, p, b, spec, WIRE_FILE_OPEN, judge_path, paths[i]);
		snprintf(spec, sizeof(spec), "file.write; file.path=%s", paths[i]);
		one_act(rs, p, b, spec, WIRE_FILE_WRITE, judge_path, paths[i]);
	}
	for (size_t i = 0; i < 2 * ARRAY_SIZE(ips); i++) {
		struct target to = { .port = i % 2 ? 80 : 443 };

		assert_int_equal(ip_addr_parse(str_from(ips[i / 2]), &to.ip), 0);
		snprintf(spec, sizeof(spec),
			 "net.connect; syscall=connect; net.family=%s; net.dst.ip=%s; "
			 "net.dst.port=%u",
			 to.ip.family == 4 ? "inet" : "inet6", ips[i / 2], to.port);
		one_act(rs, p, b, spec, WIRE_NET_CONNECT, judge_addr, &to);
	}
	/* An exec is judged by what will run, whoever asks for it. */
	for (size_t i = 0; i < ARRAY_SIZE(PROGRAMS); i++)
		for (size_t c = 0; c < b->n; c++) {
			snprintf(spec, sizeof(spec), "exec; proc.exe=%s", PROGRAMS[i]);
			compare(rs, p, by_path(&b->t[c], PROGRAMS[i], WIRE_EXEC), spec, WIRE_EXEC);
		}
}

static void programs(void **state)
{
	size_t told = 0;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(PROGRAM_RULES); i++) {
		const char *text = PROGRAM_RULES[i / 2];
		struct by_program b;
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;

		rs = load(text, &said);
		if (!rs)
			fail_msg("%s%s", text, said.text);
		p = push(rs, i % 2);
		by_program_init(&b, p);
		told += b.n > 1;
		acts(rs, p, &b);
		by_program_done(&b);
		push_plan_free(p);
		ruleset_free(rs);
	}
	assert_true(told >= 24); /* of 38: those where it makes a difference */
}

/* ---- files by their inode ---- */

static int by_file(const struct enforce_tables *t, uint32_t dev, uint64_t ino)
{
	int v = 0;

	for (size_t i = 0; i < t->exes_n; i++)
		if (t->exes[i].key.ino == ino && (!t->exes[i].key.dev || t->exes[i].key.dev == dev))
			v = MAX(v, pick(&t->exes[i].rules, WIRE_EXEC, 0));
	return v;
}

static void execs_by_inode(void **state)
{
	static const struct {
		const char *text;
		bool whole[2]; /* of each rule */
	} rows[] = {
		{ ACT_RULE("a", "kill", "kind = exec and proc.exe_ino = 5 and proc.exe_dev = 8:1"),
		  { true } },
		{ ACT_RULE("a", "deny", "kind = exec and proc.exe_ino in (5, 6)"), { true } },
		{ ACT_RULE("a", "deny",
			   "kind = exec and proc.exe_ino in (5, 6) and not "
			   "proc.exe_dev in (8:1)"),
		  { false } },
		{ ACT_RULE("a", "kill", "kind = exec and not proc.exe_ino = 5"), { false } },
		{ ACT_RULE("a", "kill", "kind = exec and proc.exe_ino < 6"), { false } },
		{ ACT_RULE("a", "kill", "kind = exec and proc.exe_ino = 5 and proc.comm = x"),
		  { false } },
		{ ACT_RULE("a", "kill", "kind = exec and proc.exe_ino = 5 and proc.exe = /x"),
		  { false } },
		{ ACT_RULE("a", "kill", "kind = exec and (proc.exe_ino = 5 or proc.exe = /x)"),
		  { false } },
		{ ACT_RULE("a", "kill",
			   "kind = exec and proc.exe_ino = 5 and proc.exe_dev in "
			   "(8:1, no, 08:2)"),
		  { true } },
		{ ACT_RULE("a", "deny", "kind = exec and proc.exe_ino = 5")
			  ACT_RULE("b", "kill",
				   "kind = exec and proc.exe_ino = 5 and "
				   "proc.exe_dev = 8:2"),
		  { true, true } },
		{ ACT_RULE("a", "kill", "evt.type = execve and proc.exe_ino = 5"), { false } },
	};
	static const char *const devs[] = { "8:1", "8:2", "0:30" };
	static const uint32_t nrs[] = { 8 << 20 | 1, 8 << 20 | 2, 30 };
	static const char *const exes[] = { "/x", "/y" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct enforce_tables t;
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;

		rs = load(rows[i].text, &said);
		if (!rs)
			fail_msg("%s%s", rows[i].text, said.text);
		p = push(rs, true);
		t = tables(p);
		for (size_t k = 0; k < p->rules_n; k++)
			if ((p->rule[k].whole >> WIRE_EXEC & 1) != rows[i].whole[k])
				fail_msg("%s: rule %zu, %s", rows[i].text, k, p->rule[k].why);
		for (size_t k = 0; k < 3 * 3 * 2; k++) {
			uint64_t ino = 4 + k / 3 % 3;
			int v = by_path(&t, exes[k / 9], WIRE_EXEC);
			char spec[128];

			snprintf(spec, sizeof(spec),
				 "exec; syscall=execve; proc.exe=%s; proc.exe_dev=%s; "
				 "proc.exe_ino=%u",
				 exes[k / 9], devs[k % 3], (unsigned int)ino);
			compare(rs, p, MAX(v, by_file(&t, nrs[k % 3], ino)), spec, WIRE_EXEC);
		}
		enforce_tables_done(&t);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

static void what_is_decided_by_program(void **state)
{
	static const struct {
		const char *action, *rule, *why; /* NULL: nothing is left */
	} rows[] = {
		{ "deny", "kind = net.connect and net.family in (inet, inet6) and proc.exe = /x",
		  NULL },
		{ "deny", "kind = net.connect and net.dst.ip exists and not proc.exe startswith /x",
		  NULL },
		{ "kill", "kind = file.write and proc.exe pmatch (/x, /y)", NULL },
		{ "kill", "kind = escape and escape.type = unshare and proc.exe = /x", NULL },
		{ "kill", "kind = file.open and proc.exe in (/x, /y) and file.path startswith /z",
		  NULL },
		{ "kill", "kind = file.open and proc.exe endswith /x", "proc.exe" },
		{ "kill", "kind = file.open and proc.exe = /x and proc.args contains y",
		  "proc.args" },
		{ "kill", "kind = file.open and proc.name = x", "proc.name" },
		{ "deny",
		  "kind = net.connect and net.dst.ip exists and proc.exe = /x and "
		  "proc.comm = y",
		  "proc.comm" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;
		char text[512];

		snprintf(text, sizeof(text), ACT_RULE("r", "%s", "%s"), rows[i].action,
			 rows[i].rule);
		rs = load(text, &said);
		if (!rs)
			fail_msg("%s%s", text, said.text);
		p = push(rs, false);
		if (p->rule[0].complete != !rows[i].why ||
		    (rows[i].why && !strstr(p->rule[0].why, rows[i].why)))
			fail_msg("%s: '%s'", rows[i].rule, p->rule[0].why);
		push_plan_free(p);
		ruleset_free(rs);
	}
}

/* More sorts of programs than there are classes: nothing is told apart, no deny is promised, no kill is wrong. */
static void more_programs_than_fit(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf text = { 0 };
		struct enforce_tables t;
		struct err err = { 0 };
		struct push_plan *p;
		struct ruleset *rs;
		struct said said;
		struct ip_addr a;

		for (int k = 0; k <= ENFORCE_CLASSES; k++)
			buf_printf(&text,
				   ACT_RULE("r%d", "%s",
					    "kind = net.connect and net.dst.ip exists and "
					    "proc.exe = /usr/bin/p%d"),
				   k, i ? "deny" : "kill", k);
		buf_addz(&text,
			 ACT_RULE("last", "kill", "kind = net.connect and net.dst.ip = 10.0.0.1"));
		buf_addc(&text, 0);
		rs = load(text.p, &said);
		if (!rs)
			fail_msg("%s", said.text);
		p = push(rs, false);
		t = tables(p);
		assert_false(p->rule[0].complete);
		assert_non_null(strstr(p->rule[0].why, "too many programs"));
		assert_int_equal(push_check_deny(p, push_means(false), &err), i ? -ENOTSUP : 0);
		assert_int_equal(ip_addr_parse(STR("10.0.0.1"), &a), 0);
		assert_int_equal(by_addr(&t, &a, 2, WIRE_NET_CONNECT),
				 ENFORCE_KILL << 16 | (ENFORCE_CLASSES + 2));
		assert_int_equal(ip_addr_parse(STR("10.0.0.2"), &a), 0);
		assert_int_equal(by_addr(&t, &a, 2, WIRE_NET_CONNECT), 0);
		enforce_tables_done(&t);
		push_plan_free(p);
		ruleset_free(rs);
	}
	(void)state;
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
		cmocka_unit_test(programs),
		cmocka_unit_test(execs_by_inode),
		cmocka_unit_test(what_is_decided_by_program),
		cmocka_unit_test(more_programs_than_fit),
		cmocka_unit_test(what_can_be_denied),
		cmocka_unit_test(what_is_not_pushed),
		cmocka_unit_test(cut_paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
