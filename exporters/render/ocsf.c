// SPDX-License-Identifier: Apache-2.0
/* OCSF 1.8, 1.5, 1.3 and 1.1 (https://schema.ocsf.io): which class a kind is, and what a class needs beyond
 * the columns of map.h. */
#include "exporters/render/ocsf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/render/layout.h"
#include "userspace/base/auto.h"
#include "userspace/base/version.h"

#define VERSIONS (V18 + 1)

static const char *const VERSION_TEXT[VERSIONS] = { "\"1.1.0\"", "\"1.3.0\"", "\"1.5.0\"",
						    "\"1.8.0\"" };

enum {
	CLASS_FILE = 1001,
	CLASS_PROCESS = 1007,
	CLASS_LOG = 1008,
	CLASS_FINDING = 2004,
	CLASS_NETWORK = 4001,
	CLASS_DNS = 4003,
	CLASS_APP = 6002,
	CLASS_REMEDIATION = 7003
};

struct ocsf_class {
	uint16_t uid;
	const char *name, *category;
	bool has_action; /* profile security_control: action_id, must be there before 1.5 */
};

static const struct ocsf_class CLASSES[] = {
	{ CLASS_FILE, "File System Activity", "System Activity", true },
	{ CLASS_PROCESS, "Process Activity", "System Activity", true },
	{ CLASS_LOG, "Event Log Activity", "System Activity", true },
	{ CLASS_FINDING, "Detection Finding", "Findings", true },
	{ CLASS_NETWORK, "Network Activity", "Network Activity", true },
	{ CLASS_DNS, "DNS Activity", "Network Activity", true },
	{ CLASS_APP, "Application Lifecycle", "Application Activity", false },
	{ CLASS_REMEDIATION, "Process Remediation Activity", "Remediation", false },
};

/* Where the process of an event is. */
static const char PROCESS[] = "process", ACTOR[] = "actor.process",
		  EVIDENCE[] = "evidences[].process";

struct ocsf_kind {
	uint16_t kind, class;
	uint8_t since; /* else a later row of the kind */
	uint8_t activity, severity;
	const char *activity_name;
	const char *root;
	ocsf_activity_fn activity_of; /* when it depends on the event */
};

