/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the DNS registries (IANA); NULL when a number has none. */
#ifndef WARDER_EVENT_DNS_NAMES_H
#define WARDER_EVENT_DNS_NAMES_H

const char *dns_type_name(unsigned type);
const char *dns_rcode_name(unsigned rcode);

#endif
