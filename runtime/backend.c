// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend.h"

#include <stdio.h>
#include <string.h>

#include "userspace/base/auto.h"

static const struct backend *const backends[] = { &backend_ns, &backend_gvisor };

const struct backend *backend_find(const char *name, struct err *err)
{
	char list[256] = "";
	size_t n = 0;

	for (size_t i = 0; name && i < ARRAY_SIZE(backends); i++)
		if (!strcmp(backends[i]->name, name))
			return backends[i];
	for (size_t i = 0; i < ARRAY_SIZE(backends) && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s (%s)", i ? ", " : "",
				      backends[i]->name, backends[i]->what);
	err_set(err, EINVAL, "backend '%.64s' does not exist; there is: %s", name ? name : "",
		list);
	return NULL;
}
