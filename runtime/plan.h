/* SPDX-License-Identifier: Apache-2.0 */
/* Everything decided before anything is done. A plan is data: a list of steps that build the root,
 * limits, ids and filters. Applying it takes no decisions of its own. */
#ifndef WARDER_RUNTIME_PLAN_H
#define WARDER_RUNTIME_PLAN_H

#include <sys/stat.h>

#include "runtime/egress/policy.h"
#include "runtime/host.h"
#include "runtime/sandbox.h"
#include "runtime/seccomp.h"
#include "userspace/base/arena.h"
#include "userspace/base/buf.h"

#define PLAN_ROOT_MAX	  256
#define PLAN_DEGRADED_MAX 24
#define PLAN_ARGS_MAX	  (1u << 21) /* bytes of argv and environment together */
#define PLAN_ARGC_MAX	  65536

#define PLAN_COPY_MAX 16384 /* a larger file is bound: a mount costs as much as copying this */

#define PLAN_INNER_ID  1000 /* uid and gid of the payload as it sees itself, unless told */
#define PLAN_INNER_MAX 65535
#define PLAN_HOST_IDS  0x70000000u /* block of host ids that no account may use */
#define PLAN_HOST_MASK 0x0fffffffu

enum root_kind {
	ROOT_DIR,     /* directory in the root tmpfs */
	ROOT_LINK,    /* symbolic link to `source` */
	ROOT_FILE,    /* file with the text `source` */
	ROOT_COPY,    /* file with what the host's small file `source` holds */
	ROOT_BIND,    /* host path `source` */
	ROOT_TMPFS,   /* file system of its own, `size` bytes */
	ROOT_SCRATCH, /* directory `source` of the shared scratch file system */
	ROOT_DEV,     /* the directory of device nodes, a mount of its own */
	ROOT_DEVICE,  /* character device dev_major:dev_minor */
	ROOT_PROC,
	ROOT_PROC_MASK, /* hide a file or directory of /proc */
	ROOT_PROC_RO,	/* make a directory of /proc read-only */
	ROOT_DEVPTS,
	ROOT_IMAGE, /* the first step, if at all: `source` is the lower layer of an overlay that is the root */
	ROOT_SECRETS, /* the file system of the secrets */
	ROOT_KIND_COUNT
};

extern const char *const root_kind_names[ROOT_KIND_COUNT];

struct root_op {
	enum root_kind kind;
	const char *target; /* absolute path inside */
	const char *source;
	uint64_t size;
	uint32_t mode;
	uint32_t dev_major, dev_minor;
	bool is_dir;	/* ROOT_BIND: what the source was when the plan was made */
	bool writable;	/* Landlock lets the payload write below */
	bool exec;	/* programs may be started from here */
	bool ids;	/* ROOT_BIND: id-mapped, so that its owner's files are the payload's */
	bool foreign;	/* the operator's: paths may be hostile */
	bool optional;	/* absent at apply time is no error */
	uint32_t owner; /* ids: owner of the source on disk */
	uint32_t group;
};

struct backend;
struct seccomp_profile;

struct sandbox_plan {
	struct arena mem;
	struct host host;
	const struct backend *backend;
	const char *session, *name, *tenant, *hostname, *cwd;
	const char *platform;		 /* of gVisor; NULL */
	const char *image;		 /* digest; NULL */
	struct seccomp_profile *seccomp; /* the operator's; NULL */
	/* Of its refusals, where the hooks see the others (sandbox_notify). */
	enum seccomp_notify notify;
	uint32_t uid, gid; /* as the payload sees itself */
	char **argv;
	size_t argc;
	char **env;
	size_t env_n;
	enum sandbox_net net;
	const struct sandbox_container *container; /* borrowed; NULL */
	struct egress_policy *egress;		   /* NULL: no way out is needed */
	struct sandbox_limits limits;
	bool tty, serve;
	uint16_t tty_rows, tty_cols;
	bool userns;
	bool deny_suid; /* writable host directories: no setuid bits from inside */
	struct root_op root[PLAN_ROOT_MAX];
	size_t root_n;
	struct sandbox_secret secrets[SANDBOX_SECRETS_MAX];
	size_t secrets_n;
	const char *degraded[PLAN_DEGRADED_MAX];
	size_t degraded_n;
	char hash[65];
};

/* sandbox_plan_new with a host handed in. */
int plan_build(struct sandbox_plan **ret, const struct sandbox_spec *spec, const struct host *host,
	       struct err *err);

/* plan_root.c: the steps that build the root, in order. */
int plan_root(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err);
/* Parts of it: mount points; host name, hosts, resolver. */
int plan_root_points(struct sandbox_plan *p, struct err *err);
int plan_root_names(struct sandbox_plan *p, struct err *err);
/* plan_image.c: the same where the root is an image or a directory. */
int plan_image(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err);
/* plan_bind.c: is it nothing of the host that must never be shared? */
int plan_check_source(const struct sandbox_plan *p, const char *asked, const char *real,
		      struct stat *st, struct err *err);
/* plan_bind.c: the operator's own --ro and --rw. */
int plan_binds(struct sandbox_plan *p, const struct sandbox_spec *spec, struct err *err);
/* Do the root's files belong to the payload? */
bool plan_root_is_payloads(const struct sandbox_plan *p);
/* Next free row of p->root, zeroed; NULL when PLAN_ROOT_MAX is reached. */
struct root_op *plan_root_add(struct sandbox_plan *p, enum root_kind kind, const char *target,
			      const char *source);
void plan_degrade(struct sandbox_plan *p, const char *name);
/* Is it an absolute path without "", "." and ".." components, and not "/"? */
bool plan_path_is_clean(const char *path);
/* plan_bind.c: one host path, resolved and checked, bound at `target`. */
int plan_bind(struct sandbox_plan *p, const char *source, const char *target, bool writable,
	      struct err *err);

/* plan_print.c */
int plan_json(const struct sandbox_plan *p, bool with_session, struct buf *out);
int plan_hash(struct sandbox_plan *p);

#endif
