/* SPDX-License-Identifier: Apache-2.0 */
/* The server name that a TLS client asks for (RFC 8446 4.1.2, 6066 3), without ending its TLS. */
#ifndef WARDER_RUNTIME_EGRESS_TLS_H
#define WARDER_RUNTIME_EGRESS_TLS_H

#include "runtime/egress/policy.h"

#define EGRESS_HELLO_MAX 16384 /* bytes of the connection that a ClientHello may take */

/* The beginning of what a client sent. 0: it asks for ret[], lower case. -EAGAIN: not all is there. -EBADMSG: *why
 * is "tls" (no ClientHello), "no_sni", or "ech" (the true name is encrypted). */
int egress_tls_name(const uint8_t *p, size_t n, char ret[EGRESS_NAME_MAX + 1], const char **why);

#endif
