/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>
#include "userspace/base/auto.h"
#include "userspace/capture/ktypes.h"

DEFINE_AUTO(ktypes, ktypes_free)

static int id_int, id_thing, id_proto, id_func, id_typedef;

/* A copy on the heap of a small BTF that has one of each kind that the kernel's has. */
static void *small(size_t *ret_len)
{
	struct btf *btf = btf__new_empty();
	const void *raw;
	__u32 len;
	void *copy;

	id_int = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	btf__add_enum(btf, "color", 4);
	btf__add_enum_value(btf, "RED", 1);
	btf__add_enum64(btf, "wide", 8, false);
	btf__add_enum64_value(btf, "FAR", 1ull << 40);
	btf__add_array(btf, id_int, id_int, 3);
	id_thing = btf__add_struct(btf, "thing", 8);
	btf__add_field(btf, "a", id_int, 0, 0);
	btf__add_field(btf, "b", id_int, 32, 0);
	btf__add_float(btf, "float", 4);
	id_proto = btf__add_func_proto(btf, id_int);
	btf__add_func_param(btf, "data", btf__add_ptr(btf, 0));
	id_proto = btf__add_func_proto(btf, id_int);
	btf__add_func_param(btf, "x", id_int);
	id_func = btf__add_func(btf, "do_thing", BTF_FUNC_STATIC, id_proto);
	id_typedef = btf__add_typedef(btf, "do_thing_t", id_proto);
	btf__add_decl_tag(btf, "tag", id_func, -1);
	btf__add_var(btf, "counter", BTF_VAR_STATIC, id_int);
	btf__add_func(btf, "thing", BTF_FUNC_STATIC, id_proto); /* the name of a struct, too */
	raw = btf__raw_data(btf, &len);
	copy = malloc(len);
	memcpy(copy, raw, len);
	btf__free(btf);
	*ret_len = len;
	return copy;
}

static void test_names(void **state)
{
	AUTO(ktypes) struct ktypes *k = NULL;
	const struct btf_type *t;
	size_t len;
	void *data = small(&len);

	(void)state;
	assert_int_equal(ktypes_new(&k, data, len), 0);
	assert_int_equal(ktypes_func(k, "do_thing"), id_func);
	assert_int_equal(ktypes_typedef(k, "do_thing_t"), id_typedef);
	assert_true(ktypes_func(k, "thing") > id_func);
	assert_int_equal(ktypes_func(k, "do_thing_t"), -ENOENT);
	assert_int_equal(ktypes_typedef(k, "do_thing"), -ENOENT);
	assert_int_equal(ktypes_func(k, ""), -ENOENT);
	t = ktypes_type(k, (uint32_t)id_thing);
	assert_string_equal(ktypes_name(k, t), "thing");
	assert_int_equal(btf_vlen(t), 2);
	assert_int_equal(btf_vlen(ktypes_type(k, (uint32_t)id_proto)), 1);
	assert_null(ktypes_type(k, 0));
	assert_null(ktypes_type(k, 1000));
}

/* Cut anywhere, or with any byte of its head changed, it is refused or read within its bounds. */
static void test_damaged(void **state)
{
	size_t len, cut;
	void *data = small(&len);

	(void)state;
	for (cut = 0; cut < len; cut++) {
		AUTO(ktypes) struct ktypes *k = NULL;
		char *part = malloc(cut ? cut : 1);

		memcpy(part, data, cut);
		assert_int_equal(ktypes_new(&k, part, cut), -EINVAL);
		assert_null(k);
	}
	for (cut = 0; cut < len * 8; cut++) {
		AUTO(ktypes) struct ktypes *k = NULL;
		char *bad = malloc(len);

		memcpy(bad, data, len);
		bad[cut / 8] = (char)(bad[cut / 8] ^ 1 << cut % 8);
		if (ktypes_new(&k, bad, len) == 0)
			ktypes_func(k, "do_thing");
	}
	free(data);
}

/* On this host: the answers of libbpf. */
static void test_like_libbpf(void **state)
{
	static const char *const names[] = { "schedule_tail", "__x64_sys_openat",
					     "security_file_open", "no_such_function",
					     "vfs_rename" };
	AUTO(ktypes) struct ktypes *k = NULL;
	struct err err = { 0 };
	struct btf *btf;

	(void)state;
	if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
		skip();
	btf = btf__load_vmlinux_btf();
	assert_non_null(btf);
	assert_int_equal(ktypes_load(&k, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int want = btf__find_by_name_kind(btf, names[i], BTF_KIND_FUNC);
		int got = ktypes_func(k, names[i]);

		assert_int_equal(want < 0, got < 0);
		if (got >= 0)
			assert_string_equal(ktypes_name(k, ktypes_type(k, (uint32_t)got)),
					    names[i]);
	}
	assert_int_equal(
		ktypes_typedef(k, "btf_trace_sched_process_exec"),
		btf__find_by_name_kind(btf, "btf_trace_sched_process_exec", BTF_KIND_TYPEDEF));
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_like_libbpf),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
