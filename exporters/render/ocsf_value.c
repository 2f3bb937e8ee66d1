// SPDX-License-Identifier: Apache-2.0
#include "exporters/render/ocsf.h"

#include "exporters/render/layout.h"
#include "userspace/base/auto.h"

#define PUT_LITERAL(d, text) (memcpy((d), (text), sizeof(text) - 1), (d) + sizeof(text) - 1)

static struct str base_name(struct str path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
	size_t skip = slash ? (size_t)(slash - path.p) + 1 : 0;

	if (skip == path.n) /* "/" and "dir/" stay whole */
		return path;
	return (struct str){ path.p + skip, path.n - skip };
}

/* ---- what happened ---- */

struct ocsf_activity ocsf_file_attr(const struct event *ev)
{
	struct str op = event_str(ev, F_FILE_OP);

	if (str_eqz(op, "chmod") || str_eqz(op, "chown"))
		return (struct ocsf_activity){ 7, "Set Security" };
	if (str_eqz(op, "truncate"))
		return (struct ocsf_activity){ 3, "Update" };
	return (struct ocsf_activity){ 6, "Set Attributes" };
}

struct ocsf_activity ocsf_change(const struct event *ev)
{
	struct str change = event_str(ev, F_FILE_CHANGE);

	if (str_eqz(change, "created"))
		return (struct ocsf_activity){ 1, "Create" };
	if (str_eqz(change, "deleted"))
		return (struct ocsf_activity){ 4, "Delete" };
	return (struct ocsf_activity){ 3, "Update" };
}

struct ocsf_activity ocsf_mount(const struct event *ev)
{
	if (str_eqz(event_str(ev, F_MOUNT_OP), "umount"))
		return (struct ocsf_activity){ 13, "Unmount" };
	return (struct ocsf_activity){ 12, "Mount" };
}

struct ocsf_activity ocsf_action(const struct event *ev)
{
	if (str_eqz(event_str(ev, F_ACTION_TYPE), "kill"))
		return (struct ocsf_activity){ 2, "Evict" };
	if (str_eqz(event_str(ev, F_ACTION_TYPE), "thaw"))
		return (struct ocsf_activity){ 3, "Restore" };
	return (struct ocsf_activity){ 1, "Isolate" };
}

struct ocsf_activity ocsf_connect(const struct event *ev)
{
	if (str_eqz(event_str(ev, F_OUTCOME), "failure"))
		return (struct ocsf_activity){ 4, "Fail" };
	return (struct ocsf_activity){ 1, "Open" };
}

char *ocsf_time(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	return json_digits(d, event_u64(ev, F_TIME) / NSEC_PER_MSEC);
}

static bool is_denied(const struct event *ev)
{
	return str_eqz(event_str(ev, F_OUTCOME), "denied");
}

char *ocsf_status_id(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_OUTCOME);

	(void)w;
	*d++ = str_eqz(s, "success") ? '1' : str_eqz(s, "pending") ? '0' : '2';
	return d;
}

char *ocsf_status(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_OUTCOME);

	(void)w;
	if (str_eqz(s, "success"))
		return PUT_LITERAL(d, "\"Success\"");
	return str_eqz(s, "pending") ? PUT_LITERAL(d, "\"Unknown\"")
				     : PUT_LITERAL(d, "\"Failure\"");
}

/* What status_id does not tell apart. */
char *ocsf_outcome(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_OUTCOME);

	if (str_eqz(s, "success") || str_eqz(s, "failure"))
		return d;
	return put_str(w, d, s);
}

int ocsf_rule_severity(const struct event *ev)
{
	static const struct {
		const char *name;
		int id;
	} rows[] = {
		{ "emergency", 6 },	{ "alert", 5 },	  { "critical", 5 },
		{ "error", 4 },		{ "warning", 3 }, { "notice", 2 },
		{ "informational", 1 }, { "info", 1 },	  { "debug", 1 },
	};
	struct str s = event_str(ev, F_RULE_PRIORITY);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (s.n == strlen(rows[i].name) && !strncasecmp(s.p, rows[i].name, s.n))
			return rows[i].id;
	return 99;
}

static bool was_prevented(const struct event *ev)
{
	if (event_has(ev, F_ENFORCE_VERDICT))
		return true;
	switch (ev->kind) {
	case WIRE_OOM:
	case WIRE_LIMIT:
		return true;
	case WIRE_ESCAPE:
		return is_denied(ev) || event_u64(ev, F_ESCAPE_KILLED);
	case WIRE_RULE_ALERT:
		return event_has(ev, F_RULE_ACTION) &&
		       !str_eqz(event_str(ev, F_RULE_ACTION), "alert");
	default:
		return is_denied(ev);
	}
}