/* severity 0 = from the rule's priority */
static const struct ocsf_kind KINDS[] = {
	/* clang-format off */
	{ WIRE_EXEC, CLASS_PROCESS, V11, 1, 1, "Launch", PROCESS, NULL },
	{ WIRE_FORK, CLASS_PROCESS, V11, 1, 1, "Launch", ACTOR, NULL },
	{ WIRE_EXIT, CLASS_PROCESS, V11, 2, 1, "Terminate", PROCESS, NULL },
	{ WIRE_SIGNAL, CLASS_PROCESS, V11, 99, 1, "Signal", ACTOR, NULL },
	{ WIRE_OOM, CLASS_PROCESS, V11, 2, 4, "Terminate", PROCESS, NULL },
	{ WIRE_LIMIT, CLASS_PROCESS, V11, 99, 3, "Limit", PROCESS, NULL },
	{ WIRE_USAGE, CLASS_PROCESS, V11, 99, 1, "Usage", PROCESS, NULL },
	{ WIRE_FILE_OPEN, CLASS_FILE, V11, 14, 1, "Open", ACTOR, NULL },
	{ WIRE_FILE_WRITE, CLASS_FILE, V11, 3, 1, "Update", ACTOR, NULL },
	{ WIRE_FILE_RENAME, CLASS_FILE, V11, 5, 1, "Rename", ACTOR, NULL },
	{ WIRE_FILE_DELETE, CLASS_FILE, V11, 4, 1, "Delete", ACTOR, NULL },
	{ WIRE_FILE_LINK, CLASS_FILE, V11, 1, 1, "Create", ACTOR, NULL },
	{ WIRE_FILE_ATTR, CLASS_FILE, V11, 0, 1, NULL, ACTOR, ocsf_file_attr },
	{ WIRE_FILE_MKDIR, CLASS_FILE, V11, 1, 1, "Create", ACTOR, NULL },
	{ WIRE_MOUNT, CLASS_FILE, V11, 0, 2, NULL, ACTOR, ocsf_mount },
	{ WIRE_NET_CONNECT, CLASS_NETWORK, V11, 0, 1, NULL, ACTOR, ocsf_connect },
	{ WIRE_NET_LISTEN, CLASS_NETWORK, V13, 7, 1, "Listen", ACTOR, NULL },
	{ WIRE_NET_LISTEN, CLASS_NETWORK, V11, 99, 1, "Listen", ACTOR, NULL },
	{ WIRE_NET_ACCEPT, CLASS_NETWORK, V11, 1, 1, "Open", ACTOR, NULL },
	{ WIRE_NET_SEND, CLASS_NETWORK, V11, 6, 1, "Traffic", ACTOR, NULL },
	{ WIRE_NET_CLOSE, CLASS_NETWORK, V11, 2, 1, "Close", ACTOR, NULL },
	{ WIRE_DNS_QUERY, CLASS_DNS, V11, 1, 1, "Query", ACTOR, NULL },
	{ WIRE_DNS_ANSWER, CLASS_DNS, V11, 2, 1, "Response", ACTOR, NULL },
	{ WIRE_ESCAPE, CLASS_FINDING, V11, 1, 6, "Create", EVIDENCE, NULL },
	{ WIRE_RULE_ALERT, CLASS_FINDING, V11, 1, 0, "Create", EVIDENCE, NULL },
	{ WIRE_APPROVAL, CLASS_FINDING, V11, 2, 2, "Update", EVIDENCE, NULL },
	{ WIRE_ACTION, CLASS_REMEDIATION, V13, 0, 4, NULL, PROCESS, ocsf_action },
	{ WIRE_ACTION, CLASS_PROCESS, V11, 2, 4, "Terminate", PROCESS, NULL },
	{ WIRE_PACKAGE_INSTALL, CLASS_APP, V11, 1, 1, "Install", ACTOR, NULL },
	{ WIRE_SESSION_START, CLASS_APP, V11, 3, 1, "Start", NULL, NULL },
	{ WIRE_SESSION_STOP, CLASS_APP, V11, 4, 1, "Stop", NULL, NULL },
	{ WIRE_SESSION_PAUSE, CLASS_APP, V11, 99, 1, "Pause", NULL, NULL },
	{ WIRE_SESSION_RESUME, CLASS_APP, V11, 99, 1, "Resume", NULL, NULL },
	{ WIRE_GAP, CLASS_LOG, V18, 99, 4, "Lost Events", NULL, NULL },
	{ WIRE_GAP, CLASS_APP, V11, 99, 4, "Lost Events", NULL, NULL },
	{ WIRE_AUDIT_START, CLASS_LOG, V18, 6, 1, "Start", NULL, NULL },
	{ WIRE_AUDIT_START, CLASS_APP, V11, 3, 1, "Start", NULL, NULL },
	{ WIRE_AUDIT_STOP, CLASS_LOG, V18, 7, 1, "Stop", NULL, NULL },
	{ WIRE_AUDIT_STOP, CLASS_APP, V11, 4, 1, "Stop", NULL, NULL },
	{ WIRE_AUDIT_DEGRADED, CLASS_LOG, V18, 99, 3, "Degraded", NULL, NULL },
	{ WIRE_AUDIT_DEGRADED, CLASS_APP, V11, 99, 3, "Degraded", NULL, NULL },
	{ WIRE_AUDIT_RULES, CLASS_LOG, V18, 99, 1, "Rules Loaded", NULL, NULL },
	{ WIRE_AUDIT_RULES, CLASS_APP, V11, 99, 1, "Rules Loaded", NULL, NULL },
	{ WIRE_REVIEW, CLASS_APP, V11, 99, 1, "Review", NULL, NULL },
	{ WIRE_TERMINAL, CLASS_LOG, V18, 99, 1, "Terminal Recorded", NULL, NULL },
	{ WIRE_TERMINAL, CLASS_APP, V11, 99, 1, "Terminal Recorded", NULL, NULL },
	{ WIRE_WORKSPACE_CHANGE, CLASS_FILE, V11, 0, 1, NULL, NULL, ocsf_change },
	{ WIRE_WORKSPACE_SCAN, CLASS_APP, V11, 99, 1, "Workspace Scan", NULL, NULL },
	{ WIRE_SESSION_SNAPSHOT, CLASS_APP, V11, 99, 1, "Snapshot", NULL, NULL },
	{ WIRE_SESSION_RESTORE, CLASS_APP, V11, 99, 1, "Restore", NULL, NULL },
	{ WIRE_FILE_MKNOD, CLASS_FILE, V11, 1, 1, "Create", ACTOR, NULL },
	{ WIRE_FILE_MMAP, CLASS_FILE, V11, 99, 1, "Map", ACTOR, NULL },
	{ WIRE_NET_REQUEST, CLASS_NETWORK, V11, 99, 1, "Request", ACTOR, NULL },
	{ WIRE_NET_BIND, CLASS_NETWORK, V11, 99, 1, "Bind", ACTOR, NULL },
	{ WIRE_NET_SOCKET, CLASS_NETWORK, V11, 99, 1, "Socket", ACTOR, NULL },
	/* clang-format on */
};

