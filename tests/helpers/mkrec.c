// SPDX-License-Identifier: Apache-2.0
// ours: pipeline
/* Text -> wire records, for golden tests and fuzz seeds.
 *   mkrec FILE          the records, one behind the other, on stdout
 *   mkrec --json FILE   the records decoded and enriched, one JSON event a line; then the counters
 *
 * A line is a record: the kind's name (or `chunk`, or a number) and name=value words, names as in
 * bpf/abi/wire.h. Numbers are decimal, hexadecimal or negative; strings stand in quotes with \n \t \0 \\
 * \" \xHH, and "text"*N repeats. Addresses (saddr daddr) are texts, too. Beside the members:
 *   type=unshare                     (escape) the name of the type
 *   anc="9:3:bash,1:1:init"          (exec) ancestors pid:start:comm, parent first
 *   data="..." or hex="00 1f ..."    (chunk, dns) the bytes
 *   len=N                            lie about the length;  cut=N hand over only N bytes
 *   stroff=N                         lie about the offset of the last string
 * `session id=1 session=".." name=".." tenant=".." host=".." memory=N offset=N resolver=".."` adds a
 * sandbox, `forget id=1` removes it; `redact NAME="VALUE"..` has secrets taken out from there on, these values and
 * by the rules that are built in; a `#` begins a comment. Header defaults: sandbox=1 pid=10 start=4
 * ppid=9 uid=1000 gid=1000 nspid=2 comm="sh", ts counts up by a microsecond a line. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "userspace/base/auto.h"
#include "userspace/enrich/enrich.h"
#include "userspace/event/decode.h"
#include "userspace/redact/redact.h"

#define RECORD_MAX (256 * 1024)
#define LINE_MAX_  (256 * 1024)

enum member_type { M_NUM, M_STR, M_IP, M_COMM };

struct member {
	const char *name;
	enum member_type type;
	size_t offset, size;
};

struct kind {
	const char *name;
	uint16_t id;
	size_t size;
	const struct member *members;
};

#define N(s, m)                                                              \
	{                                                                    \
#m, M_NUM, offsetof(struct s, m), sizeof(((struct s *)0)->m) \
	}
#define NAMED(n, s, m)                                                      \
	{                                                                   \
		n, M_NUM, offsetof(struct s, m), sizeof(((struct s *)0)->m) \
	}
#define S(s, m)                                     \
	{                                           \
#m, M_STR, offsetof(struct s, m), 0 \
	}
#define A(s, m)                                     \
	{                                           \
#m, M_IP, offsetof(struct s, m), 16 \
	}
#define END       \
	{         \
		0 \
	}

static const struct member header[] = {
	NAMED("flags", wire_hdr, flags),
	NAMED("seq", wire_hdr, seq),
	NAMED("ts", wire_hdr, ts),
	NAMED("start", wire_hdr, start),
	NAMED("cgid", wire_hdr, cgid),
	NAMED("sandbox", wire_hdr, sandbox),
	NAMED("pid", wire_hdr, tgid),
	NAMED("tid", wire_hdr, tid),
	NAMED("ppid", wire_hdr, ppid),
	NAMED("hdr_uid", wire_hdr, uid),
	NAMED("hdr_gid", wire_hdr, gid),
	NAMED("nspid", wire_hdr, nspid),
	NAMED("ret", wire_hdr, ret),
	NAMED("nr", wire_hdr, nr),
	NAMED("cpu", wire_hdr, cpu),
	NAMED("ring", wire_hdr, ring),
	NAMED("vantage", wire_hdr, vantage),
	{ "comm", M_COMM, offsetof(struct wire_hdr, comm), 16 },
	END,
};
static const struct member exec_members[] = {
	N(wire_exec, exec_id),
	N(wire_exec, parent_start),
	N(wire_exec, cap_effective),
	N(wire_exec, cap_permitted),
	N(wire_exec, ino),
	N(wire_exec, dev),
	N(wire_exec, nlink),
	N(wire_exec, mode),
	N(wire_exec, args_total),
	N(wire_exec, argc),
	N(wire_exec, env_total),
	N(wire_exec, ruid),
	N(wire_exec, loginuid),
	N(wire_exec, tty_nr),
	N(wire_exec, stdin_type),
	N(wire_exec, memfd),
	N(wire_exec, secureexec),
	N(wire_exec, upper_layer),
	S(wire_exec, exe),
	S(wire_exec, script),
	S(wire_exec, cwd),
	S(wire_exec, args),
	S(wire_exec, tty),
	S(wire_exec, env),
	N(wire_exec, exe_mtime),
	N(wire_exec, exe_ctime),
	N(wire_exec, exe_uid),
	N(wire_exec, tries),
	END,
};
static const struct member chunk_members[] = { N(wire_chunk, exec_id), N(wire_chunk, offset),
					       N(wire_chunk, n), N(wire_chunk, what), END };
static const struct member fork_members[] = { N(wire_fork, child_start), N(wire_fork, clone_flags),
					      N(wire_fork, child_tgid), N(wire_fork, child_nspid),
					      END };
static const struct member exit_members[] = { N(wire_exit, status), N(wire_exit, utime_ns),
					      N(wire_exit, stime_ns), END };
static const struct member file_members[] = {
	N(wire_file, ino),
	N(wire_file, size),
	N(wire_file, dev),
	N(wire_file, mode),
	N(wire_file, open_flags),
	N(wire_file, fd),
	N(wire_file, op),
	N(wire_file, uid),
	N(wire_file, gid),
	S(wire_file, base),
	S(wire_file, path),
	S(wire_file, base2),
	S(wire_file, path2),
	N(wire_file, id),
	N(wire_file, first_ts),
	N(wire_file, count),
	END,
};
static const struct member net_members[] = {
	N(wire_net, cookie),	  N(wire_net, bytes_out),  N(wire_net, bytes_in),
	N(wire_net, family),	  N(wire_net, type),	   N(wire_net, proto),
	N(wire_net, sport),	  N(wire_net, dport),	   N(wire_net, count),
	N(wire_net, packets_out), N(wire_net, packets_in), A(wire_net, saddr),
	A(wire_net, daddr),	  S(wire_net, path),	   END,
};
static const struct member dns_members[] = {
	N(wire_dns, cookie),
	N(wire_dns, family),
	N(wire_dns, sport),
	N(wire_dns, dport),
	N(wire_dns, proto),
	N(wire_dns, total),
	A(wire_dns, saddr),
	A(wire_dns, daddr),
	S(wire_dns, data),
	N(wire_dns, tcp_seq),
	END,
};
static const struct member oom_members[] = { N(wire_oom, total_vm),	 N(wire_oom, anon_rss),
					     N(wire_oom, file_rss),	 N(wire_oom, shmem_rss),
					     N(wire_oom, oom_score_adj), END };
static const struct member usage_members[] = { N(wire_usage, period_ns),
					       N(wire_usage, cpu_ns),
					       N(wire_usage, mem),
					       N(wire_usage, mem_growth),
					       N(wire_usage, net),
					       N(wire_usage, pids),
					       END };
static const struct member limit_members[] = { N(wire_limit_hit, value),  N(wire_limit_hit, used),
					       N(wire_limit_hit, type),	  N(wire_limit_hit, count),
					       S(wire_limit_hit, target), END };
static const struct member mount_members[] = { NAMED("mount_flags", wire_mount, flags),
					       N(wire_mount, op),
					       S(wire_mount, base),
					       S(wire_mount, path),
					       S(wire_mount, source),
					       S(wire_mount, fstype),
					       END };
static const struct member signal_members[] = { N(wire_signal, target_start),
						N(wire_signal, target_tgid), N(wire_signal, sig),
						END };
static const struct member escape_members[] = {
	NAMED("arg0", wire_escape, args[0]),
	NAMED("arg1", wire_escape, args[1]),
	NAMED("arg2", wire_escape, args[2]),
	NAMED("arg3", wire_escape, args[3]),
	N(wire_escape, old_value),
	N(wire_escape, new_value),
	N(wire_escape, type),
	S(wire_escape, detail),
	S(wire_escape, detail2),
	END,
};
static const struct member session_members[] = {
	N(wire_session, exit_code),
	N(wire_session, signal),
	N(wire_session, cpu_usec),
	N(wire_session, mem_peak),
	N(wire_session, pids_peak),
	N(wire_session, stdout_bytes),
	N(wire_session, stderr_bytes),
	S(wire_session, backend),
	S(wire_session, name),
	S(wire_session, tenant),
	S(wire_session, reason),
	S(wire_session, policy),
	S(wire_session, command),
	S(wire_session, host),
	S(wire_session, degraded),
	S(wire_session, secrets),
	END,
};

static const struct member change_members[] = {
	N(wire_change, size),	  N(wire_change, size_before),
	N(wire_change, mode),	  N(wire_change, mode_before),
	N(wire_change, op),	  N(wire_change, has),
	S(wire_change, path),	  S(wire_change, target),
	S(wire_change, unhashed), END,
};
static const struct member scan_members[] = {
	N(wire_scan, files),	N(wire_scan, bytes),	   N(wire_scan, created),
	N(wire_scan, changed),	N(wire_scan, deleted),	   N(wire_scan, skipped),
	N(wire_scan, unhashed), N(wire_scan, duration_ns), N(wire_scan, when),
	S(wire_scan, places),	S(wire_scan, why),	   END,
};

static const struct member request_members[] = {
	N(wire_request, bytes_out), N(wire_request, bytes_in), N(wire_request, dport),
	N(wire_request, status),    S(wire_request, name),     S(wire_request, method),
	S(wire_request, path),	    S(wire_request, reason),   END,
};

static const struct member snapshot_members[] = {
	N(wire_snapshot, files),
	N(wire_snapshot, bytes),
	N(wire_snapshot, stored),
	S(wire_snapshot, name),
	S(wire_snapshot, session),
	S(wire_snapshot, who),
	END,
};

#define KIND(text, id, type, members)                  \
	{                                              \
		text, id, sizeof(struct type), members \
	}

static const struct kind kinds[] = {
	KIND("exec", WIRE_EXEC, wire_exec, exec_members),
	KIND("chunk", WIRE_CHUNK, wire_chunk, chunk_members),
	KIND("fork", WIRE_FORK, wire_fork, fork_members),
	KIND("exit", WIRE_EXIT, wire_exit, exit_members),
	KIND("signal", WIRE_SIGNAL, wire_signal, signal_members),
	KIND("file.open", WIRE_FILE_OPEN, wire_file, file_members),
	KIND("file.write", WIRE_FILE_WRITE, wire_file, file_members),
	KIND("file.rename", WIRE_FILE_RENAME, wire_file, file_members),
	KIND("file.delete", WIRE_FILE_DELETE, wire_file, file_members),
	KIND("file.link", WIRE_FILE_LINK, wire_file, file_members),
	KIND("file.attr", WIRE_FILE_ATTR, wire_file, file_members),
	KIND("file.mkdir", WIRE_FILE_MKDIR, wire_file, file_members),
	KIND("file.mknod", WIRE_FILE_MKNOD, wire_file, file_members),
	KIND("file.mmap", WIRE_FILE_MMAP, wire_file, file_members),
	KIND("mount", WIRE_MOUNT, wire_mount, mount_members),
	KIND("net.connect", WIRE_NET_CONNECT, wire_net, net_members),
	KIND("net.listen", WIRE_NET_LISTEN, wire_net, net_members),
	KIND("net.accept", WIRE_NET_ACCEPT, wire_net, net_members),
	KIND("net.bind", WIRE_NET_BIND, wire_net, net_members),
	KIND("net.socket", WIRE_NET_SOCKET, wire_net, net_members),
	KIND("net.request", WIRE_NET_REQUEST, wire_request, request_members),
	KIND("net.send", WIRE_NET_SEND, wire_net, net_members),
	KIND("net.close", WIRE_NET_CLOSE, wire_net, net_members),
	KIND("dns.query", WIRE_DNS_QUERY, wire_dns, dns_members),
	KIND("dns.answer", WIRE_DNS_ANSWER, wire_dns, dns_members),
	KIND("oom", WIRE_OOM, wire_oom, oom_members),
	KIND("usage", WIRE_USAGE, wire_usage, usage_members),
	KIND("limit", WIRE_LIMIT, wire_limit_hit, limit_members),
	KIND("escape", WIRE_ESCAPE, wire_escape, escape_members),
	KIND("session.start", WIRE_SESSION_START, wire_session, session_members),
	KIND("session.stop", WIRE_SESSION_STOP, wire_session, session_members),
	KIND("session.pause", WIRE_SESSION_PAUSE, wire_session, session_members),
	KIND("session.resume", WIRE_SESSION_RESUME, wire_session, session_members),
	KIND("workspace.change", WIRE_WORKSPACE_CHANGE, wire_change, change_members),
	KIND("workspace.scan", WIRE_WORKSPACE_SCAN, wire_scan, scan_members),
	KIND("session.snapshot", WIRE_SESSION_SNAPSHOT, wire_snapshot, snapshot_members),
	KIND("session.restore", WIRE_SESSION_RESTORE, wire_snapshot, snapshot_members),
};

static unsigned long line_nr;
static const char *file_name;

static void __attribute__((noreturn)) die(const char *what, const char *word)
{
	fprintf(stderr, "%s:%lu: %s: %.60s\n", file_name, line_nr, what, word);
	exit(2);
}

struct word {
	char *name;
	char *value; /* bytes, unescaped; a NUL behind */
	size_t n;
	bool quoted;
};

