// SPDX-License-Identifier: Apache-2.0
/* Of what the filter denies, which calls are told by user notification. What a hook of the kernel looks at is left to
 * it: there is one event for each attempt. */
#include <string.h>

#include "runtime/seccomp.h"
#include "userspace/base/auto.h"

/* Calls that a hook looks at, whatever their result. */
static const short hooked[] = {
#define CALL(name, nr, ...)   nr,
#define CALL64(name, nr, ...) nr,
#include "bpf/abi/calls.def.h"
};

static bool is_hooked(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(hooked); i++)
		if (hooked[i] == nr)
			return true;
	return false;
}

/* Of one that is denied. */
static bool is_told(const char *name, enum seccomp_notify how)
{
	int nr = seccomp_call(name);

	/* clone3's answer is another one: ENOSYS, by the filter. */
	return how != SECCOMP_NOTIFY_NONE && nr >= 0 && strcmp(name, "clone3") != 0 &&
	       (how >= SECCOMP_NOTIFY_CALLS || !is_hooked(nr));
}

bool seccomp_is_notified(const char *name, enum seccomp_notify how)
{
	return seccomp_is_denied(name) && is_told(name, how);
}

void seccomp_notified_each(enum seccomp_notify how, void (*fn)(void *arg, const char *name),
			   void *arg)
{
	enum seccomp_notify from;
	const char *name;

	for (size_t i = 0; (name = seccomp_denied(i)); i++)
		if (is_told(name, how))
			fn(arg, name);
	for (size_t i = 0; (name = seccomp_by_argument(i, &from)); i++)
		if (how >= from)
			fn(arg, name);
}
