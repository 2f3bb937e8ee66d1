/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel decides by itself: entries that deny or kill, compiled to the maps of
 * bpf/lib/enforce.bpf.h. A set belongs to one or more sandboxes (sandbox_cfg.enforce).
 *
 * Which entry decides: of one sort (path, address), for each kind the most specific one: the longest
 * prefix, then the smallest range of ports, then the stricter verdict; so ENFORCE_PASS makes an
 * exception in a wider entry. Between sorts the strictest answer counts.
 *
 * What an entry can do depends on the tier, the family "prevent" tells (capture_families). In the portable one
 * ENFORCE_DENY works for net.connect and net.send, for raw sockets (escape socket_family), device nodes
 * (device, mknod) and sysctls (kernel_file); ENFORCE_KILL for all, before the call returns. In the full
 * one (family "prevent") it works for files by path, kind and executable, and for exec, too. */
#ifndef WARDER_CAPTURE_ENFORCE_H
#define WARDER_CAPTURE_ENFORCE_H

#include "userspace/capture/capture.h"
#include "userspace/event/enforce_entry.h"

/* ---- compiled form, for the maps; no kernel needed ---- */

struct enforce_path_row {
	struct enforce_path_key key;
	struct enforce_rules rules;
};

struct enforce_exe_row {
	struct enforce_exe_key key;
	struct enforce_rules rules;
};

struct enforce_addr_row {
	bool v6;
	struct enforce_addr6_key key; /* IPv4: the first 4 bytes of addr */
	struct enforce_rules rules;
};

struct enforce_tables {
	struct enforce_set set;
	struct enforce_path_row *paths;
	struct enforce_exe_row *exes;
	struct enforce_addr_row *addrs;
	size_t paths_n, exes_n, addrs_n;
};

struct enforce_name_row {
	struct enforce_path_key key;
	struct enforce_class class;
};

/* The entries of one class. -EINVAL, -E2BIG: err names the entry and what is wrong with it. `keys` goes into all
 * keys. */
int enforce_compile(struct enforce_tables *ret, uint32_t keys, unsigned int class,
		    const struct enforce_entry *v, size_t n, struct err *err);
void enforce_tables_done(struct enforce_tables *t);
/* Which paths make which class: row[class] is its row. -EINVAL also when a path would be of no class. None at all is
 * fine. */
int enforce_compile_names(struct enforce_name_row **ret, size_t *ret_n, uint32_t names,
			  const uint32_t *row, size_t classes, const struct enforce_entry *v,
			  size_t n, struct err *err);

/* ---- the kernel's maps; root only ---- */

/* Make `n` entries the whole of set `set` (1 to ENFORCE_SETS_MAX). Sandboxes that use it change over at
 * once; on failure the old entries stay. */
int capture_enforce_load(struct capture *c, uint32_t set, const struct enforce_entry *v, size_t n,
			 struct err *err);
int capture_enforce_clear(struct capture *c, uint32_t set);

#endif
