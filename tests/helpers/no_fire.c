// SPDX-License-Identifier: Apache-2.0
// libs: -shared -fPIC -ldl
/* For LD_PRELOAD: a BPF program that $NO_FIRE names (several: with commas) loads, is attached without an error and never fires, as a hook does
 * that the kernel never calls. For links made by bpf_program__attach, for those of a cgroup
 * (bpf_link_create), and for handlers in a table of programs (bpf_map_update_elem). */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "userspace/base/auto.h"

static bool is_victim(int prog_fd)
{
	struct bpf_prog_info info = { 0 };
	__u32 len = sizeof(info);
	const char *name = getenv("NO_FIRE");
	size_t n;

	if (!name || bpf_obj_get_info_by_fd(prog_fd, &info, &len) != 0)
		return false;
	for (; *name; name += n + (name[n] == ',')) {
		n = strcspn(name, ",");
		/* The kernel keeps 15 bytes of a name. */
		if (strncmp(info.name, name, MIN(n, sizeof(info.name) - 1)) == 0 &&
		    strlen(info.name) == MIN(n, sizeof(info.name) - 1))
			return true;
	}
	return false;
}

/* The link ends with its descriptor; its owner still has one to close. */
static void cut(int fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null < 0 || dup3(null, fd, O_CLOEXEC) < 0)
		_exit(99); /* a test that breaks nothing proves nothing */
	close(null);
}

struct bpf_link *bpf_program__attach(const struct bpf_program *p)
{
	struct bpf_link *(*real)(const struct bpf_program *) = dlsym(RTLD_NEXT, __func__);
	struct bpf_link *l = real(p);

	if (l && is_victim(bpf_program__fd(p)))
		cut(bpf_link__fd(l));
	return l;
}

int bpf_link_create(int prog_fd, int target_fd, enum bpf_attach_type type,
		    const struct bpf_link_create_opts *opts)
{
	int (*real)(int, int, enum bpf_attach_type, const struct bpf_link_create_opts *) =
		dlsym(RTLD_NEXT, __func__);
	int fd = real(prog_fd, target_fd, type, opts);

	if (fd >= 0 && is_victim(prog_fd))
		cut(fd);
	return fd;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	int (*real)(int, const void *, const void *, __u64) = dlsym(RTLD_NEXT, __func__);
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int prog;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) == 0 && info.type == BPF_MAP_TYPE_PROG_ARRAY) {
		memcpy(&prog, value, sizeof(prog));
		if (is_victim(prog))
			return 0;
	}
	return real(fd, key, value, flags);
}
