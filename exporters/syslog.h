/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 5424 messages, apart from how they are sent. */
#ifndef WARDER_EXPORTERS_SYSLOG_H
#define WARDER_EXPORTERS_SYSLOG_H

#include "exporters/exporter.h"
#include "userspace/base/buf.h"

struct syslog_header {
	int facility;	   /* 0..23 */
	char host[256];	   /* RFC 5424 6.2.4: at most 255 printable ASCII characters */
	char app_name[49]; /* at most 48 */
};

/* "local0", "auth" or a number. -EINVAL. */
int syslog_facility(const char *text, int *ret);
/* Severity (RFC 5424 table 2) of an event kind: alert 1 .. informational 6. */
int syslog_severity(struct str kind);
/* Append <PRI>1 TIME HOST APP - KIND [warder@32473 id session seq sandbox] JSON. Whatever the record
 * holds, header and structured data stay well-formed. -ENOMEM, -EMSGSIZE. */
int syslog_format(struct buf *out, const struct syslog_header *h, const struct export_record *rec);
/* The same for journald's native protocol: one field a line. What an event holds cannot make another
 * field. */
int syslog_journald(struct buf *out, const struct syslog_header *h,
		    const struct export_record *rec);

#endif
