// SPDX-License-Identifier: Apache-2.0
/* What each operator and field means: one row a fact. */
#include "rules_test.h"

#include "rules/internal.h"

#define EXEC                                                                                     \
	"exec; proc.comm=bash; proc.exe=/usr/bin/bash; proc.args=bash|-c|echo hi; proc.pid=40; " \
	"proc.uid=0; proc.pcomm=node; proc.pexe=/usr/bin/node; proc.stdin=pipe; "                \
	"proc.ancestors=node:/usr/bin/node|npm:|init:/sbin/init; proc.loginuid=-1; "             \
	"proc.memfd=false; proc.dropped=true; proc.cwd=/workspace; proc.argc=3; "                \
	"proc.start=1000; mono=5000; proc.caps=0x200000"
#define OPEN                                                                                       \
	"file.open; file.path=/etc/cron.d/job; file.name=job; file.write=true; file.fd=3; "        \
	"file.flags=O_WRONLY|O_CREAT|O_TRUNC; outcome=success; file.mode=420; file.created=true; " \
	"syscall=openat; proc.comm=sh"
#define OPEN_FAILED \
	"file.open; file.path=/etc/shadow; file.write=false; outcome=failure; errno=EACCES"
#define CONNECT                                                                                   \
	"net.connect; net.family=inet; net.proto=tcp; net.src.ip=10.1.2.3; net.src.port=4000; "   \
	"net.dst.ip=93.184.216.34; net.dst.port=443; net.dst.name=example.com; outcome=success; " \
	"proc.comm=curl"
#define CONNECT6 \
	"net.connect; net.family=inet6; net.dst.ip=fd00:ec2::254; net.dst.port=80; net.proto=tcp"
#define ACCEPT \
	"net.accept; net.family=inet; net.src.ip=10.0.0.1; net.src.port=80; net.dst.ip=10.0.0.2; net.dst.port=5000"
#define ESCAPE \
	"escape; escape.type=ptrace; escape.arg0=16; outcome=denied; errno=EPERM; syscall=ptrace"
#define DNS "dns.query; dns.name=WWW.Example.Com; dns.type=A; dns.id=7"

struct row {
	const char *cond;
	const char *event;
	bool match;
};