static struct arena words; /* of the session lines, too, so it lives to the end */

static char *hold(size_t n)
{
	char *p = arena_zalloc(&words, n + 1);

	if (!p)
		die("out of memory", "");
	return p;
}

static size_t unescape(char *d, const char *s, const char *end)
{
	char *first = d;

	while (s < end) {
		if (*s != '\\') {
			*d++ = *s++;
			continue;
		}
		s++;
		switch (*s++) {
		case 'n':
			*d++ = '\n';
			break;
		case 't':
			*d++ = '\t';
			break;
		case '0':
			*d++ = 0;
			break;
		case 'x':
			*d++ = (char)strtoul((char[]){ s[0], s[1], 0 }, NULL, 16);
			s += 2;
			break;
		default:
			*d++ = s[-1];
		}
	}
	return (size_t)(d - first);
}

/* The next name=value at *at; false at the end of the line. */
static bool next_word(char **at, struct word *ret)
{
	char *p = *at + strspn(*at, " \t"), *value, *end;
	size_t times = 1, n;

	if (!*p || *p == '#')
		return false;
	value = strchr(p, '=');
	if (!value)
		die("expected name=value", p);
	*value++ = 0;
	*ret = (struct word){ .name = p };
	if (*value != '"') {
		ret->value = value;
		ret->n = strcspn(value, " \t");
		*at = value + ret->n + (value[ret->n] != 0);
		value[ret->n] = 0;
		return true;
	}
	for (end = ++value; *end && *end != '"'; end++)
		if (*end == '\\' && end[1])
			end++;
	if (!*end)
		die("string without end", value);
	*at = end + 1;
	if (**at == '*')
		times = strtoul(*at + 1, at, 10);
	ret->quoted = true;
	ret->value = hold((size_t)(end - value) * times);
	n = unescape(ret->value, value, end);
	for (size_t i = 1; i < times; i++)
		memcpy(ret->value + i * n, ret->value, n);
	ret->n = n * times;
	return true;
}

