// SPDX-License-Identifier: Apache-2.0
/* Elastic Common Schema 9.4. What has no place there goes below `warder`, our own name space. */
#include <errno.h>

#include "exporters/render/ecs.h"
#include "exporters/render/layout.h"
#include "userspace/base/auto.h"
#include "userspace/base/version.h"

struct ecs_kind {
	uint16_t kind;
	const char *category, *type; /* JSON lists */
	const char *action;
	const char *event_kind; /* NULL = event */
};

static const struct ecs_kind KINDS[] = {
	/* clang-format off */
	{ WIRE_EXEC, "[\"process\"]", "[\"start\"]", "\"process-exec\"", NULL },
	{ WIRE_FORK, "[\"process\"]", "[\"start\"]", "\"process-fork\"", NULL },
	{ WIRE_EXIT, "[\"process\"]", "[\"end\"]", "\"process-exit\"", NULL },
	{ WIRE_SIGNAL, "[\"process\"]", "[\"info\"]", "\"process-signal\"", NULL },
	{ WIRE_OOM, "[\"process\"]", "[\"end\"]", "\"oom-kill\"", NULL },
	{ WIRE_LIMIT, "[\"process\"]", "[\"info\"]", "\"limit-hit\"", NULL },
	{ WIRE_FILE_OPEN, "[\"file\"]", "[\"access\"]", "\"file-open\"", NULL },
	{ WIRE_FILE_WRITE, "[\"file\"]", "[\"change\"]", "\"file-write\"", NULL },
	{ WIRE_FILE_RENAME, "[\"file\"]", "[\"change\"]", "\"file-rename\"", NULL },
	{ WIRE_FILE_DELETE, "[\"file\"]", "[\"deletion\"]", "\"file-delete\"", NULL },
	{ WIRE_FILE_LINK, "[\"file\"]", "[\"creation\"]", "\"file-link\"", NULL },
	{ WIRE_FILE_ATTR, "[\"file\"]", "[\"change\"]", "\"file-attributes\"", NULL },
	{ WIRE_FILE_MKDIR, "[\"file\"]", "[\"creation\"]", "\"directory-create\"", NULL },
	{ WIRE_MOUNT, "[\"host\"]", "[\"change\"]", "\"mount\"", NULL },
	{ WIRE_NET_CONNECT, "[\"network\"]", "[\"connection\",\"start\"]", "\"network-connect\"", NULL },
	{ WIRE_NET_LISTEN, "[\"network\"]", "[\"start\"]", "\"network-listen\"", NULL },
	{ WIRE_NET_ACCEPT, "[\"network\"]", "[\"connection\",\"start\"]", "\"network-accept\"", NULL },
	{ WIRE_NET_SEND, "[\"network\"]", "[\"connection\",\"info\"]", "\"network-send\"", NULL },
	{ WIRE_NET_CLOSE, "[\"network\"]", "[\"connection\",\"end\"]", "\"network-close\"", NULL },
	{ WIRE_DNS_QUERY, "[\"network\"]", "[\"protocol\"]", "\"dns-query\"", NULL },
	{ WIRE_DNS_ANSWER, "[\"network\"]", "[\"protocol\",\"info\"]", "\"dns-answer\"", NULL },
	{ WIRE_ESCAPE, "[\"intrusion_detection\",\"process\"]", "[\"info\"]", "\"escape-signal\"", "\"alert\"" },
	{ WIRE_PACKAGE_INSTALL, "[\"package\"]", "[\"installation\"]", "\"package-install\"", NULL },
	{ WIRE_USAGE, "[\"host\"]", "[\"info\"]", "\"usage\"", NULL },
	{ WIRE_SESSION_START, "[\"session\"]", "[\"start\"]", "\"session-start\"", NULL },
	{ WIRE_SESSION_STOP, "[\"session\"]", "[\"end\"]", "\"session-stop\"", NULL },
	{ WIRE_SESSION_PAUSE, "[\"session\"]", "[\"info\"]", "\"session-pause\"", NULL },
	{ WIRE_SESSION_RESUME, "[\"session\"]", "[\"info\"]", "\"session-resume\"", NULL },
	{ WIRE_RULE_ALERT, "[\"intrusion_detection\"]", "[\"info\"]", "\"rule-alert\"", "\"alert\"" },
	{ WIRE_ACTION, "[\"intrusion_detection\",\"process\"]", "[\"denied\",\"end\"]", "\"action\"", NULL },
	{ WIRE_APPROVAL, "[\"intrusion_detection\"]", "[\"info\"]", "\"approval\"", NULL },
	{ WIRE_GAP, "[\"configuration\"]", "[\"info\"]", "\"events-lost\"", "\"pipeline_error\"" },
	{ WIRE_AUDIT_START, "[\"configuration\"]", "[\"info\"]", "\"audit-start\"", NULL },
	{ WIRE_AUDIT_STOP, "[\"configuration\"]", "[\"info\"]", "\"audit-stop\"", NULL },
	{ WIRE_AUDIT_DEGRADED, "[\"configuration\"]", "[\"info\"]", "\"audit-degraded\"", NULL },
	{ WIRE_AUDIT_RULES, "[\"configuration\"]", "[\"change\"]", "\"audit-rules\"", NULL },
	{ WIRE_REVIEW, "[\"configuration\"]", "[\"info\"]", "\"review\"", NULL },
	{ WIRE_TERMINAL, "[\"session\"]", "[\"info\"]", "\"terminal-recorded\"", NULL },
	{ WIRE_WORKSPACE_CHANGE, "[\"file\"]", "[\"change\"]", "\"workspace-change\"", "\"state\"" },
	{ WIRE_WORKSPACE_SCAN, "[\"file\"]", "[\"info\"]", "\"workspace-scan\"", "\"state\"" },
	{ WIRE_SESSION_SNAPSHOT, "[\"file\"]", "[\"info\"]", "\"session-snapshot\"", NULL },
	{ WIRE_SESSION_RESTORE, "[\"file\"]", "[\"info\"]", "\"session-restore\"", NULL },
	{ WIRE_FILE_MKNOD, "[\"file\"]", "[\"creation\"]", "\"file-mknod\"", NULL },
	{ WIRE_FILE_MMAP, "[\"file\"]", "[\"access\"]", "\"file-map\"", NULL },
	{ WIRE_NET_REQUEST, "[\"network\"]", "[\"protocol\"]", "\"network-request\"", NULL },
	{ WIRE_NET_BIND, "[\"network\"]", "[\"start\"]", "\"network-bind\"", NULL },
	{ WIRE_NET_SOCKET, "[\"network\"]", "[\"start\"]", "\"network-socket\"", NULL },
	/* clang-format on */
};