/* A kind without a row (tests/export/test_formats.py fails for it) still goes out, by its family. */
static const struct {
	uint32_t family;
	struct ocsf_kind kind;
} FAMILIES[] = {
	{ FAM_PROC, { 0, CLASS_PROCESS, V11, 99, 1, "Other", PROCESS, NULL } },
	{ FAM_FILE, { 0, CLASS_FILE, V11, 99, 1, "Other", ACTOR, NULL } },
	{ FAM_NET, { 0, CLASS_NETWORK, V11, 99, 1, "Other", ACTOR, NULL } },
	{ FAM_DNS, { 0, CLASS_DNS, V11, 99, 1, "Other", ACTOR, NULL } },
	{ FAM_LIMIT, { 0, CLASS_PROCESS, V11, 99, 3, "Other", PROCESS, NULL } },
	{ FAM_ESCAPE, { 0, CLASS_FINDING, V11, 1, 6, "Create", EVIDENCE, NULL } },
	{ FAM_RULE, { 0, CLASS_FINDING, V11, 99, 2, "Other", EVIDENCE, NULL } },
	{ FAM_SESSION, { 0, CLASS_APP, V11, 99, 1, "Other", NULL, NULL } },
	{ FAM_AGENT, { 0, CLASS_APP, V11, 99, 1, "Other", NULL, NULL } },
	{ FAM_WORK, { 0, CLASS_FILE, V11, 99, 1, "Other", NULL, NULL } },
};

/* Where a kind has no place for what a column says, or another one. */
static const struct render_exception EXCEPTIONS[] = {
	/* clang-format off */
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_PID, NULL },
	{ FAM_PROC, 0, WIRE_FORK, F_CHILD_NSPID, NULL },
	{ FAM_PROC, 0, WIRE_EXIT, F_EXIT_CODE, NULL },
	{ FAM_PROC, 0, WIRE_EXIT, F_EXIT_SIGNAL, NULL },
	{ FAM_PROC, 0, WIRE_SIGNAL, F_SIGNAL_TARGET, NULL },
	{ FAM_PROC, 0, WIRE_SIGNAL, F_SIGNAL_NAME, NULL },
	{ FAM_PROC, 0, WIRE_SIGNAL, F_SIGNAL_COMM, NULL },
	{ FAM_SESSION, 0, 0, F_EXIT_CODE, NULL },
	{ FAM_SESSION, 0, 0, F_EXIT_SIGNAL, NULL },
	{ 0, WIRE_FILE_RENAME, 0, F_FILE_PATH, "file_result.path" },
	{ 0, WIRE_FILE_RENAME, 0, F_FILE_INO, "file_result.uid" },
	{ 0, WIRE_FILE_RENAME, 0, F_FILE_OLD_PATH, "file.path" },
	/* what the other side opened: it is the source */
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_IP, "dst_endpoint.ip" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_SRC_PORT, "dst_endpoint.port" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_IP, "src_endpoint.ip" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_PORT, "src_endpoint.port" },
	{ 0, WIRE_NET_ACCEPT, 0, F_NET_DST_NAME, "src_endpoint.hostname" },
	{ FAM_LIMIT, 0, 0, F_ERRNO, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_NAME, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_ATTACK, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_OUTPUT_FIELDS, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_SET, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_TRIGGER, NULL },
	{ 0, WIRE_ACTION, 0, F_RULE_TRIGGER_KIND, NULL },
	{ FAM_AGENT, 0, 0, F_RULE_SET, NULL },
	/* clang-format on */
};