static uint64_t number(const struct word *w)
{
	char *end;
	uint64_t v = strtoull(w->value, &end, 0);

	if (w->quoted || *end || end == w->value)
		die("expected a number", w->name);
	return v;
}

struct record {
	char p[RECORD_MAX];
	size_t n;
	size_t last_string; /* offset of the wire_str set last */
	bool lies;
	uint32_t told;
	size_t cut;
};

static void put_num(struct record *r, size_t offset, size_t size, uint64_t v)
{
	memcpy(r->p + offset, &v, size); /* little endian, as the wire is */
}

static void put_str(struct record *r, size_t offset, const char *p, size_t n)
{
	struct wire_str s = { (uint16_t)r->n, (uint16_t)n };

	if (r->n + n > sizeof(r->p))
		die("record too large", "");
	memcpy(r->p + r->n, p, n);
	memcpy(r->p + offset, &s, sizeof(s));
	r->n += n;
	r->last_string = offset;
}

static const struct member *find_member(const struct member *m, const char *name)
{
	for (; m->name; m++)
		if (!strcmp(m->name, name))
			return m;
	return NULL;
}

static void put_ip(struct record *r, const struct member *m, const struct word *w)
{
	char *at = r->p + m->offset;

	if (inet_pton(AF_INET, w->value, at) != 1 && inet_pton(AF_INET6, w->value, at) != 1)
		die("bad address", w->value);
}