/* A kind without a row (tests/export/test_formats.py fails for it) still goes out. */
static const struct ecs_kind OTHER = { 0, "[\"host\"]", "[\"info\"]", "\"other\"", NULL };

static const struct render_exception EXCEPTIONS[] = {
	/* clang-format off */
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_PID, NULL },
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_NSPID, NULL },
	{ FAM_PROC, 0, WIRE_EXIT, F_EXIT_CODE, NULL },
	/* the new process is `process`, who forked is its parent: ECS goes no further up */
	{ 0, WIRE_FORK, 0, F_PROC_PPID, NULL },
	{ 0, WIRE_FORK, 0, F_PROC_PEXE, NULL },
	{ 0, WIRE_FORK, 0, F_PROC_PCOMM, NULL },
	{ 0, WIRE_FORK, 0, F_PROC_PARGS, NULL },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_IP, "destination.ip" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_PORT, "destination.port" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_IP, "source.ip" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_PORT, "source.port" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_NAME, "source.domain" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_PATH, "source.address" },
	{ FAM_AGENT, 0, 0, F_RULE_SET, NULL },
	/* clang-format on */
};

/* ECS knows success, failure and unknown. */
static char *put_outcome(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_OUTCOME);

	if (str_eqz(s, "pending"))
		s = STR("unknown");
	else if (!str_eqz(s, "success"))
		s = STR("failure");
	return put_str(w, d, s);
}

static char *put_rest_of_outcome(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_OUTCOME);

	if (str_eqz(s, "success") || str_eqz(s, "failure"))
		return d;
	return put_str(w, d, s);
}

