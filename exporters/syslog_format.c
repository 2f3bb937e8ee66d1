// SPDX-License-Identifier: Apache-2.0
#include "exporters/syslog.h"

#include <errno.h>
#include <stdio.h>

#include "userspace/base/auto.h"
#include "userspace/base/option.h"

/* Private enterprise number of RFC 5612 for documentation: we have none of our own. */
#define SD_ID	      "warder@32473"
#define MSGID_MAX     32
#define TIME_FRACTION 6 /* digits that RFC 5424 allows */

static const char *const FACILITIES[] = {
	"kern",	  "user",   "mail",	"daemon", "auth",   "syslog", "lpr",	"news",
	"uucp",	  "cron",   "authpriv", "ftp",	  "ntp",    "audit",  "alert",	"clock",
	"local0", "local1", "local2",	"local3", "local4", "local5", "local6", "local7",
};

int syslog_facility(const char *text, int *ret)
{
	uint64_t v;

	for (size_t i = 0; i < ARRAY_SIZE(FACILITIES); i++) {
		if (strcmp(FACILITIES[i], text))
			continue;
		*ret = (int)i;
		return 0;
	}
	if (parse_u64(text, &v) < 0 || v >= ARRAY_SIZE(FACILITIES))
		return -EINVAL;
	*ret = (int)v;
	return 0;
}

int syslog_severity(struct str kind)
{
	static const struct {
		const char *kind;
		int severity;
	} rows[] = {
		{ "escape", 1 }, /* alert: act at once */
		{ "rule.alert", 2 }, { "gap", 3 },   { "action", 4 },
		{ "oom", 4 },	     { "limit", 4 }, { "approval", 5 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (str_eqz(kind, rows[i].kind))
			return rows[i].severity;
	return 6;
}

/* A header field: printable ASCII without space, "-" when there is nothing. */
static void add_field(struct buf *out, struct str s, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n && n < max; i++)
		if (s.p[i] > 32 && s.p[i] < 127) {
			buf_addc(out, s.p[i]);
			n++;
		}
	if (!n)
		buf_addc(out, '-');
}

static bool is_time(struct str t)
{
	if (t.n < 20 || t.n > 40 || t.p[4] != '-' || t.p[10] != 'T')
		return false;
	for (size_t i = 0; i < t.n; i++)
		if (!t.p[i] || !strchr("0123456789-+:.TZ", t.p[i]))
			return false;
	return true;
}

/* RFC 3339 with up to nanoseconds in, up to microseconds out. */
static void add_time(struct buf *out, struct str t)
{
	size_t digits = 0;
	bool fraction = false;

	if (!is_time(t)) {
		buf_addc(out, '-');
		return;
	}
	for (size_t i = 0; i < t.n; i++) {
		bool digit = t.p[i] >= '0' && t.p[i] <= '9';

		if (fraction && digit && ++digits > TIME_FRACTION)
			continue;
		fraction = t.p[i] == '.' || (fraction && digit);
		buf_addc(out, t.p[i]);
	}
}

/* RFC 5424 6.3.3: '"', '\' and ']' are escaped. */
static void add_param(struct buf *out, const char *name, struct str value)
{
	if (!value.n)
		return;
	buf_addc(out, ' ');
	buf_addz(out, name);
	buf_addz(out, "=\"");
	for (size_t i = 0; i < value.n; i++) {
		char c = value.p[i];

		if (c == '"' || c == '\\' || c == ']')
			buf_addc(out, '\\');
		buf_addc(out, (unsigned char)c < 32 ? '?' : c);
	}
	buf_addc(out, '"');
}

int syslog_format(struct buf *out, const struct syslog_header *h, const struct export_record *rec)
{
	struct str text = export_text(rec);
	char seq[24];
	int n = snprintf(seq, sizeof(seq), "%llu", (unsigned long long)rec->seq);

	buf_printf(out, "<%d>1 ", h->facility * 8 + syslog_severity(rec->kind));
	add_time(out, rec->time);
	buf_addc(out, ' ');
	add_field(out, str_from(h->host), sizeof(h->host) - 1);
	buf_addc(out, ' ');
	add_field(out, str_from(h->app_name), sizeof(h->app_name) - 1);
	buf_addz(out, " - ");
	add_field(out, rec->kind, MSGID_MAX);
	buf_addz(out, " [" SD_ID);
	add_param(out, "id", rec->id);
	add_param(out, "session", rec->session);
	add_param(out, "seq", (struct str){ seq, (size_t)n });
	add_param(out, "sandbox", rec->sandbox);
	buf_addz(out, "] ");
	buf_add(out, text.p, text.n);
	return out->failed ? -EMSGSIZE : 0;
}

/* Systemd's "native protocol": NAME=value lines; a value with a line end in it has its length in front,
 * 64 bits little-endian, behind NAME and a line end. */
static void add_field_value(struct buf *out, const char *name, struct str value)
{
	if (!value.n)
		return;
	buf_addz(out, name);
	if (memchr(value.p, '\n', value.n)) {
		unsigned char len[8];

		for (int i = 0; i < 8; i++)
			len[i] = (unsigned char)((uint64_t)value.n >> 8 * i);
		buf_addc(out, '\n');
		buf_add(out, len, sizeof(len));
	} else {
		buf_addc(out, '=');
	}
	buf_add(out, value.p, value.n);
	buf_addc(out, '\n');
}

int syslog_journald(struct buf *out, const struct syslog_header *h, const struct export_record *rec)
{
	buf_printf(out, "PRIORITY=%d\nSYSLOG_FACILITY=%d\n", syslog_severity(rec->kind),
		   h->facility);
	add_field_value(out, "SYSLOG_IDENTIFIER", str_from(h->app_name));
	add_field_value(out, "WARDER_ID", rec->id);
	add_field_value(out, "WARDER_KIND", rec->kind);
	add_field_value(out, "WARDER_SESSION", rec->session);
	add_field_value(out, "WARDER_SANDBOX", rec->sandbox);
	buf_printf(out, "WARDER_SEQ=%llu\n", (unsigned long long)rec->seq);
	add_field_value(out, "MESSAGE", export_text(rec));
	return out->failed ? -EMSGSIZE : 0;
}