static void put_member(struct record *r, const struct member *m, const struct word *w)
{
	switch (m->type) {
	case M_NUM:
		put_num(r, m->offset, m->size, number(w));
		break;
	case M_STR:
		put_str(r, m->offset, w->value, w->n);
		break;
	case M_IP:
		put_ip(r, m, w);
		break;
	case M_COMM:
		memset(r->p + m->offset, 0, 16);
		memcpy(r->p + m->offset, w->value, MIN(w->n, (size_t)16));
		break;
	}
}

static void put_ancestors(struct record *r, const char *text)
{
	struct wire_exec *w = (void *)r->p;
	unsigned long pid, start;
	char comm[17];
	int used;

	while (sscanf(text, "%lu:%lu:%16[^,]%n", &pid, &start, comm, &used) == 3) {
		struct wire_ancestor *a = &w->ancestors[w->ancestors_n++];

		a->tgid = (uint32_t)pid;
		a->start = start;
		memcpy(a->comm, comm, MIN(strlen(comm), sizeof(a->comm)));
		text += used;
		if (*text++ != ',')
			break;
	}
}

static size_t unhex(char *p)
{
	size_t n = 0;
	int used;
	unsigned v;

	for (char *s = p; sscanf(s, " %2x%n", &v, &used) == 1; s += used)
		p[n++] = (char)v;
	return n;
}