/* 2 Denied, 3 Observed. */
char *ocsf_action_id(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	*d++ = was_prevented(ev) ? '2' : '3';
	return d;
}

/* Before 1.5 there is no Observed: 1 Allowed. */
char *ocsf_action_id_old(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	*d++ = was_prevented(ev) ? '2' : '1';
	return d;
}

/* 2 Blocked, where something was. */
char *ocsf_disposition_id(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	if (was_prevented(ev))
		*d++ = '2';
	return d;
}

/* ---- processes: pids are reused, so a uid is session-pid-start ---- */

static char *put_uid(struct json_writer *w, char *d, const struct event *ev, bool has_pid,
		     uint64_t pid, uint64_t start)
{
	d = put_str(w, d, event_has(ev, F_SESSION) ? event_str(ev, F_SESSION) : STR("unknown"));
	if (!d || !has_pid)
		return d; /* the sandbox as a whole */
	d[-1] = '-';
	d = json_digits(d, pid);
	*d++ = '-';
	d = json_digits(d, start);
	*d++ = '"';
	return d;
}

char *ocsf_process_uid(struct json_writer *w, char *d, const struct event *ev)
{
	return put_uid(w, d, ev, event_has(ev, F_PROC_PID), event_u64(ev, F_PROC_PID),
		       event_u64(ev, F_PROC_START));
}

char *ocsf_child_uid(struct json_writer *w, char *d, const struct event *ev)
{
	return put_uid(w, d, ev, event_has(ev, F_CHILD_PID), event_u64(ev, F_CHILD_PID),
		       event_u64(ev, F_CHILD_START));
}

/* The receiver of a signal: its start is not known. */
char *ocsf_target_uid(struct json_writer *w, char *d, const struct event *ev)
{
	return event_has(ev, F_SIGNAL_TARGET) ? d : put_uid(w, d, ev, false, 0, 0);
}

static char *put_exe(struct json_writer *w, char *d, struct str path)
{
	d = put_str(w, PUT_LITERAL(d, "{\"name\":"), base_name(path));
	if (d)
		d = put_str(w, PUT_LITERAL(d, ",\"path\":"), path);
	return d ? PUT_LITERAL(d, ",\"type_id\":1}") : NULL;
}

char *ocsf_exe(struct json_writer *w, char *d, const struct event *ev)
{
	return put_exe(w, d, event_str(ev, F_PROC_EXE));
}

/* One process of the chain, left open: {"uid":...,"pid":1,"name":"sh","file":{...} */
static char *put_relative(struct json_writer *w, char *d, const struct event *ev, uint64_t pid,
			  uint64_t start, struct str comm, struct str exe)
{
	d = ensure(w, d, SLACK);
	if (d)
		d = put_uid(w, PUT_LITERAL(d, "{\"uid\":"), ev, true, pid, start);
	if (d)
		d = json_digits(PUT_LITERAL(d, ",\"pid\":"), pid);
	if (d && comm.p)
		d = put_str(w, PUT_LITERAL(d, ",\"name\":"), comm);
	if (d && exe.p)
		d = put_exe(w, PUT_LITERAL(d, ",\"file\":"), exe);
	return d;
}

/* The parent, left open; *ret_next is the ancestor after it. */
static char *put_parent(struct json_writer *w, char *d, const struct event *ev, size_t *ret_next)
{
	size_t n = event_has(ev, F_PROC_ANCESTORS) ? ev->v[F_PROC_ANCESTORS].ancestors.n : 0;
	const struct event_ancestor *a = n ? ev->v[F_PROC_ANCESTORS].ancestors.v : NULL;
	struct str comm = event_str(ev, F_PROC_PCOMM), exe = event_str(ev, F_PROC_PEXE);
	uint64_t pid = event_has(ev, F_PROC_PPID) ? event_u64(ev, F_PROC_PPID) : a ? a->pid : 0;
	bool same = a && a->pid == pid;

	*ret_next = same;
	d = put_relative(w, d, ev, pid, same ? a->start : 0, comm.p || !same ? comm : a->comm,
			 exe.p || !same ? exe : a->exe);
	if (d && event_has(ev, F_PROC_PARGS))
		d = put_command(w, PUT_LITERAL(d, ",\"cmd_line\":"), ev->v[F_PROC_PARGS].list.v,
				ev->v[F_PROC_PARGS].list.n);
	return d;
}

