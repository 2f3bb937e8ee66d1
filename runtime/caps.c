// SPDX-License-Identifier: Apache-2.0
#include "runtime/setup.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

#include "runtime/sys.h"

#define CAP_NUMBERS 64 /* the kernel says EINVAL behind the last one it knows */

/* uid 0 means nothing, changing ids changes no capability, and both stay so. */
#define BITS                                                                                     \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                         \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

int setup_caps_bound(struct setup *s)
{
	setup_at(s, "PR_CAPBSET_DROP");
	for (int cap = 0; cap < CAP_NUMBERS; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_SETFCAP)
			break;
		return -errno;
	}
	setup_at(s, "PR_CAP_AMBIENT");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	setup_at(s, "PR_SET_SECUREBITS");
	return prctl(PR_SET_SECUREBITS, BITS, 0, 0, 0) < 0 ? -errno : 0;
}

int setup_caps_drop(struct setup *s)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	setup_at(s, "capset");
	return syscall(SYS_capset, &head, none) < 0 ? -errno : 0;
}
