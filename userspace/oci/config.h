/* SPDX-License-Identifier: Apache-2.0 */
/* What a container tool asks of an OCI runtime: config.json of a bundle (runtime-spec 1.0 to 1.2, config.md and
 * config-linux.md), as far as a sandbox can be that. Hostile input. What would weaken a sandbox, or what it cannot do
 * and somebody may rely on, is an error that names it; what a sandbox takes away anyway is a note. */
#ifndef WARDER_OCI_CONFIG_H
#define WARDER_OCI_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "runtime/sandbox.h"
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"
#include "userspace/base/err.h"
#include "userspace/base/str.h"

#define OCI_CONFIG_BYTES    (4u << 20)
#define OCI_CONFIG_MEM	    (96u << 20) /* of what it is parsed into */
#define OCI_ARGS_MAX	    1024
#define OCI_NOTES_MAX	    48
#define OCI_ANNOTATIONS_MAX 256
#define OCI_WORDS_MAX	    64
#define OCI_VERSION	    "1.0.2"
#define OCI_ROWS	    24 /* of a terminal whose size nobody says */
#define OCI_COLS	    80

struct oci_process {
	char **argv; /* NULL-terminated */
	size_t argc;
	const char *env[SANDBOX_ENV_MAX];
	size_t env_n;
	const char *cwd;
	uint32_t uid, gid, umask;
	bool terminal;
	uint16_t rows, cols;
};

enum oci_net { OCI_NET_NONE, OCI_NET_GIVEN, OCI_NET_HOST };

struct oci_config {
	struct oci_process process;
	const char *root; /* absolute, or of the bundle */
	struct sandbox_container container;
	struct sandbox_bind binds[SANDBOX_MOUNTS_MAX];
	size_t binds_n;
	uint64_t memory, pids, cpu_milli; /* 0: nothing is said */
	uint64_t nofile;
	enum oci_net net;
	struct str seccomp; /* JSON; empty */
	struct {
		const char *key, *value;
	} annotations[OCI_ANNOTATIONS_MAX];
	size_t annotations_n;
	const char *words[OCI_WORDS_MAX]; /* options of `warder run`, by annotations "warder.*" */
	size_t words_n;
	const char *
		notes[OCI_NOTES_MAX]; /* what is not as it was asked for, and why that is no harm */
	size_t notes_n;
};

/* Strings live in `mem`, or are part of `text`. -EBADMSG, -EOPNOTSUPP, ...: "name:line:col: message". */
int oci_config_parse(struct oci_config *ret, struct arena *mem, const char *name, struct str text,
		     struct err *err);
/* process.json of `exec`. */
int oci_process_parse(struct oci_process *ret, struct arena *mem, const char *name, struct str text,
		      struct err *err);
/* Container ids, as podman, containerd and the like make them: [A-Za-z0-9_+.-], not "." first, at most 128. */
bool oci_id_is_good(const char *id);
/* Is it a file that a tool writes for the container to read (/etc/hosts)? */
bool oci_is_told(const char *target);
/* "SIGTERM", "TERM", "15"; 0: none. */
int oci_signal(const char *word);

#endif