static bool special_word(struct record *r, const struct kind *k, struct word *w)
{
	if (!strcmp(w->name, "hex")) {
		w->n = unhex(w->value);
		w->name = (char *)"data";
	}
	if (!strcmp(w->name, "len")) {
		r->lies = true;
		r->told = (uint32_t)number(w);
	} else if (!strcmp(w->name, "cut")) {
		r->cut = number(w);
	} else if (!strcmp(w->name, "stroff")) {
		put_num(r, r->last_string, 2, number(w));
	} else if (!strcmp(w->name, "anc") && k->id == WIRE_EXEC) {
		put_ancestors(r, w->value);
	} else if (!strcmp(w->name, "data") && k->id == WIRE_CHUNK) {
		((struct wire_chunk *)(void *)r->p)->n += (uint32_t)w->n;
		memcpy(r->p + r->n, w->value, w->n);
		r->n += w->n;
	} else if (!strcmp(w->name, "type") && k->id == WIRE_ESCAPE &&
		   event_escape_by_name(str_from(w->value)) >= 0) {
		((struct wire_escape *)(void *)r->p)->type =
			(uint32_t)event_escape_by_name(str_from(w->value));
	} else {
		return false;
	}
	return true;
}

/* What a real record has when its line says nothing of it. */
static void defaults(struct record *r, const struct kind *k)
{
	struct wire_hdr h = { .kind = k->id,
			      .ts = line_nr * 1000,
			      .sandbox = 1,
			      .tgid = 10,
			      .tid = 10,
			      .ppid = 9,
			      .uid = 1000,
			      .gid = 1000,
			      .nspid = 2,
			      .start = 4,
			      .nr = WIRE_NR_NONE,
			      .comm = "sh" };

	if (k->id >= 0x4000) {
		h.vantage = k->id < 0x8000 ? WIRE_V_RUNTIME : WIRE_V_AGENT;
		h.tgid = h.tid = h.ppid = h.nspid = 0;
	}
	memset(r, 0, sizeof(*r));
	memcpy(r->p, &h, sizeof(h));
	r->n = k->size;
	if (k->id == WIRE_EXEC)
		((struct wire_exec *)(void *)r->p)->nlink = 1;
}