static bool has_parent(const struct event *ev)
{
	return event_has(ev, F_PROC_PPID) ||
	       (event_has(ev, F_PROC_ANCESTORS) && ev->v[F_PROC_ANCESTORS].ancestors.n);
}

/* The parent alone, as the one who acted; the sandbox where it is not known. */
char *ocsf_parent(struct json_writer *w, char *d, const struct event *ev)
{
	size_t next;

	if (has_parent(ev))
		d = put_parent(w, d, ev, &next);
	else
		d = put_uid(w, PUT_LITERAL(d, "{\"uid\":"), ev, false, 0, 0);
	if (d)
		*d++ = '}';
	return d;
}

/* parent_process, with its own parent_process and so on. */
char *ocsf_parent_chain(struct json_writer *w, char *d, const struct event *ev)
{
	const struct event_ancestor *a;
	size_t i, n, depth = 1;

	if (!has_parent(ev))
		return d;
	d = put_parent(w, d, ev, &i);
	a = event_has(ev, F_PROC_ANCESTORS) ? ev->v[F_PROC_ANCESTORS].ancestors.v : NULL;
	n = a ? ev->v[F_PROC_ANCESTORS].ancestors.n : 0;
	for (; d && i < n; i++, depth++) {
		d = ensure(w, d, SLACK);
		if (d)
			d = put_relative(w, PUT_LITERAL(d, ",\"parent_process\":"), ev, a[i].pid,
					 a[i].start, a[i].comm, a[i].exe);
	}
	d = d ? ensure(w, d, depth + SLACK) : NULL;
	if (d) {
		memset(d, '}', depth);
		d += depth;
	}
	return d;
}

/* ---- files ---- */

/* Must be there: what names the file best. */
char *ocsf_file_name(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_FILE_NAME);

	if (!s.n)
		s = base_name(event_str(ev, F_FILE_PATH));
	if (!s.n)
		s = base_name(event_str(ev, F_FILE_RAW_PATH));
	return put_str(w, d, s.n ? s : STR("unknown"));
}

char *ocsf_old_name(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = base_name(event_str(ev, F_FILE_OLD_PATH));

	return put_str(w, d, s.n ? s : STR("unknown"));
}

static const struct {
	const char *name;
	char id;
} FILE_TYPES[] = {
	{ "regular", '1' }, { "directory", '2' }, { "char", '3' },    { "block", '4' },
	{ "socket", '5' },  { "fifo", '6' },	  { "symlink", '7' },
};

char *ocsf_file_type_id(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_FILE_TYPE);

	(void)w;
	if (!s.n && ev->kind == WIRE_FILE_MKDIR)
		s = STR("directory");
	for (size_t i = 0; i < ARRAY_SIZE(FILE_TYPES); i++)
		if (str_eqz(s, FILE_TYPES[i].name)) {
			*d++ = FILE_TYPES[i].id;
			return d;
		}
	if (s.n)
		return PUT_LITERAL(d, "99");
	*d++ = '0';
	return d;
}

char *ocsf_file_type(struct json_writer *w, char *d, const struct event *ev)
{
	return put_str(w, d, event_str(ev, F_FILE_TYPE));
}

/* ---- network ---- */

char *ocsf_protocol_num(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_NET_PROTO);

	(void)w;
	if (str_eqz(s, "tcp"))
		return PUT_LITERAL(d, "6");
	if (str_eqz(s, "udp"))
		return PUT_LITERAL(d, "17");
	return str_eqz(s, "icmp") ? PUT_LITERAL(d, "1") : d;
}

char *ocsf_protocol_ver(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_NET_FAMILY);

	(void)w;
	if (str_eqz(s, "inet"))
		return PUT_LITERAL(d, "4");
	return str_eqz(s, "inet6") ? PUT_LITERAL(d, "6") : PUT_LITERAL(d, "99");
}

/* The other side of what has no address. */
char *ocsf_remote_name(struct json_writer *w, char *d, const struct event *ev)
{
	if (event_has(ev, F_NET_PATH))
		return put_str(w, d, event_str(ev, F_NET_PATH));
	return event_has(ev, F_NET_DST_IP) ? d : put_str(w, d, STR("unknown"));
}