static char *put_entity(struct json_writer *w, char *d, const struct event *ev, uint64_t pid,
			uint64_t start)
{
	d = put_str(w, d, event_str(ev, F_SESSION));
	if (!d)
		return NULL;
	d[-1] = '-';
	d = json_digits(d, pid);
	*d++ = '-';
	d = json_digits(d, start);
	*d++ = '"';
	return d;
}

static char *put_entity_id(struct json_writer *w, char *d, const struct event *ev)
{
	return put_entity(w, d, ev, event_u64(ev, F_PROC_PID), event_u64(ev, F_PROC_START));
}

static char *put_child_id(struct json_writer *w, char *d, const struct event *ev)
{
	return put_entity(w, d, ev, event_u64(ev, F_CHILD_PID), event_u64(ev, F_CHILD_START));
}

static char *put_command_line(struct json_writer *w, char *d, const struct event *ev)
{
	return put_command(w, d, ev->v[F_PROC_ARGS].list.v, ev->v[F_PROC_ARGS].list.n);
}

static char *put_file_type(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_FILE_TYPE);

	if (str_eqz(s, "regular"))
		s = STR("file");
	else if (str_eqz(s, "directory"))
		s = STR("dir");
	return put_str(w, d, s);
}

static char *put_network_type(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, F_NET_FAMILY);

	if (str_eqz(s, "inet"))
		s = STR("ipv4");
	else if (str_eqz(s, "inet6"))
		s = STR("ipv6");
	return put_str(w, d, s);
}

static char *put_related_ip(struct json_writer *w, char *d, const struct event *ev)
{
	static const enum field_id fields[] = { F_NET_SRC_IP, F_NET_DST_IP };
	bool first = true;

	(void)w;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!event_has(ev, fields[i]))
			continue;
		*d++ = first ? '[' : ',';
		first = false;
		d = put_ip(d, &ev->v[fields[i]].ip);
	}
	if (!first)
		*d++ = ']';
	return d;
}

static char *put_related_hosts(struct json_writer *w, char *d, const struct event *ev)
{
	struct str s = event_str(ev, event_has(ev, F_DNS_NAME) ? F_DNS_NAME : F_NET_DST_NAME);

	if (!s.n)
		return d;
	*d++ = '[';
	d = put_str(w, d, s);
	if (d)
		*d++ = ']';
	return d;
}

static char *put_resolved(struct json_writer *w, char *d, const struct event *ev)
{
	const struct event_dns_answer *v = ev->v[F_DNS_ANSWERS].answers.v;
	bool first = true;

	for (size_t i = 0; i < ev->v[F_DNS_ANSWERS].answers.n; i++) {
		struct ip_addr ip;

		if ((!str_eqz(v[i].type, "A") && !str_eqz(v[i].type, "AAAA")) ||
		    ip_addr_parse(v[i].data, &ip) < 0)
			continue;
		d = ensure(w, d, SLACK);
		if (!d)
			return NULL;
		*d++ = first ? '[' : ',';
		first = false;
		d = put_ip(d, &ip);
	}
	if (!first)
		*d++ = ']';
	return d;
}

static const struct render_row EVERY[] = {
	ROW_TEXT_UNLESS("@timestamp", F_TIME, "\"1970-01-01T00:00:00Z\""),
	ROW_TEXT("ecs.version", "\"9.4.0\""),
	ROW_TEXT("event.module", "\"warder\""),
	ROW_TEXT("event.dataset", "\"warder.events\""),
	ROW_FIELD("host.hostname", F_HOST, FORM_TYPE),
	ROW_FIELD("container.id", F_SESSION, FORM_TYPE),
	ROW_TEXT("observer.vendor", "\"Warder\""),
	ROW_TEXT("observer.product", "\"Warder\""),
	ROW_TEXT("observer.type", "\"sandbox\""),
	ROW_TEXT("observer.version", "\"" WARDER_VERSION "\""),
	ROW_FN_IF("event.outcome", F_OUTCOME, put_outcome),
	ROW_FN_IF("warder.outcome", F_OUTCOME, put_rest_of_outcome),
};

static const struct render_row WITH_PROCESS[] = {
	ROW_FN_IF("$.entity_id", F_PROC_PID, put_entity_id),
	ROW_FN_IF("$.command_line", F_PROC_ARGS, put_command_line),
};

