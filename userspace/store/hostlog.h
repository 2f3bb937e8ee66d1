/* SPDX-License-Identifier: Apache-2.0 */
/* The host log: what was recorded on this host, who looked at it, who judged it, what was deleted. One
 * JSON object a line, each bound to the one before by SHA-256 and, when the host has a key, signed by it
 * (FORMAT.md section 11). A session that disappears, or is put back to an older state, shows here. */
#ifndef WARDER_STORE_HOSTLOG_H
#define WARDER_STORE_HOSTLOG_H

#include <stdbool.h>
#include <stdint.h>
#include "userspace/base/err.h"
#include "userspace/base/str.h"
#include "userspace/store/keys.h"

#define HOSTLOG_NAME	 "host.log"
#define HOSTLOG_LINE_MAX (32 * 1024) /* newline included */
#define HOSTLOG_DATA_MAX (16 * 1024)

struct hostlog_entry {
	const char *kind;    /* start session review hold release prune access recovered */
	const char *session; /* NULL = none */
	struct str data;     /* a JSON object; empty = none */
};

/* Append one, durably, creating the log when it is the first. Who did it is taken from the process (user
 * ids, login id, sudo). `keys_dirfd` -1: not signed. A last line torn by a power cut is closed and told by
 * a "recovered" entry. -EBADMSG: the log's end is none of ours; nothing was written. */
int hostlog_append(int dirfd, const struct hostlog_entry *e, int keys_dirfd, struct err *err);

struct hostlog_line {
	uint64_t n;				   /* from 1 */
	struct str time, kind, session, who, data; /* as JSON values without their quotes */
	bool is_signed;
	struct str text; /* all of it */
};

struct hostlog_report {
	uint64_t entries, is_signed, torn;
	bool good;
	char head[2 * STORE_HASH_LEN + 1];
	char text[256]; /* one sentence: what is wrong and in which line */
};

/* Return other than 0 to stop. */
typedef int (*hostlog_fn)(void *arg, const struct hostlog_line *l);

/* Walk over the log, checking; `fn` may be NULL and is called for good entries only. Bounded memory. -ENOENT:
 * no log. A damaged log is no error: ret->good is false. With keys every signature must be by one of them, and the
 * last entry must be signed: what is before it is covered by the chain. */
int hostlog_walk(int dirfd, const struct verify_options *opt, hostlog_fn fn, void *arg,
		 struct hostlog_report *ret, struct err *err);

#endif
