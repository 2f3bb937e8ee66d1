// SPDX-License-Identifier: Apache-2.0
/* One pass over the types for where each begins, one for the names that are asked for. */
#include "userspace/capture/ktypes.h"

#include <bpf/btf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "userspace/base/auto.h"

#define BTF_PATH     "/sys/kernel/btf/vmlinux"
#define BTF_SIZE_MAX ((size_t)64 << 20)

struct ktypes {
	char *data;
	const char *types; /* of types_len bytes */
	const char *names; /* of names_len bytes, the last one 0 */
	uint32_t types_len, names_len;
	uint32_t *at;	   /* by id: offset in `types` */
	uint32_t n;	   /* ids, 0 included */
	uint32_t *by_name; /* ids of functions and typedefs; 0 = free */
	uint32_t mask;
};

DEFINE_AUTO(ktypes, ktypes_free)

/* Bytes behind struct btf_type; -1 = a kind that is not known. */
static long tail_of(const struct btf_type *t)
{
	size_t n = btf_vlen(t);

	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return (long)(n * sizeof(struct btf_member));
	case BTF_KIND_ENUM:
		return (long)(n * sizeof(struct btf_enum));
	case BTF_KIND_ENUM64:
		return (long)(n * sizeof(struct btf_enum64));
	case BTF_KIND_FUNC_PROTO:
		return (long)(n * sizeof(struct btf_param));
	case BTF_KIND_DATASEC:
		return (long)(n * sizeof(struct btf_var_secinfo));
	}
	return -1;
}

static int find_types(struct ktypes *k)
{
	uint32_t pos = 0;

	k->at = calloc(k->types_len / sizeof(struct btf_type) + 1, sizeof(*k->at));
	if (!k->at)
		return -ENOMEM;
	k->n = 1;
	while (pos < k->types_len) {
		const struct btf_type *t = (const struct btf_type *)(k->types + pos);
		uint32_t left = k->types_len - pos;
		long tail;

		if (left < sizeof(*t))
			return -EINVAL;
		tail = tail_of(t);
		if (tail < 0 || (size_t)tail > left - sizeof(*t))
			return -EINVAL;
		k->at[k->n++] = pos;
		pos += (uint32_t)(sizeof(*t) + (size_t)tail);
	}
	return 0;
}

/* FNV-1a */
static uint32_t hash_of(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static int find_names(struct ktypes *k)
{
	uint32_t size = 64, id;

	while (size < k->n + k->n / 2)
		size *= 2;
	k->by_name = calloc(size, sizeof(*k->by_name));
	if (!k->by_name)
		return -ENOMEM;
	k->mask = size - 1;
	for (id = 1; id < k->n; id++) {
		const struct btf_type *t = ktypes_type(k, id);
		uint32_t i;

		if (btf_kind(t) != BTF_KIND_FUNC && btf_kind(t) != BTF_KIND_TYPEDEF)
			continue;
		for (i = hash_of(ktypes_name(k, t)); k->by_name[i & k->mask]; i++)
			;
		k->by_name[i & k->mask] = id;
	}
	return 0;
}

int ktypes_new(struct ktypes **ret, void *data, size_t len)
{
	AUTO(ktypes) struct ktypes *k = calloc(1, sizeof(*k));
	const struct btf_header *h = data;
	size_t room;
	int r;

	if (!k) {
		free(data);
		return -ENOMEM;
	}
	k->data = data;
	if (len < sizeof(*h) || len > BTF_SIZE_MAX || h->magic != BTF_MAGIC ||
	    h->hdr_len < sizeof(*h) || h->hdr_len > len)
		return -EINVAL;
	room = len - h->hdr_len;
	if (h->type_off > room || h->type_len > room - h->type_off || h->str_off > room ||
	    h->str_len > room - h->str_off || !h->str_len || (h->hdr_len + h->type_off) % 4)
		return -EINVAL;
	k->types = k->data + h->hdr_len + h->type_off;
	k->types_len = h->type_len;
	k->names = k->data + h->hdr_len + h->str_off;
	k->names_len = h->str_len;
	if (k->names[k->names_len - 1])
		return -EINVAL;
	r = find_types(k);
	if (r == 0)
		r = find_names(k);
	if (r < 0)
		return r;
	*ret = take_ptr(k);
	return 0;
}

int ktypes_load(struct ktypes **ret, struct err *err)
{
	auto_close int fd = open(BTF_PATH, O_RDONLY | O_CLOEXEC);
	auto_free char *data = NULL;
	struct stat st;
	size_t got = 0, size;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "kernel type information (" BTF_PATH "): %m");
	size = (size_t)st.st_size;
	data = size <= BTF_SIZE_MAX ? malloc(size + 1) : NULL;
	if (!data)
		return err_set(err, ENOMEM, "kernel type information: %zu bytes", size);
	while (got < size) {
		ssize_t n = read(fd, data + got, size - got);

		if (n < 0)
			return err_set(err, errno, "kernel type information (" BTF_PATH "): %m");
		if (n == 0)
			break;
		got += (size_t)n;
	}
	r = ktypes_new(ret, take_ptr(data), got);
	return r < 0 ? err_set(err, -r, "kernel type information (" BTF_PATH "): %s", strerror(-r))
		     : 0;
}

void ktypes_free(struct ktypes *k)
{
	if (!k)
		return;
	free(k->at);
	free(k->by_name);
	free(k->data);
	free(k);
}

static int find(const struct ktypes *k, const char *name, uint32_t kind)
{
	uint32_t i, id;

	for (i = hash_of(name); (id = k->by_name[i & k->mask]); i++) {
		const struct btf_type *t = ktypes_type(k, id);

		if (btf_kind(t) == kind && strcmp(ktypes_name(k, t), name) == 0)
			return (int)id;
	}
	return -ENOENT;
}

int ktypes_func(const struct ktypes *k, const char *name)
{
	return find(k, name, BTF_KIND_FUNC);
}

int ktypes_typedef(const struct ktypes *k, const char *name)
{
	return find(k, name, BTF_KIND_TYPEDEF);
}

const struct btf_type *ktypes_type(const struct ktypes *k, uint32_t id)
{
	return id && id < k->n ? (const struct btf_type *)(k->types + k->at[id]) : NULL;
}

const char *ktypes_name(const struct ktypes *k, const struct btf_type *t)
{
	return t->name_off < k->names_len ? k->names + t->name_off : "";
}
