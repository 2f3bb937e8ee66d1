/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's type information (BTF, Documentation/bpf/btf.rst), looked up by name. libbpf goes through all
 * of the 130,000 types for each question, 1-3 ms each, and choosing hooks asks up to 300 of them. */
#ifndef WARDER_CAPTURE_KTYPES_H
#define WARDER_CAPTURE_KTYPES_H

#include <stddef.h>
#include <stdint.h>
#include "userspace/base/err.h"

struct btf_type;
struct ktypes;

/* Of the running kernel. */
int ktypes_load(struct ktypes **ret, struct err *err);
/* The same from `len` bytes of BTF in `data`, from malloc, which it takes over even when it fails.
 * -EINVAL: it is none, or cut, or has types that are not known. */
int ktypes_new(struct ktypes **ret, void *data, size_t len);
void ktypes_free(struct ktypes *k);

/* Id of a function or a typedef; -ENOENT. Of several with one name any. */
int ktypes_func(const struct ktypes *k, const char *name);
int ktypes_typedef(const struct ktypes *k, const char *name);

/* NULL: there is no such id (0 is void). What follows it (parameters ...) is within bounds. */
const struct btf_type *ktypes_type(const struct ktypes *k, uint32_t id);
/* "" where there is none. */
const char *ktypes_name(const struct ktypes *k, const struct btf_type *t);

#endif
