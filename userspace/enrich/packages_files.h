/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WARDER_ENRICH_PACKAGES_FILES_H
#define WARDER_ENRICH_PACKAGES_FILES_H

#include "userspace/enrich/packages.h"

/* Adds what was not told yet. */
void packages_add(struct packages *ret, struct packages_seen *seen, const struct package *p);
void packages_from_files(struct packages *ret, struct packages_seen *seen, const struct event *ev);

#endif