static void make_record(struct record *r, const struct kind *k, char *at)
{
	struct wire_exec *e = (void *)r->p;
	struct word w;

	defaults(r, k);
	r->cut = SIZE_MAX;
	while (next_word(&at, &w)) {
		const struct member *m;

		if (special_word(r, k, &w)) /* may turn hex= into data= */
			continue;
		m = find_member(k->members, w.name);
		if (!m)
			m = find_member(header, w.name);
		if (!m)
			die("unknown member", w.name);
		put_member(r, m, &w);
		if (!strcmp(w.name, "pid"))
			put_num(r, offsetof(struct wire_hdr, tid), 4, number(&w));
	}
	if (k->id == WIRE_EXEC && !e->args_total)
		e->args_total = e->args.len;
	if (k->id == WIRE_DNS_QUERY || k->id == WIRE_DNS_ANSWER) {
		struct wire_dns *d = (void *)r->p;

		d->total = d->total ? d->total : d->data.len;
	}
	put_num(r, 0, 4, r->lies ? r->told : r->n);
	r->n = MIN(r->n, r->cut);
}

struct run {
	bool json;
	struct decoder *decoder;
	struct enrich *enrich;
	struct arena arena;
	struct buf line;
	struct event ev;
	struct redactor *redactor; /* from the line "redact" on */
	struct redact *redact;
};

/* What would be recorded: the rules that are built in, and known values. The key is always the same. */
static void set_redact(struct run *run, char *at)
{
	static const uint8_t key[REDACT_KEY_LEN] = "a key of the tests, 32 bytes";
	struct err err = { 0 };
	struct word w;

	if (run->redact)
		die("redact", "twice");
	if (redactor_new(&run->redactor, key, &err) < 0 ||
	    redactor_add_builtin(run->redactor, &err) < 0)
		die("redact", err.text);
	while (next_word(&at, &w))
		if (redactor_add_value(run->redactor, w.name, (struct str){ w.value, w.n }) < 0)
			die("redact", w.name);
	if (redactor_finish(run->redactor, &err) < 0 || redact_new(&run->redact, run->redactor) < 0)
		die("redact", "finish");
}

static void print_event(struct run *run)
{
	int got = enrich_apply(run->enrich, &run->ev);
	struct event *shown = &run->ev;

	if (got < 0 && got != -ENOENT)
		die("enrich", strerror(-got));
	if (run->redact && redact_event(run->redact, &run->ev, &shown) < 0)
		die("redact", "event");
	buf_reset(&run->line);
	if (event_to_json(shown, &run->line) < 0)
		die("to_json", "");
	printf("%.*s\n", (int)run->line.n, run->line.p);
}

static void feed(struct run *run, const struct record *r)
{
	int got;

	if (!run->json) {
		fwrite(r->p, 1, r->n, stdout);
		return;
	}
	arena_reset(&run->arena);
	got = decoder_feed(run->decoder, r->p, r->n, &run->arena, &run->ev);
	while (got > 0) {
		print_event(run);
		arena_reset(&run->arena);
		got = decoder_more(run->decoder, &run->arena, &run->ev);
	}
	if (got < 0)
		die("decode", strerror(-got));
}

