/* SPDX-License-Identifier: Apache-2.0 */
/* Building a root by descriptor: used by the set-up task, and by the template that most of a root can
 * be copied from. Everything returns -errno. */
#ifndef WARDER_RUNTIME_MOUNT_H
#define WARDER_RUNTIME_MOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct setup;
struct root_op;

/* A file system of its own, detached. `opts`: name and value pairs. */
int mount_fs(const char *type, const char *const (*opts)[2], size_t n, unsigned attrs);
int mount_tmpfs(uint64_t bytes, unsigned attrs);
/* Missing directories may be made in this file system. */
void mount_is_ours(struct setup *s, int fd);
/* Makes `path` (absolute inside) as a directory or an empty file; there already is fine. */
int mount_point(struct setup *s, const char *path, bool dir, mode_t mode);
/* Makes the directory that holds `path`. */
int mount_parent(struct setup *s, const char *path);
/* Hangs the mount `fd` at the target of `op`. Closes nothing. */
int mount_attach(struct setup *s, int fd, const struct root_op *op, bool dir);

/* s->scratch: what lasts as long as the sandbox, and the masks of /proc, hung at the target of `at`; mount.c */
int mount_scratch(struct setup *s, const struct root_op *at);
/* Where `path` is made: in the root, or /dev before that is hung into the root. */
int mount_base(const struct setup *s, const char *path);

/* mount_image.c: the layers, and s->root becomes the upper one; then the overlay of both as s->root. */
int mount_image_below(struct setup *s);
int mount_image_join(struct setup *s);
/* With an image, is the step one for the upper layer, before they are joined? */
bool mount_is_first(const struct setup *s, const struct root_op *op);

/* mount_proc.c */
int mount_proc(struct setup *s, const struct root_op *op, size_t i);
int mount_proc_mask(struct setup *s, const struct root_op *op, size_t i);
int mount_proc_ro(struct setup *s, const struct root_op *op, size_t i);

/* The same for every sandbox with the same plan of it: can come from a template. */
bool root_op_is_shared(const struct root_op *op);
/* One step of the root. */
int mount_op(struct setup *s, const struct root_op *op, size_t i);
/* A tmpfs over the old root of this mount namespace: s->root. */
int mount_root(struct setup *s);
/* An empty root in place of the old one, the shared steps applied, read-only, the old one gone. For a
 * template: s->plan and s->root only are used. */
int root_template(struct setup *s);

#endif