static const struct render_row EVERY[] = {
	ROW_FN("time", ocsf_time),
	ROW_FIELD("metadata.original_time", F_TIME, FORM_TYPE),
	ROW_FIELD("metadata.logged_time", F_TIME, FORM_MS),
	ROW_TEXT("metadata.product.name", "\"Warder\""),
	ROW_TEXT("metadata.product.vendor_name", "\"Warder\""),
	ROW_TEXT("metadata.product.version", "\"" WARDER_VERSION "\""),
	ROW_TEXT("device.type_id", "99"),
	ROW_TEXT("device.type", "\"Sandbox\""),
	ROW_FIELD("device.instance_uid", F_SESSION, FORM_TYPE),
	ROW_TEXT_UNLESS("device.instance_uid", F_SESSION, "\"unknown\""),
};

static const struct render_row WITH_OUTCOME[] = {
	ROW_FN_IF("status_id", F_OUTCOME, ocsf_status_id),
	ROW_FN_IF("status", F_OUTCOME, ocsf_status),
	ROW_FN_IF("unmapped.outcome", F_OUTCOME, ocsf_outcome),
};

static const struct render_row WITH_PROCESS[] = {
	ROW_FN("$.uid", ocsf_process_uid),
	ROW_FN_IF("$.file", F_PROC_EXE, ocsf_exe),
	ROW_FN("$.parent_process", ocsf_parent_chain),
	ROW_FN("observables", ocsf_observables),
};

static const struct render_row PARENT_ACTS[] = {
	ROW_FN("actor.process", ocsf_parent),
};

static const struct render_row FORK[] = {
	ROW_FN("process.uid", ocsf_child_uid),
	ROW_FIELD("process.name", F_PROC_COMM, FORM_TYPE),
};

static const struct render_row SIGNAL[] = {
	ROW_FN("process.uid", ocsf_target_uid),
};

static const struct render_row A_FILE[] = {
	ROW_FN("file.name", ocsf_file_name),
	ROW_FN("file.type_id", ocsf_file_type_id),
	ROW_FN_IF("file.type", F_FILE_TYPE, ocsf_file_type),
};

static const struct render_row RENAME[] = {
	ROW_FN("file.name", ocsf_old_name),
	ROW_FN("file.type_id", ocsf_file_type_id),
	ROW_FN("file_result.name", ocsf_file_name),
	ROW_FN("file_result.type_id", ocsf_file_type_id),
	ROW_FN_IF("file_result.type", F_FILE_TYPE, ocsf_file_type),
};

static const struct render_row OUTBOUND[] = {
	ROW_FIELD("src_endpoint.instance_uid", F_SESSION, FORM_TYPE),
	ROW_TEXT_UNLESS("src_endpoint.instance_uid", F_SESSION, "\"unknown\""),
	ROW_FN("dst_endpoint.name", ocsf_remote_name),
	ROW_TEXT("connection_info.direction_id", "2"),
	ROW_TEXT("connection_info.direction", "\"Outbound\""),
};

static const struct render_row INBOUND[] = {
	ROW_FIELD("dst_endpoint.instance_uid", F_SESSION, FORM_TYPE),
	ROW_TEXT_UNLESS("dst_endpoint.instance_uid", F_SESSION, "\"unknown\""),
	ROW_FN("src_endpoint.name", ocsf_remote_name),
	ROW_TEXT("connection_info.direction_id", "1"),
	ROW_TEXT("connection_info.direction", "\"Inbound\""),
};

static const struct render_row FLOW[] = {
	ROW_FN("connection_info.protocol_num", ocsf_protocol_num),
	ROW_FN_IF("connection_info.protocol_ver_id", F_NET_FAMILY, ocsf_protocol_ver),
};

static const struct render_row DNS[] = {
	ROW_TEXT_UNLESS("query.hostname", F_DNS_NAME, "\"unknown\""),
	ROW_FN_IF("answers", F_DNS_ANSWERS, ocsf_answers),
	ROW_FN_IF("rcode_id", F_DNS_RCODE, ocsf_rcode_id),
};

