// SPDX-License-Identifier: Apache-2.0
#include "runtime/egress/route_lib.h"

#include <dlfcn.h>
#include <errno.h>

struct route_lib route_lib;

static void *open_one(const char *name, struct err *err)
{
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!so)
		err_set(err, ENOTSUP, "network: routes need %s: %s", name, dlerror());
	return so;
}

int route_lib_load(struct err *err)
{
	void *curl = open_one("libcurl.so.4", err),
	     *mhd = curl ? open_one("libmicrohttpd.so.12", err) : NULL;

	if (!mhd)
		return -ENOTSUP;
#define X(name)                                                                        \
	route_lib.name = (__typeof__(name) *)dlsym(*#name == 'M' ? mhd : curl, #name); \
	if (!route_lib.name)                                                           \
		return err_set(err, ENOTSUP, "network: routes need %s, which is not there", #name);
	ROUTE_CURL(X)
	ROUTE_MHD(X)
#undef X
	if (route_lib.curl_global_init(CURL_GLOBAL_ALL))
		return err_set(err, EIO, "network: libcurl does not start");
	return 0;
}