char *ocsf_answers(struct json_writer *w, char *d, const struct event *ev)
{
	const struct event_dns_answer *v = ev->v[F_DNS_ANSWERS].answers.v;
	size_t n = ev->v[F_DNS_ANSWERS].answers.n;

	*d++ = '[';
	for (size_t i = 0; i < n && d; i++) {
		d = ensure(w, d, SLACK);
		if (!d)
			return NULL;
		if (i)
			*d++ = ',';
		d = put_str(w, PUT_LITERAL(d, "{\"rdata\":"), v[i].data);
		if (d)
			d = put_str(w, PUT_LITERAL(d, ",\"type\":"), v[i].type);
		if (d)
			d = json_digits(PUT_LITERAL(d, ",\"ttl\":"), v[i].ttl);
		if (d)
			*d++ = '}';
	}
	if (d)
		*d++ = ']';
	return d;
}

char *ocsf_rcode_id(struct json_writer *w, char *d, const struct event *ev)
{
	static const char *const names[] = { "NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",
					     "NOTIMP",	"REFUSED", "YXDOMAIN", "YXRRSET",
					     "NXRRSET", "NOTAUTH", "NOTZONE" };
	struct str s = event_str(ev, F_DNS_RCODE);

	(void)w;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eqz(s, names[i]))
			return json_digits(d, i);
	return PUT_LITERAL(d, "99");
}

/* ---- findings ---- */

static char *put_attacks(struct json_writer *w, char *d, const struct str *v, size_t n)
{
	*d++ = '[';
	for (size_t i = 0; i < n && d; i++) {
		bool sub = v[i].n && memchr(v[i].p, '.', v[i].n);

		d = ensure(w, d, SLACK);
		if (!d)
			return NULL;
		if (i)
			*d++ = ',';
		d = sub ? PUT_LITERAL(d, "{\"sub_technique\":{\"uid\":")
			: PUT_LITERAL(d, "{\"technique\":{\"uid\":");
		d = put_str(w, d, v[i]);
		if (d)
			d = PUT_LITERAL(d, "}}");
	}
	if (d)
		*d++ = ']';
	return d;
}

char *ocsf_attacks(struct json_writer *w, char *d, const struct event *ev)
{
	return put_attacks(w, d, ev->v[F_RULE_ATTACK].list.v, ev->v[F_RULE_ATTACK].list.n);
}

char *ocsf_escape_attacks(struct json_writer *w, char *d, const struct event *ev)
{
	static const struct str escape_to_host = STR("T1611");

	(void)ev;
	return put_attacks(w, d, &escape_to_host, 1);
}

/* Where the process is in the class of the kind. */
static const char *process_name_path(const struct event *ev)
{
	switch (ev->kind) {
	case WIRE_EXEC:
	case WIRE_EXIT:
	case WIRE_OOM:
	case WIRE_LIMIT:
	case WIRE_USAGE:
	case WIRE_ACTION:
		return "process.name";
	case WIRE_ESCAPE:
	case WIRE_RULE_ALERT:
	case WIRE_APPROVAL:
		return "evidences[0].process.name";
	default:
		return "actor.process.name";
	}
}

/* Type ids: 1 hostname, 2 IP address, 7 file name, 9 process name. */
char *ocsf_observables(struct json_writer *w, char *d, const struct event *ev)
{
	bool accepted = ev->kind == WIRE_NET_ACCEPT;
	const struct {
		enum field_id field;
		char type_id;
		const char *name;
	} rows[] = {
		{ F_PROC_COMM, '9', process_name_path(ev) },
		{ F_NET_SRC_IP, '2', accepted ? "dst_endpoint.ip" : "src_endpoint.ip" },
		{ F_NET_DST_IP, '2', accepted ? "src_endpoint.ip" : "dst_endpoint.ip" },
		{ F_NET_DST_NAME, '1',
		  accepted ? "src_endpoint.hostname" : "dst_endpoint.hostname" },
		{ F_DNS_NAME, '1', "query.hostname" },
		{ F_FILE_NAME, '7',
		  ev->kind == WIRE_FILE_RENAME ? "file_result.name" : "file.name" },
	};
	bool first = true;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!event_has(ev, rows[i].field))
			continue;
		d = ensure(w, d, SLACK);
		if (!d)
			return NULL;
		*d++ = first ? '[' : ',';
		first = false;
		d = PUT_LITERAL(d, "{\"name\":\"");
		d = stpcpy(d, rows[i].name);
		d = PUT_LITERAL(d, "\",\"type_id\":");
		*d++ = rows[i].type_id;
		d = put_value(w, PUT_LITERAL(d, ",\"value\":"), event_fields[rows[i].field].type,
			      &ev->v[rows[i].field]);
		if (!d)
			return NULL;
		*d++ = '}';
	}
	if (!first)
		*d++ = ']';
	return d;
}
