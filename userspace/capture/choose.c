/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that only some kernels can have: a tracepoint that came, went or changed its arguments. The
 * prototype in the kernel's type information decides. Trying to load would not do: a program that
 * takes a number where the kernel passes a task loads well and reads garbage. */
#include <bpf/btf.h>
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/ktypes.h"
#include "warder.skel.h"

static const struct {
	const char *prog;
	const char *tracepoint;
	int arg;	  /* 1 = first */
	const char *type; /* struct it points to; NULL = not told; "" = it is a number */
} needs[] = {
	{ "on_oom", "mark_victim", 1, "task_struct" },
	{ "on_uring_req", "io_uring_submit_req", 1, "io_kiocb" },
	{ "on_uring_sqe", "io_uring_submit_sqe", 1, "io_kiocb" },
	{ "on_uring_done", "io_uring_complete", 2, NULL },
	{ "on_accept_req", "io_uring_submit_req", 1, "io_kiocb" },
	{ "on_accept_sqe", "io_uring_submit_sqe", 1, "io_kiocb" },
	{ "on_passed_get", "io_uring_file_get", 1, "io_kiocb" },
	{ "on_passed_req", "io_uring_submit_req", 1, "io_kiocb" },
	{ "on_passed_sqe", "io_uring_submit_sqe", 1, "io_kiocb" },
	{ "on_uring_cqe", "io_uring_complete", 3, "io_uring_cqe" },
	{ "on_uring_res", "io_uring_complete", 5, "" }, /* flags: there is no third pointer */
};

/* Does argument `arg` of the tracepoint point to `struct type`, or for an empty one is it a number? */
static bool passes(const struct ktypes *types, const char *tracepoint, int arg, const char *type)
{
	const struct btf_type *t;
	char name[64];
	int id;

	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = ktypes_typedef(types, name);
	if (id < 0)
		return false;
	t = ktypes_type(types, ktypes_type(types, (uint32_t)id)->type);
	if (!t || !btf_is_ptr(t))
		return false;
	t = ktypes_type(types, t->type);
	/* The first parameter is the tracepoint's own data. */
	if (!t || !btf_is_func_proto(t) || btf_vlen(t) <= arg)
		return false;
	t = ktypes_type(types, btf_params(t)[arg].type);
	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = ktypes_type(types, t->type);
	if (type && !*type)
		return t && btf_is_int(t);
	if (!t || !btf_is_ptr(t))
		return false;
	if (!type)
		return true;
	t = ktypes_type(types, t->type);
	while (t && btf_is_mod(t))
		t = ktypes_type(types, t->type);
	return t && btf_is_struct(t) && strcmp(ktypes_name(types, t), type) == 0;
}

void choose_programs(const struct ktypes *types, struct bpf_object *obj)
{
	struct bpf_program *p;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		p = bpf_object__find_program_by_name(obj, needs[i].prog);
		if (p && !passes(types, needs[i].tracepoint, needs[i].arg, needs[i].type))
			bpf_program__set_autoload(p, false);
	}
}