static const struct render_row FINDING[] = {
	ROW_FIELD("finding_info.uid", F_ID, FORM_TYPE),
	ROW_TEXT_UNLESS("finding_info.uid", F_ID, "\"unknown\""),
	ROW_FIELD("finding_info.created_time", F_TIME, FORM_MS),
	ROW_TEXT("finding_info.analytic.type_id", "1"),
	ROW_TEXT("finding_info.analytic.type", "\"Rule\""),
};

static const struct render_row RULE[] = {
	ROW_TEXT_UNLESS("finding_info.title", F_RULE_NAME, "\"unknown\""),
	ROW_FIELD("finding_info.analytic.name", F_RULE_NAME, FORM_TYPE),
	ROW_TEXT_UNLESS("finding_info.analytic.name", F_RULE_NAME, "\"unknown\""),
	ROW_FN_IF("finding_info.attacks", F_RULE_ATTACK, ocsf_attacks),
	ROW_TEXT_UNLESS("finding_info.related_events[].uid", F_RULE_TRIGGER, "\"unknown\""),
	ROW_TEXT("confidence_id", "3"),
};

static const struct render_row IS_ALERT[] = {
	ROW_TEXT("is_alert", "true"),
};

static const struct render_row ESCAPE[] = {
	ROW_TEXT("finding_info.title", "\"Escape signal\""),
	ROW_TEXT_UNLESS("finding_info.analytic.name", F_ESCAPE_TYPE, "\"unknown\""),
	ROW_FN("finding_info.attacks", ocsf_escape_attacks),
};

static const struct render_row REMEDIATION[] = {
	ROW_FIELD("command_uid", F_ID, FORM_TYPE),
	ROW_TEXT_UNLESS("command_uid", F_ID, "\"unknown\""),
};

static const struct render_row SESSION[] = {
	ROW_FIELD("app.uid", F_SESSION, FORM_TYPE),
	ROW_FIELD("app.name", F_SANDBOX, FORM_TYPE),
	ROW_TEXT_UNLESS("app.name", F_SANDBOX, "\"sandbox\""),
	ROW_TEXT("app.vendor_name", "\"Warder\""),
};

/* No process is known to have done it: the session as a whole did. */
static const struct render_row BY_SESSION[] = {
	ROW_FIELD("actor.session.uid", F_SESSION, FORM_TYPE),
};

static const struct render_row AGENT[] = {
	ROW_TEXT("app.name", "\"warder\""),
	ROW_TEXT("app.vendor_name", "\"Warder\""),
	ROW_TEXT("app.version", "\"" WARDER_VERSION "\""),
};

static const struct render_row PACKAGE[] = {
	ROW_FIELD("app.name", F_PACKAGE_NAME, FORM_TYPE),
	ROW_TEXT_UNLESS("app.name", F_PACKAGE_NAME, "\"unknown\""),
	ROW_FIELD("app.version", F_PACKAGE_VERSION, FORM_TYPE),
	ROW_FIELD("app.vendor_name", F_PACKAGE_MANAGER, FORM_TYPE),
	ROW_TEXT_UNLESS("app.vendor_name", F_PACKAGE_MANAGER, "\"unknown\""),
};

static const struct render_row LOG[] = {
	ROW_TEXT("log_name", "\"warder\""),
	ROW_TEXT("log_type_id", "99"),
	ROW_TEXT("log_type", "\"Sandbox audit\""),
};

static const struct render_row GAP[] = {
	ROW_FIELD("start_time", F_GAP_FIRST, FORM_MS),
	ROW_FIELD("end_time", F_GAP_LAST, FORM_MS),
	ROW_TEXT_UNLESS("status_id", F_OUTCOME, "2"),
	ROW_TEXT_UNLESS("status", F_OUTCOME, "\"Failure\""),
};

static const struct ocsf_kind *find_kind(uint16_t kind, int version)
{
	const struct kind_def *def = event_kind_by_id(kind);

	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++)
		if (KINDS[i].kind == kind && KINDS[i].since <= version)
			return &KINDS[i];
	for (size_t i = 0; def && i < ARRAY_SIZE(FAMILIES); i++)
		if (FAMILIES[i].family == def->family)
			return &FAMILIES[i].kind;
	return NULL;
}

