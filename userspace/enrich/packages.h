/* SPDX-License-Identifier: Apache-2.0 */
/* Installs of packages, told from two kinds of events: the command line of a package manager says what was
 * asked for (names, versions, where from), the files it writes say what came. Neither is proof: a command
 * can fail, and anybody can write such files. What cannot be told has no field. */
#ifndef WARDER_ENRICH_PACKAGES_H
#define WARDER_ENRICH_PACKAGES_H

#include "userspace/event/event.h"

#define PACKAGES_MAX 64 /* packages of one command; what is beyond is counted in `more` */
#define PACKAGES_SEEN \
	2048 /* remembered, so that one is told once a session; then it may be told again */

/* What was told already, of one session. All zero at first. */
struct packages_seen {
	uint64_t v[PACKAGES_SEEN];
};

struct package {
	const char *manager; /* pip npm apt deb apk rpm cargo gem go ... */
	struct str name;
	struct str version;  /* as asked for, or as the path says */
	struct str registry; /* other than the usual one: URL or path, from the command line */
	struct str url;	     /* installed from there, not by name from a registry */
	struct str hash;     /* "sha256:..." where the command line has one */
	bool from_files;     /* else from the command line */
};

struct packages {
	struct package v[PACKAGES_MAX];
	size_t n, more;
};

/* What `ev` tells, without what was told already. Strings are the event's or its arena's. */
void packages_find(struct packages *ret, struct packages_seen *seen, const struct event *ev);
/* Fills the package.install event of `p`; the rest was copied from the event that told. */
void package_event(struct event *ev, const struct package *p);

#endif