static void add_session(struct run *run, char *at)
{
	struct enrich_session s = { .sandbox_id = 1 };
	static struct ip_addr resolver;
	struct word w;

	while (next_word(&at, &w)) {
		if (!strcmp(w.name, "id"))
			s.sandbox_id = (uint32_t)number(&w);
		else if (!strcmp(w.name, "session"))
			s.session = w.value;
		else if (!strcmp(w.name, "name"))
			s.name = w.value;
		else if (!strcmp(w.name, "tenant"))
			s.tenant = w.value;
		else if (!strcmp(w.name, "host"))
			s.host = w.value;
		else if (!strcmp(w.name, "memory"))
			s.memory_limit = number(&w);
		else if (!strcmp(w.name, "offset"))
			s.real_offset_ns = (int64_t)number(&w);
		else if (!strcmp(w.name, "resolver") &&
			 ip_addr_parse((struct str){ w.value, w.n }, &resolver) == 0)
			s.resolvers = &resolver, s.resolvers_n = 1;
		else
			die("unknown member", w.name);
	}
	if (enrich_session_add(run->enrich, &s) < 0)
		die("session", s.session);
}

static void do_line(struct run *run, char *line)
{
	static struct record record;
	char *name = line + strspn(line, " \t"), *rest = name + strcspn(name, " \t\n");
	struct kind unknown = { .size = sizeof(struct wire_hdr), .members = header };
	struct word w;

	rest[strcspn(rest, "\n")] = 0;
	if (*rest)
		*rest++ = 0;
	if (!*name || *name == '#')
		return;
	if (!strcmp(name, "session")) {
		add_session(run, rest);
		return;
	}
	if (!strcmp(name, "redact")) {
		set_redact(run, rest);
		return;
	}
	if (!strcmp(name, "forget")) {
		if (next_word(&rest, &w))
			enrich_session_remove(run->enrich, (uint32_t)number(&w));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, name))
			continue;
		make_record(&record, &kinds[i], rest);
		feed(run, &record);
		return;
	}
	unknown.id = (uint16_t)strtoul(name, &name, 0);
	if (*name)
		die("unknown kind", name);
	make_record(&record, &unknown, rest);
	feed(run, &record);
}

static void print_counters(struct run *run)
{
	const struct decode_stats *d = decoder_stats(run->decoder);
	struct enrich_stats e;

	enrich_stats(run->enrich, &e);
	printf("{\"counters\":{\"records\":%llu,\"bad_size\":%llu,\"bad_kind\":%llu,"
	       "\"bad_string\":%llu,\"chunks_lost\":%llu,\"sandboxes\":%llu,\"processes\":%llu,"
	       "\"dns_entries\":%llu,\"files\":%llu,\"evicted\":%llu}}\n",
	       (unsigned long long)d->records, (unsigned long long)d->bad_size,
	       (unsigned long long)d->bad_kind, (unsigned long long)d->bad_string,
	       (unsigned long long)d->chunks_lost, (unsigned long long)e.sandboxes,
	       (unsigned long long)e.processes, (unsigned long long)e.dns_entries,
	       (unsigned long long)e.files, (unsigned long long)e.evicted);
}

int main(int argc, char **argv)
{
	static struct run run;
	static char line[LINE_MAX_];
	FILE *in;

	run.json = argc == 3 && !strcmp(argv[1], "--json");
	if (argc != 2 + run.json) {
		fprintf(stderr, "usage: mkrec [--json] FILE\n");
		return 2;
	}
	file_name = argv[1 + run.json];
	in = fopen(file_name, "re");
	if (!in) {
		perror(file_name);
		return 2;
	}
	arena_init(&run.arena, 16 << 20);
	arena_init(&words, 0);
	buf_init(&run.line, 0);
	if (decoder_new(&run.decoder) < 0 || enrich_new(&run.enrich, NULL) < 0)
		return 2;
	while (line_nr++, fgets(line, sizeof(line), in))
		do_line(&run, line);
	if (run.json)
		print_counters(&run);
	fclose(in);
	redact_free(run.redact);
	redactor_free(run.redactor);
	decoder_free(run.decoder);
	enrich_free(run.enrich);
	arena_done(&run.arena);
	arena_done(&words);
	buf_done(&run.line);
	return 0;
}