static const struct ocsf_class *find_class(uint16_t uid)
{
	const struct ocsf_class *c = CLASSES;

	while (c->uid != uid)
		c++;
	return c;
}

int ocsf_severity(const struct event *ev)
{
	const struct ocsf_kind *k = find_kind((uint16_t)ev->kind, V18);

	return k && k->severity ? k->severity : ocsf_rule_severity(ev);
}

static char *put_severity(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	return json_digits(d, (uint64_t)ocsf_rule_severity(ev));
}

/* ---- the activity, where it depends on the event ---- */

static char *put_activity_id(struct json_writer *w, char *d, const struct event *ev)
{
	(void)w;
	return json_digits(d, find_kind((uint16_t)ev->kind, V18)->activity_of(ev).id);
}

static char *put_activity_name(struct json_writer *w, char *d, const struct event *ev)
{
	const char *name = find_kind((uint16_t)ev->kind, V18)->activity_of(ev).name;

	return put_str(w, d, str_from(name));
}

static char *put_type_uid(struct json_writer *w, char *d, const struct event *ev)
{
	const struct ocsf_kind *k = find_kind((uint16_t)ev->kind, V18);

	(void)w;
	return json_digits(d, k->class * 100u + k->activity_of(ev).id);
}

/* ---- layouts ---- */

static int add_number(struct layout *p, const char *path, unsigned n)
{
	char text[16];
	const struct render_row row = ROW_TEXT(path, text);

	snprintf(text, sizeof(text), "%u", n);
	return layout_add(p, &row, 1, NULL);
}

static int add_quoted(struct layout *p, const char *path, const char *value)
{
	char text[64];
	const struct render_row row = ROW_TEXT(path, text);

	if ((size_t)snprintf(text, sizeof(text), "\"%s\"", value) >= sizeof(text))
		return -ENAMETOOLONG;
	return layout_add(p, &row, 1, NULL);
}

#define TRY(call) (r = r < 0 ? r : (call))

static int add_activity(struct layout *p, const struct ocsf_kind *k)
{
	static const struct render_row by_event[] = {
		ROW_FN("activity_id", put_activity_id),
		ROW_FN("activity_name", put_activity_name),
		ROW_FN("type_uid", put_type_uid),
	};
	int r = 0;

	if (k->activity_of)
		return layout_add(p, by_event, ARRAY_SIZE(by_event), NULL);
	TRY(add_number(p, "activity_id", k->activity));
	TRY(add_quoted(p, "activity_name", k->activity_name));
	TRY(add_number(p, "type_uid", k->class * 100u + k->activity));
	return r;
}

static int add_numbers(struct layout *p, const struct ocsf_kind *k, const struct ocsf_class *c,
		       int version)
{
	const struct render_row rows[] = {
		ROW_TEXT("metadata.version", VERSION_TEXT[version]),
		ROW_TEXT("metadata.profiles",
			 c->has_action ? "[\"host\",\"security_control\"]" : "[\"host\"]"),
	};
	static const struct render_row by_rule[] = { ROW_FN("severity_id", put_severity) };
	int r = layout_add(p, rows, ARRAY_SIZE(rows), NULL);

	TRY(add_number(p, "class_uid", c->uid));
	TRY(add_quoted(p, "class_name", c->name));
	TRY(add_number(p, "category_uid", c->uid / 1000u));
	TRY(add_quoted(p, "category_name", c->category));
	if (k->severity)
		TRY(add_number(p, "severity_id", (unsigned)k->severity));
	else
		TRY(layout_add(p, by_rule, 1, NULL));
	TRY(add_activity(p, k));
	return r;
}

static int add_action(struct layout *p, int version)
{
	const struct render_row rows[] = {
		ROW_FN("action_id", version >= V15 ? ocsf_action_id : ocsf_action_id_old),
		ROW_FN("disposition_id", ocsf_disposition_id),
	};

	return layout_add(p, rows, ARRAY_SIZE(rows), NULL);
}

#define ADD(rows) (r = r < 0 ? r : layout_add(p, (rows), ARRAY_SIZE(rows), k->root))

