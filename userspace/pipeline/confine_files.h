/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the processes that read hostile bytes: what is named, and nothing else of the file system, whoever owns it.
 * Two sessions have one user; this is what keeps one's engine from the other's record. */
#ifndef WARDER_PIPELINE_CONFINE_FILES_H
#define WARDER_PIPELINE_CONFINE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include "exporters/exporter.h"
#include "userspace/base/err.h"

struct confine_place {
	int fd;		  /* a directory's, with all below; -1: not there */
	const char *path; /* when there is no descriptor; one that does not exist is left out */
	bool writes;
};

struct confine_files {
	int set; /* -1: the kernel has no Landlock */
	int abi;
};

/* Nothing may be opened by who is under it, what is open stays so; nor may it signal others or trace them. */
int confine_files_begin(struct confine_files *ret, struct err *err);
int confine_files_add(struct confine_files *c, const struct confine_place *v, size_t n,
		      struct err *err);
/* What libraries look for, for all to read. */
int confine_files_add_libraries(struct confine_files *c, struct err *err);
/* What a sink's settings name: where it writes, what it reads. */
int confine_files_add_sink(struct confine_files *c, const struct exporter_config *cfg,
			   struct err *err);
/* From here on, for this thread and those that it makes. */
int confine_files_end(struct confine_files *c, struct err *err);
/* All of it: these places and no others. */
int confine_files_only(const struct confine_place *v, size_t n, struct err *err);

#endif
