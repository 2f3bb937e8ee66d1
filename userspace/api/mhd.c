// SPDX-License-Identifier: Apache-2.0
#include "userspace/api/mhd.h"

#include <dlfcn.h>

struct mhd mhd;

int mhd_load(struct err *err)
{
	void *so = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);

	if (!so)
		return err_set(err, ENOTSUP, "HTTP needs libmicrohttpd: %s", dlerror());
#define X(name)                                          \
	mhd.name = (__typeof__(name) *)dlsym(so, #name); \
	if (!mhd.name)                                   \
		return err_set(err, ENOTSUP, "libmicrohttpd lacks %s", #name);
	MHD_FUNCTIONS(X)
#undef X
	return 0;
}
