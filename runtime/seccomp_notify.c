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

/* Denied by an argument: from which on they are notified. */
static const struct {
	const char *text;
	enum seccomp_notify from;
} by_argument[] = {
	{ "clone(CLONE_NEW*)", SECCOMP_NOTIFY_CALLS },
	{ "personality(PERSONA)", SECCOMP_NOTIFY_CALLS },
	{ "socket(FAMILY)", SECCOMP_NOTIFY_ALL },
	{ "socketpair(FAMILY)", SECCOMP_NOTIFY_ALL },
	{ "ioctl(TIOCSTI)", SECCOMP_NOTIFY_BLIND }, /* no hook looks at ioctl */
	{ "ioctl(TIOCLINUX)", SECCOMP_NOTIFY_BLIND },
};

static bool is_hooked(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(hooked); i++)
		if (hooked[i] == nr)
			return true;
	return false;
}

bool seccomp_is_notified(const char *name, enum seccomp_notify how)
{
	int nr = seccomp_call(name);

	/* clone3's answer is another one: ENOSYS, by the filter. */
	return how != SECCOMP_NOTIFY_NONE && nr >= 0 && seccomp_is_denied(name) &&
	       strcmp(name, "clone3") != 0 && (how >= SECCOMP_NOTIFY_CALLS || !is_hooked(nr));
}

const char *seccomp_notified(size_t i, enum seccomp_notify how)
{
	const char *name;

	for (size_t k = 0; (name = seccomp_denied(k)); k++)
		if (seccomp_is_notified(name, how) && !i--)
			return name;
	for (size_t k = 0; k < ARRAY_SIZE(by_argument); k++)
		if (how >= by_argument[k].from && !i--)
			return by_argument[k].text;
	return NULL;
}
