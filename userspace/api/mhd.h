/* SPDX-License-Identifier: Apache-2.0 */
/* GNU libmicrohttpd, loaded when the front starts: it brings a TLS library along that no other command needs. */
#ifndef WARDER_API_MHD_H
#define WARDER_API_MHD_H

#include <microhttpd.h>
#include "userspace/base/err.h"

#define MHD_FUNCTIONS(X)                     \
	X(MHD_start_daemon)                  \
	X(MHD_stop_daemon)                   \
	X(MHD_add_connection)                \
	X(MHD_create_response_from_buffer)   \
	X(MHD_create_response_from_callback) \
	X(MHD_add_response_header)           \
	X(MHD_queue_response)                \
	X(MHD_destroy_response)              \
	X(MHD_get_connection_info)           \
	X(MHD_get_connection_values)         \
	X(MHD_lookup_connection_value)

struct mhd {
#define X(name) __typeof__(name) *name;
	MHD_FUNCTIONS(X)
#undef X
};

extern struct mhd mhd;

/* Before the process drops what it could read a file with. -ENOTSUP: not installed. */
int mhd_load(struct err *err);

#endif