static const struct row rows[] = {
	/* comparison of text */
	{ "proc.comm = bash", EXEC, true },
	{ "proc.comm == bash", EXEC, true },
	{ "proc.comm=\"bash\"", EXEC, true },
	{ "proc.comm = 'bash'", EXEC, true },
	{ "proc.comm = bas", EXEC, false },
	{ "proc.comm != bash", EXEC, false },
	{ "proc.comm != sh", EXEC, true },
	{ "proc.comm=bash", EXEC, true },
	{ "proc.comm!=sh", EXEC, true },
	/* a missing value makes every check false, != included */
	{ "proc.script = x", EXEC, false },
	{ "proc.script != x", EXEC, false },
	{ "not proc.script = x", EXEC, true },
	{ "proc.script exists", EXEC, false },
	{ "not proc.script exists", EXEC, true },
	{ "proc.comm exists", EXEC, true },
	{ "file.path != /x", EXEC, false },
	{ "proc.script in (x, y)", EXEC, false },
	{ "net.dst.port > 1", EXEC, false },
	{ "not net.dst.port > 1", EXEC, true },
	/* and, or, not, parentheses */
	{ "proc.comm = bash and proc.pid = 40", EXEC, true },
	{ "proc.comm = bash and proc.pid = 41", EXEC, false },
	{ "proc.comm = sh or proc.pid = 40", EXEC, true },
	{ "proc.comm = bash or proc.pid = 1 and proc.pid = 2", EXEC, true },
	{ "(proc.comm = bash or proc.pid = 1) and proc.pid = 2", EXEC, false },
	{ "not proc.comm = sh and proc.pid = 40", EXEC, true },
	{ "not (proc.comm = sh or proc.pid = 40)", EXEC, false },
	{ "not(proc.comm = sh)", EXEC, true },
	{ "not not proc.comm = bash", EXEC, true },
	{ "not not not proc.comm = bash", EXEC, false },
	{ "proc.comm = sh or(proc.pid = 40)and(proc.uid = 0)", EXEC, true },
	{ "\n proc.comm =\n\tbash \n", EXEC, true },
	/* substrings, prefixes, suffixes */
	{ "proc.exe contains bin", EXEC, true },
	{ "proc.exe contains BIN", EXEC, false },
	{ "proc.exe icontains BIN", EXEC, true },
	{ "proc.exe contains \"\"", EXEC, true },
	{ "proc.exe startswith /usr/", EXEC, true },
	{ "proc.exe startswith usr", EXEC, false },
	{ "proc.exe endswith bash", EXEC, true },
	{ "proc.exe endswith /usr/bin/bashx", EXEC, false },
	{ "proc.exe bcontains 2f62617368", EXEC, true },
	{ "proc.exe bcontains 2f00", EXEC, false },
	{ "proc.exe bstartswith 2f75", EXEC, true },
	/* patterns */
	{ "proc.exe glob /usr/*/bash", EXEC, true },
	{ "proc.exe glob /usr*", EXEC, true },
	{ "proc.exe glob *bash", EXEC, true },
	{ "proc.exe glob /usr/bin/ba?h", EXEC, true },
	{ "proc.exe glob /usr/bin/b[a-c]sh", EXEC, true },
	{ "proc.exe glob /usr/bin/b[!a]sh", EXEC, false },
	{ "proc.exe glob '/usr/bin/[b'", EXEC, false },
	{ "proc.exe glob /usr/bin", EXEC, false },
	{ "proc.exe glob /USR/*", EXEC, false },
	{ "proc.exe iglob /USR/*", EXEC, true },
	{ "proc.exe regex '/usr/(bin|sbin)/[a-z]+'", EXEC, true },
	{ "proc.exe regex 'bin'", EXEC, false },
	{ "proc.exe regex '.*bin.*'", EXEC, true },
	{ "proc.exe regex '/usr/bin/bash$'", EXEC, true },
	{ "proc.comm regex '\\\\w+'", EXEC, true },
	/* lists */
	{ "proc.comm in (sh, bash)", EXEC, true },
	{ "proc.comm in (sh)", EXEC, false },
	{ "proc.comm in ()", EXEC, false },
	{ "not proc.comm in ()", EXEC, true },
	{ "proc.comm in (\"sh\",'bash')", EXEC, true },
	{ "proc.comm intersects (sh, bash)", EXEC, true },
	{ "proc.exe pmatch (/usr)", EXEC, true },
	{ "proc.exe pmatch (/us)", EXEC, false },
	{ "proc.exe pmatch (/usr/bin/bash)", EXEC, true },
	{ "proc.exe pmatch (/usr/bin/bash/x, /opt)", EXEC, false },
	{ "proc.exe pmatch (/usr/bin/)", EXEC, true },
	{ "proc.exe pmatch (/)", EXEC, true },
	{ "proc.exe contains anyof (zsh, bash)", EXEC, true },
	{ "proc.exe contains anyof (zsh, fish)", EXEC, false },
	{ "proc.exe contains allof (usr, bash)", EXEC, true },
	{ "proc.exe contains allof (usr, fish)", EXEC, false },
	{ "proc.exe contains oneof (usr, fish)", EXEC, true },
	{ "proc.exe contains oneof (usr, bash)", EXEC, false },
	/* numbers */
	{ "proc.pid = 40", EXEC, true },
	{ "proc.pid = 0x28", EXEC, true },
	{ "proc.pid != 40", EXEC, false },
	{ "proc.pid > 39 and proc.pid >= 40 and proc.pid < 41 and proc.pid <= 40", EXEC, true },
	{ "proc.pid > 40 or proc.pid < 40", EXEC, false },
	{ "proc.pid in (1, 40, 7)", EXEC, true },
	{ "proc.pid in (1, 7)", EXEC, false },
	{ "proc.pid>=40", EXEC, true },
	{ "proc.loginuid = -1", EXEC, true },
	{ "proc.loginuid < 0", EXEC, true },
	{ "proc.loginuid >= 0", EXEC, false },
	{ "proc.loginuid in (-1, 5)", EXEC, true },
	/* true and false */
	{ "proc.dropped = true", EXEC, true },
	{ "proc.memfd = true", EXEC, false },
	{ "proc.memfd = false", EXEC, true },
	{ "proc.memfd != true", EXEC, true },
	{ "proc.deleted = false", EXEC, false },
	/* addresses */
	{ "net.dst.ip = 93.184.216.34", CONNECT, true },
	{ "net.dst.ip != 93.184.216.34", CONNECT, false },
	{ "net.dst.ip = 93.184.0.0/16", CONNECT, true },
	{ "net.dst.ip = 93.184.217.0/23", CONNECT, true },
	{ "net.dst.ip = 93.184.218.0/23", CONNECT, false },
	{ "net.dst.ip in (10.0.0.0/8, \"93.184.216.32/30\")", CONNECT, true },
	{ "net.dst.ip in (10.0.0.0/8)", CONNECT, false },
	{ "net.dst.ip = 0.0.0.0/0", CONNECT, true },
	{ "net.dst.ip = \"::/0\"", CONNECT, false },
	{ "net.dst.ip = \"fd00::/8\"", CONNECT6, true },
	{ "net.dst.ip in (\"fd00:ec2::254\")", CONNECT6, true },
	{ "net.dst.ip = 10.0.0.0/8", CONNECT6, false },
	{ "net.dst.ip exists", CONNECT, true },
	/* several values */
	{ "proc.args contains echo", EXEC, true },
	{ "proc.args = -c", EXEC, true },
	{ "proc.args startswith ba", EXEC, true },
	{ "proc.args intersects (-i, -c)", EXEC, true },
	{ "proc.args in (bash, -c)", EXEC, false },
	{ "proc.args in (bash, -c, \"echo hi\", more)", EXEC, true },
	{ "proc.args[0] = bash", EXEC, true },
	{ "proc.args[2] = \"echo hi\"", EXEC, true },
	{ "proc.args[3] exists", EXEC, false },
	{ "file.flags = O_TRUNC", OPEN, true },
	{ "file.flags contains TRUNC", OPEN, true },
	/* transformers */
	{ "tolower(dns.name) = www.example.com", DNS, true },
	{ "toupper(dns.name) endswith .COM", DNS, true },
	{ "len(dns.name) = 15", DNS, true },
	{ "len(proc.args) = 3", EXEC, true },
	{ "basename(proc.exe) = bash", EXEC, true },
	{ "basename(proc.comm) = bash", EXEC, true },
	{ "tolower(toupper(proc.comm)) = bash", EXEC, true },
	{ "b64(proc.comm) exists", EXEC, true },
	{ "b64(proc.exe) exists", OPEN, false },
	{ "basename(proc.exe) = val(proc.comm)", EXEC, true },
	{ "proc.exe endswith val(proc.comm)", EXEC, true },
	{ "proc.comm = val(proc.pcomm)", EXEC, false },
	{ "proc.comm != val(proc.pcomm)", EXEC, true },
	{ "proc.comm = val(proc.script)", EXEC, false },
	{ "proc.comm != val(proc.script)", EXEC, false },
	{ "proc.pid > val(proc.uid)", EXEC, true },
	{ "net.dst.ip = val(net.src.ip)", CONNECT, false },
	{ "tolower(proc.comm) = tolower(proc.args[0])", EXEC, true },
	/* kinds */
	{ "kind = exec", EXEC, true },
	{ "kind = exit", EXEC, false },
	{ "kind in (exec, exit)", EXEC, true },
	{ "kind startswith file.", OPEN, true },
	{ "kind != exec", OPEN, true },
	{ "not kind = exec", OPEN, true },
	/* Falco's names */
	{ "evt.type = execve", EXEC, true },
	{ "evt.type in (execve, execveat)", EXEC, true },
	{ "evt.type = execveat", EXEC, false },
	{ "evt.type = execveat", "exec; syscall=execveat", true },
	{ "evt.type in (open, openat, openat2)", OPEN, true },
	{ "evt.type = open", OPEN, false },
	{ "evt.type = openat", "file.open; syscall=io_uring_enter", true },
	{ "evt.type in (symlink, symlinkat)", "file.link; file.op=symbolic", true },
	{ "evt.type in (link, linkat)", "file.link; file.op=hard", true },
	{ "evt.type = connect", CONNECT, true },
	{ "evt.type = ptrace", ESCAPE, true },
	{ "evt.type in (init_module, finit_module)", "escape; escape.type=module", true },
	{ "evt.type = socket", "escape; escape.type=socket_family", true },
	{ "evt.type exists", "oom", false },
	{ "evt.num = 0", EXEC, false },
	{ "evt.num >= 0", EXEC, true },
	{ "proc.name = bash", EXEC, true },
	{ "proc.pname = node", EXEC, true },
	{ "proc.aname = npm", EXEC, true },
	{ "proc.aname in (init, x)", EXEC, true },
	{ "proc.aname[0] = bash and proc.aname[1] = node and proc.aname[2] = npm", EXEC, true },
	{ "proc.aname[4] exists", EXEC, false },
	{ "proc.aname = bash", EXEC, false },
	{ "proc.aexepath[3] = /sbin/init", EXEC, true },
	{ "proc.aexepath[2] exists", EXEC, false },
	{ "proc.apid = 102", EXEC, true },
	{ "proc.cmdline = \"bash -c echo hi\"", EXEC, true },
	{ "proc.exeline = \"bash -c echo hi\"", EXEC, true },
	{ "proc.cmdline = bash", "exec; proc.comm=bash", true },
	{ "proc.cmdnargs = 2 and proc.cmdlenargs = 9", EXEC, true },
	{ "proc.exepath = /usr/bin/bash", EXEC, true },
	{ "proc.duration = 4000", EXEC, true },
	{ "user.uid = 0 and user.name = root", EXEC, true },
	{ "user.loginuid = -1", EXEC, true },
	{ "thread.cap_effective contains CAP_SYS_ADMIN", EXEC, true },
	{ "thread.cap_effective contains CAP_SYS_PTRACE", EXEC, false },
	{ "container.id != host", EXEC, true },
	{ "container.privileged = false", EXEC, true },
	{ "fd.name = /etc/cron.d/job", OPEN, true },
	{ "fd.directory = /etc/cron.d and fd.filename = job", OPEN, true },
	{ "fd.directory = /", "file.open; file.path=/x", true },
	{ "fd.typechar = f and fd.type = file", OPEN, true },
	{ "fd.typechar='d'", "file.open; file.path=/x; file.type=directory", true },
	{ "fd.num>=0", OPEN, true },
	{ "fd.num=-1 and evt.res startswith E", OPEN_FAILED, true },
	{ "evt.rawres < 0", OPEN_FAILED, true },
	{ "evt.rawres = -13", OPEN_FAILED, true },
	{ "evt.rawres = 3", OPEN, true },
	{ "evt.res = SUCCESS and evt.failed = false", OPEN, true },
	{ "evt.res = EINPROGRESS", "net.connect; outcome=pending", true },
	{ "evt.is_open_write = true and evt.is_open_read = false", OPEN, true },
	{ "evt.is_open_read = true", OPEN_FAILED, true },
	{ "evt.is_open_create = true", OPEN, true },
	{ "evt.arg.flags contains \"O_TRUNC\"", OPEN, true },
	{ "evt.arg.flags contains EXE_UPPER_LAYER", EXEC, true },
	{ "evt.arg.mode contains S_ISUID", "file.attr; file.mode=2541", true },
	{ "evt.arg.mode contains S_ISUID", OPEN, false },
	{ "evt.arg.request contains PTRACE_ATTACH", ESCAPE, true },
	{ "evt.arg.domain contains AF_PACKET", "escape; escape.type=socket_family; escape.arg0=17",
	  true },
	{ "fd.name = \"10.1.2.3:4000->93.184.216.34:443\"", CONNECT, true },
	{ "fd.sip = 93.184.216.34 and fd.sport = 443", CONNECT, true },
	{ "fd.cip = 10.1.2.3 and fd.cport = 4000", CONNECT, true },
	{ "fd.sip = 10.0.0.1 and fd.sport = 80 and fd.cport = 5000", ACCEPT, true },
	{ "fd.is_server = true", ACCEPT, true },
	{ "fd.ip = 10.1.2.3 and fd.ip = 93.184.216.34", CONNECT, true },
	{ "fd.ip != 10.1.2.3", CONNECT, false },
	{ "fd.ip != 1.1.1.1", CONNECT, true },
	{ "fd.net = 10.0.0.0/8", CONNECT, true },
	{ "fd.snet in (10.0.0.0/8)", CONNECT, false },
	{ "fd.port = 4000 and fd.port = 443", CONNECT, true },
	{ "fd.port in (443)", CONNECT, true },
	{ "fd.l4proto = tcp and fd.typechar = 4 and fd.type = ipv4", CONNECT, true },
	{ "fd.typechar = 6", CONNECT6, true },
	{ "fd.sip.name = example.com", CONNECT, true },
	{ "fd.connected = true", CONNECT, true },
	/* names with two meanings: Falco's beside evt.*, ours else */
	{ "proc.exe = /usr/bin/bash", EXEC, true },
	{ "proc.exe = bash", EXEC, false },
	{ "evt.type = execve and proc.exe = bash", EXEC, true },
	{ "evt.type = execve and proc.exe = /usr/bin/bash", EXEC, false },
	{ "evt.type = execve and proc.args = \"-c echo hi\"", EXEC, true },
	{ "evt.type = execve and proc.args startswith -c", EXEC, true },
	{ "evt.type = execve and proc.tty = 0", EXEC, true },
	{ "evt.type = execve and proc.tty = 34819", "exec; proc.tty=/dev/pts/3", true },
	{ "proc.tty = /dev/pts/3", "exec; proc.tty=/dev/pts/3", true },
};

