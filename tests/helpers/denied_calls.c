// SPDX-License-Identifier: Apache-2.0
// ours: runtime
/* Calls that the payload's filter denies whatever their arguments, one JSON line each: name, number, and whether its
 * attempts are told by user notification where the probes see what is refused. */
#include <stdio.h>

#include "runtime/seccomp.h"

int main(void)
{
	const char *name;

	for (size_t i = 0; (name = seccomp_denied(i)); i++)
		if (seccomp_call(name) >= 0)
			printf("{\"name\":\"%s\",\"nr\":%d,\"notified\":%s}\n", name,
			       seccomp_call(name),
			       seccomp_is_notified(name, SECCOMP_NOTIFY_BLIND) ? "true" : "false");
	return 0;
}