static int add_network(struct layout *p, const struct ocsf_kind *k)
{
	int r = 0;

	ADD(FLOW);
	if (k->kind == WIRE_NET_ACCEPT)
		ADD(INBOUND);
	else
		ADD(OUTBOUND);
	if (k->class == CLASS_DNS)
		ADD(DNS);
	return r;
}

static int add_finding(struct layout *p, const struct ocsf_kind *k, int version)
{
	int r = 0;

	ADD(FINDING);
	if (k->kind == WIRE_ESCAPE)
		ADD(ESCAPE);
	else
		ADD(RULE);
	if (version >= V15)
		ADD(IS_ALERT);
	return r;
}

static int add_app(struct layout *p, const struct ocsf_kind *k, const struct kind_def *kind)
{
	int r = 0;

	if (kind->family == FAM_SESSION)
		ADD(SESSION);
	else if (kind->family == FAM_AGENT)
		ADD(AGENT);
	else
		ADD(PACKAGE);
	return r;
}

static int add_class(struct layout *p, const struct ocsf_kind *k, const struct kind_def *kind,
		     int version)
{
	int r = 0;

	switch (k->class) {
	case CLASS_PROCESS:
		if (k->root == PROCESS)
			ADD(PARENT_ACTS);
		if (k->kind == WIRE_FORK)
			ADD(FORK);
		if (k->kind == WIRE_SIGNAL)
			ADD(SIGNAL);
		return r;
	case CLASS_FILE:
		if (k->kind == WIRE_FILE_RENAME)
			ADD(RENAME);
		else
			ADD(A_FILE);
		if (!k->root)
			ADD(BY_SESSION);
		return r;
	case CLASS_NETWORK:
	case CLASS_DNS:
		return add_network(p, k);
	case CLASS_FINDING:
		return add_finding(p, k, version);
	case CLASS_REMEDIATION:
		ADD(REMEDIATION);
		return r;
	case CLASS_LOG:
		ADD(LOG);
		return r;
	default:
		return add_app(p, k, kind);
	}
}

/* Before 1.5 a hostname has a pattern, which neither "_dmarc.example.org" nor what a hostile process asks for
 * fits: that goes to `unmapped`. */
static int restrict_host_names(struct layout *p)
{
	static const struct render_row rest[] = {
		ROW_FIELD("unmapped.host", F_HOST, FORM_NOT_HOST),
		ROW_FIELD("unmapped.net.dst.name", F_NET_DST_NAME, FORM_NOT_HOST),
		ROW_FIELD("unmapped.dns.name", F_DNS_NAME, FORM_NOT_HOST),
	};
	size_t n = p->steps_n;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; r == 0 && k < ARRAY_SIZE(rest); k++) {
			struct layout_step *s = &p->steps[i];

			if (s->field != rest[k].field)
				continue;
			s->form = s->field == F_DNS_NAME ? FORM_HOST_OR_UNKNOWN : FORM_HOST;
			r = layout_add(p, &rest[k], 1, NULL);
		}
	return r;
}

static int make_layout(struct layout *p, const struct kind_def *kind, int version)
{
	const struct ocsf_kind *k = find_kind(kind->id, version);
	const struct ocsf_class *c;
	int r;

	if (!k)
		return -ENOENT;
	c = find_class(k->class);
	layout_start(p, "unmapped");
	r = layout_add_columns(p, ocsf_columns, version, kind, k->root, EXCEPTIONS,
			       ARRAY_SIZE(EXCEPTIONS));
	if (r == 0 && version < V15)
		r = restrict_host_names(p);
	ADD(EVERY);
	if (r == 0)
		r = add_numbers(p, k, c, version);
	if (r == 0 && c->has_action)
		r = add_action(p, version);
	if (kind->family & (FAM_SUBJECT | FAM_AGENT))
		ADD(WITH_OUTCOME);
	if (k->root)
		ADD(WITH_PROCESS);
	if (r == 0)
		r = add_class(p, k, kind, version);
	if (k->kind == WIRE_GAP)
		ADD(GAP);
	return r < 0 ? r : layout_finish(p);
}

int render_ocsf(const struct format *f, const struct event *ev, struct buf *out)
{
	static struct layout_cache caches[VERSIONS];
	const struct layout *p;
	int r;

	p = layout_get(&caches[f->version], ev, f->version, make_layout, &r);
	return p ? layout_json(p, ev, out) : r;
}
