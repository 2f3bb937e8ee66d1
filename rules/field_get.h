/* SPDX-License-Identifier: Apache-2.0 */
/* Getters behind the rows of field.c. A getter leaves v->t at V_NONE when the value is missing. */
#ifndef WARDER_RULES_FIELD_GET_H
#define WARDER_RULES_FIELD_GET_H

#include "rules/internal.h"

/* clang-format off */
#define FIELD_GETTERS(X)                                                                           \
	X(get_none) X(get_slot) X(get_ancestor_exe) X(get_answers)                                 \
	X(get_evt_type) X(get_evt_num) X(get_evt_source) X(get_evt_dir) X(get_evt_res)             \
	X(get_evt_rawres) X(get_evt_failed) X(get_open_read) X(get_open_exec) X(get_arg_flags)     \
	X(get_arg_mode) X(get_arg_request) X(get_arg_domain) X(get_arg_bpf_cmd) X(get_evt_args)    \
	X(get_argv0) X(get_args) X(get_cmdline) X(get_exeline) X(get_nargs) X(get_lenargs)         \
	X(get_pargv0) X(get_pcmdline) X(get_aname) X(get_aexepath) X(get_apid) X(get_tty)          \
	X(get_duration) X(get_cap_effective) X(get_cap_permitted) X(get_user_name)                 \
	X(get_group_name) X(get_fd_name) X(get_fd_nameraw) X(get_fd_directory) X(get_fd_filename)  \
	X(get_fd_num) X(get_fd_type) X(get_fd_typechar) X(get_fd_sockfamily) X(get_fd_ip)          \
	X(get_fd_port) X(get_fd_sip) X(get_fd_cip) X(get_fd_sport) X(get_fd_cport)                 \
	X(get_fd_connected) X(get_fd_name_changed) X(get_fd_is_server) X(get_container_id)         \
	X(get_container_name) X(get_container_type) X(get_false)
/* clang-format on */

#define FIELD_GETTER_DECL(fn) void fn(struct eval *e, const struct access *a, struct val *v);
FIELD_GETTERS(FIELD_GETTER_DECL)

/* Names of system calls that an event kind can come from, the usual one first. */
struct kind_calls {
	uint16_t kind;
	const char *const *call;
	size_t n;
};

const struct kind_calls *kind_calls_of(uint16_t kind);

static inline void val_str(struct val *v, struct str s)
{
	if (!s.p)
		return;
	v->t = V_STR;
	v->s = s;
}

static inline void val_strz(struct val *v, const char *z)
{
	val_str(v, str_from(z));
}

static inline void val_u64(struct val *v, uint64_t u)
{
	v->t = V_U64;
	v->u = u;
}

static inline void val_i64(struct val *v, int64_t i)
{
	v->t = V_I64;
	v->i = i;
}

static inline void val_list(struct val *v, const void *base, size_t n, size_t stride, enum vtype et)
{
	if (!n)
		return;
	v->t = V_LIST;
	v->list.base = base;
	v->list.n = (uint32_t)n;
	v->list.stride = (uint32_t)stride;
	v->list.et = et;
}

#endif
