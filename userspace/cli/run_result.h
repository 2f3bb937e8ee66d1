/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, as one JSON object in a file (warder run --result). */
#ifndef WARDER_CLI_RUN_RESULT_H
#define WARDER_CLI_RUN_RESULT_H

#include "runtime/sandbox.h"
#include "userspace/pipeline/run.h"

struct run_result_file {
	int dirfd;	  /* -1 = written in place */
	int fd;		  /* -1 = made at the end and renamed to its name */
	const char *name; /* in dirfd; borrowed from the path */
};

#define RUN_RESULT_FILE_INIT          \
	{                             \
		.dirfd = -1, .fd = -1 \
	}

/* Before the sandbox starts. A file of an earlier run is removed: until it is there again, nothing has
 * ended. Pipes, devices and symbolic links (/dev/stdout) are written in place. -EPERM where the sandbox
 * could write and so forge it. */
int run_result_open(struct run_result_file *ret, const char *path, const struct sandbox_spec *spec,
		    struct err *err);
/* Whole or not at all. Does nothing for a file that was not opened. `error` may be NULL. -errno. */
int run_result_write(struct run_result_file *f, const struct run_result *res, const char *reason,
		     int code, const char *error);
void run_result_done(struct run_result_file *f);

#endif
