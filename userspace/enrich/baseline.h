/* SPDX-License-Identifier: Apache-2.0 */
/* What is usual: programs that ran, places each opened files in, and where each connected to, learned from
 * sessions that somebody approved. A file of lines that people can read, compare and edit:
 *
 *   exec<TAB>/usr/bin/git
 *   open<TAB>/usr/bin/git<TAB>/workspace/.git/      with / at the end: all below it
 *   connect<TAB>/usr/bin/git<TAB>github.com:443     the name that was looked up, else the address
 *
 * Lines with # are comments; \xHH stands for bytes that would break a line. */
#ifndef WARDER_ENRICH_BASELINE_H
#define WARDER_ENRICH_BASELINE_H

#include "userspace/base/buf.h"
#include "userspace/event/event.h"

#define BASELINE_ENTRIES_MAX 262144
#define BASELINE_FILE_MAX    ((size_t)64 << 20)
#define BASELINE_LINE_MAX    8192
#define BASELINE_FILES_MAX \
	16 /* different entries of one directory: more of them become the directory */

struct baseline;

int baseline_new(struct baseline **ret);
void baseline_free(struct baseline *b);
/* Take what the event shows to be usual. Call baseline_finish before anything else. -E2BIG. */
int baseline_learn(struct baseline *b, const struct event *ev, struct err *err);
/* Many files of a directory become the directory; never of /etc and the like. */
int baseline_finish(struct baseline *b);
size_t baseline_count(const struct baseline *b);
int baseline_write(const struct baseline *b, struct buf *out);
/* A file as baseline_write writes it. -EINVAL with "name:line:col: message". */
int baseline_read(struct baseline **ret, const char *name, struct str text, struct err *err);
/* baseline.new of an exec, open or connect: is it none of these? Nothing for other events. */
void baseline_apply(const struct baseline *b, struct event *ev);

#endif
