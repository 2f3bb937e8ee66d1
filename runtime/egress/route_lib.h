/* SPDX-License-Identifier: Apache-2.0 */
/* GNU libmicrohttpd and libcurl, loaded when a route is wanted: both bring TLS libraries along that no other run needs. */
#ifndef WARDER_RUNTIME_EGRESS_ROUTE_LIB_H
#define WARDER_RUNTIME_EGRESS_ROUTE_LIB_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <microhttpd.h>

#include "userspace/base/err.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

#define ROUTE_CURL(X)               \
	X(curl_global_init)         \
	X(curl_easy_init)           \
	X(curl_easy_cleanup)        \
	X(curl_easy_setopt)         \
	X(curl_easy_getinfo)        \
	X(curl_easy_pause)          \
	X(curl_slist_append)        \
	X(curl_slist_free_all)      \
	X(curl_multi_init)          \
	X(curl_multi_cleanup)       \
	X(curl_multi_add_handle)    \
	X(curl_multi_remove_handle) \
	X(curl_multi_perform)       \
	X(curl_multi_poll)          \
	X(curl_multi_info_read)

#define ROUTE_MHD(X)                         \
	X(MHD_start_daemon)                  \
	X(MHD_stop_daemon)                   \
	X(MHD_add_connection)                \
	X(MHD_get_connection_info)           \
	X(MHD_get_connection_values)         \
	X(MHD_lookup_connection_value)       \
	X(MHD_create_response_from_callback) \
	X(MHD_create_response_from_buffer)   \
	X(MHD_add_response_header)           \
	X(MHD_queue_response)                \
	X(MHD_destroy_response)

extern struct route_lib {
#define X(name) __typeof__(name) *name;
	ROUTE_CURL(X)
	ROUTE_MHD(X)
#undef X
} route_lib;

int route_lib_load(struct err *err);

#endif