static void conditions_mean_what_they_should(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rule_filter *f = NULL;
		struct err err = { 0 };
		struct made_event e;

		if (rule_filter_new(&f, str_from(rows[i].cond), &err) < 0) {
			print_error("%s: %s\n", rows[i].cond, err_text(&err));
			wrong++;
			continue;
		}
		make_event(&e, rows[i].event);
		if (rule_filter_match(f, &e.ev) != rows[i].match) {
			print_error("%s: should %s on\n  %s\n", rows[i].cond,
				    rows[i].match ? "match" : "not match", rows[i].event);
			wrong++;
		}
		drop_event(&e);
		rule_filter_free(f);
	}
	assert_int_equal(wrong, 0);
}

/* All rows as one set: checks are shared, rules are looked up, and the result is still each row's own. */
static void looking_rules_up_changes_nothing(void **state)
{
	struct ruleset *rs = NULL;
	auto_buf struct buf b = { 0 };
	unsigned fired = 0;

	(void)state;
	buf_init(&b, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		buf_printf(
			&b,
			"- rule: %zu\n  desc: d\n  output: o\n  priority: INFO\n  condition: |-\n    ",
			i);
		for (const char *p = rows[i].cond; *p; p++)
			buf_addc(&b, *p == '\n' ? ' ' : *p);
		buf_addc(&b, '\n');
	}
	assert_int_equal(ruleset_new(&rs, NULL, NULL), 0);
	assert_int_equal(ruleset_add_text(rs, "rows", (struct str){ b.p, b.n }, NULL), 0);
	assert_int_equal(ruleset_compile(rs, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rule_matches m, plain;
		struct made_event e;

		make_event(&e, rows[i].event);
		ruleset_eval(rs, &e.ev, &m);
		ruleset_eval_plain(rs, &e.ev, &plain);
		assert_int_equal(m.n, plain.n);
		assert_int_equal(m.more, plain.more);
		assert_memory_equal(m.v, plain.v, m.n * sizeof(m.v[0]));
		fired += m.n;
		drop_event(&e);
	}
	assert_true(fired > ARRAY_SIZE(rows));
	ruleset_free(rs);
}

/* A value is bytes: NUL and what is no UTF-8 are nothing special. */
static void values_are_bytes(void **state)
{
	static const char raw[] = "a\0b\xff/c";
	struct rule_filter *f = NULL;
	struct made_event e;

	(void)state;
	make_event(&e, "file.open");
	event_set_str(&e.ev, F_FILE_PATH, (struct str){ raw, sizeof(raw) - 1 });
	assert_int_equal(rule_filter_new(&f,
					 STR("file.path endswith /c and not file.path = a and "
					     "file.path bcontains 00 and len(file.path) = 6"),
					 NULL),
			 0);
	assert_true(rule_filter_match(f, &e.ev));
	rule_filter_free(f);
	drop_event(&e);
}

/* A pattern that backtracks without end gives up; the event goes on. */
static void evil_regex_ends(void **state)
{
	struct rule_filter *f = NULL;
	struct made_event e;
	char text[2048];

	(void)state;
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '!';
	make_event(&e, "file.open");
	event_set_str(&e.ev, F_FILE_PATH, (struct str){ text, sizeof(text) });
	assert_int_equal(rule_filter_new(&f, STR("file.path regex '(a+)+b'"), NULL), 0);
	assert_false(rule_filter_match(f, &e.ev));
	rule_filter_free(f);
	drop_event(&e);
}

static void long_command_lines_are_joined(void **state)
{
	struct str args[] = { STR("sh"), { 0 }, STR("tail-marker") };
	size_t n = 100 * 1024;
	char *big = malloc(n);
	struct rule_filter *f = NULL;
	struct made_event e;

	(void)state;
	memset(big, 'x', n);
	args[1] = (struct str){ big, n };
	make_event(&e, "exec; proc.comm=sh");
	event_set_list(&e.ev, F_PROC_ARGS, args, 3);
	assert_int_equal(rule_filter_new(&f,
					 STR("proc.cmdline endswith \" tail-marker\" and "
					     "len(proc.cmdline) = 102415"),
					 NULL),
			 0);
	assert_true(rule_filter_match(f, &e.ev));
	rule_filter_free(f);
	drop_event(&e);
	free(big);
}

static void all_matching_rules_fire(void **state)
{
	struct said said;
	struct ruleset *rs =
		load(RULE("first", "kind = exec and proc.comm = bash") RULE("other", "kind = exit")
			     RULE("second", "proc.comm startswith ba and kind in (exec, exit)"),
		     &said);

	(void)state;
	assert_non_null(rs);
	assert_string_equal(fires(rs, EXEC), "first,second");
	assert_string_equal(fires(rs, "exit; proc.comm=bash"), "other,second");
	assert_string_equal(fires(rs, "exit"), "other");
	assert_string_equal(fires(rs, "oom"), "");
	ruleset_free(rs);
}

/* More rules than a result holds are counted, not lost silently. */
static void matches_beyond_the_limit_are_counted(void **state)
{
	auto_buf struct buf b = { 0 };
	struct rule_matches m;
	struct made_event e;
	struct ruleset *rs;
	struct said said;

	(void)state;
	buf_init(&b, 0);
	for (int i = 0; i < RULE_MATCH_MAX + 10; i++)
		buf_printf(&b,
			   "- rule: r%d\n  desc: d\n  output: o\n  priority: INFO\n"
			   "  condition: kind = exec and not proc.pid = %d\n",
			   i, 1000 + i);
	buf_addc(&b, 0);
	rs = load(b.p, &said);
	assert_non_null(rs);
	make_event(&e, EXEC);
	assert_int_equal(ruleset_eval(rs, &e.ev, &m), RULE_MATCH_MAX + 10);
	assert_int_equal(m.n, RULE_MATCH_MAX);
	assert_int_equal(m.more, 10);
	assert_string_equal(m.v[0]->name, "r0");
	drop_event(&e);
	ruleset_free(rs);
}

/* Rules judging what rules said would not end. */
static void rules_never_judge_rules(void **state)
{
	struct said said;
	struct ruleset *rs = load(RULE("all", "not proc.comm = x"), &said);

	(void)state;
	assert_non_null(rs);
	assert_string_equal(fires(rs, "rule.alert; rule.name=all"), "");
	assert_string_equal(fires(rs, "action; rule.name=all"), "");
	assert_string_equal(fires(rs, "exec"), "all");
	ruleset_free(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_mean_what_they_should),
		cmocka_unit_test(looking_rules_up_changes_nothing),
		cmocka_unit_test(values_are_bytes),
		cmocka_unit_test(evil_regex_ends),
		cmocka_unit_test(long_command_lines_are_joined),
		cmocka_unit_test(all_matching_rules_fire),
		cmocka_unit_test(matches_beyond_the_limit_are_counted),
		cmocka_unit_test(rules_never_judge_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