static const struct render_row FORK[] = {
	ROW_FN_IF("process.entity_id", F_CHILD_PID, put_child_id),
	ROW_FIELD("process.name", F_PROC_COMM, FORM_TYPE),
};

static const struct render_row A_FILE[] = {
	ROW_FN_IF("file.type", F_FILE_TYPE, put_file_type),
};

static const struct render_row OUTBOUND[] = {
	ROW_TEXT("network.direction", "\"egress\""),
};

static const struct render_row INBOUND[] = {
	ROW_TEXT("network.direction", "\"ingress\""),
};

static const struct render_row FLOW[] = {
	ROW_FN_IF("network.type", F_NET_FAMILY, put_network_type),
	ROW_FN("related.ip", put_related_ip),
	ROW_FN("related.hosts", put_related_hosts),
};

static const struct render_row QUERY[] = {
	ROW_TEXT("dns.type", "\"query\""),
	ROW_TEXT("network.protocol", "\"dns\""),
};

static const struct render_row ANSWER[] = {
	ROW_TEXT("dns.type", "\"answer\""),
	ROW_TEXT("network.protocol", "\"dns\""),
	ROW_FN_IF("dns.resolved_ip", F_DNS_ANSWERS, put_resolved),
};

static const struct render_row ATTACK[] = {
	ROW_TEXT_IF("threat.framework", F_RULE_ATTACK, "\"MITRE ATT&CK\""),
};

static const struct render_row ESCAPE[] = {
	ROW_TEXT("threat.framework", "\"MITRE ATT&CK\""),
	ROW_TEXT("threat.technique.id", "[\"T1611\"]"),
	ROW_TEXT("rule.category", "\"escape\""),
};

#define ADD(rows) (r = r < 0 ? r : layout_add(p, (rows), ARRAY_SIZE(rows), root))

static int add_family(struct layout *p, const struct kind_def *kind, const char *root)
{
	int r = 0;

	switch (kind->family) {
	case FAM_PROC:
		if (kind->id == WIRE_FORK)
			ADD(FORK);
		return r;
	case FAM_FILE:
	case FAM_WORK:
		ADD(A_FILE);
		return r;
	case FAM_NET:
	case FAM_DNS:
		ADD(FLOW);
		if (kind->id == WIRE_NET_ACCEPT)
			ADD(INBOUND);
		else
			ADD(OUTBOUND);
		if (kind->id == WIRE_DNS_QUERY)
			ADD(QUERY);
		if (kind->id == WIRE_DNS_ANSWER)
			ADD(ANSWER);
		return r;
	case FAM_ESCAPE:
		ADD(ESCAPE);
		return r;
	case FAM_RULE:
		ADD(ATTACK);
		return r;
	default:
		return r;
	}
}

static int make_layout(struct layout *p, const struct kind_def *kind, int version)
{
	const char *root = kind->id == WIRE_FORK ? "process.parent" : "process";
	const struct ecs_kind *k = NULL;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(KINDS) && !k; i++)
		if (KINDS[i].kind == kind->id)
			k = &KINDS[i];
	if (!k)
		k = &OTHER;
	const struct render_row own[] = {
		ROW_TEXT("event.category", k->category),
		ROW_TEXT("event.type", k->type),
		ROW_TEXT("event.action", k->action),
		ROW_TEXT("event.kind", k->event_kind ? k->event_kind : "\"event\""),
	};

	layout_start(p, "warder");
	r = layout_add_columns(p, ecs_columns, version, kind, root, EXCEPTIONS,
			       ARRAY_SIZE(EXCEPTIONS));
	ADD(own);
	ADD(EVERY);
	if (kind->family & FAM_SUBJECT)
		ADD(WITH_PROCESS);
	if (r == 0)
		r = add_family(p, kind, root);
	return r < 0 ? r : layout_finish(p);
}

int render_ecs(const struct format *f, const struct event *ev, struct buf *out)
{
	static struct layout_cache cache;
	const struct layout *p;
	int r;

	p = layout_get(&cache, ev, f->version, make_layout, &r);
	return p ? layout_json(p, ev, out) : r;
}
