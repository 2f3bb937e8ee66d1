/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
#ifndef WARDER_BPF_FAMILY_H
#define WARDER_BPF_FAMILY_H

#include "bpf/lib/sock.bpf.h"

#define NETLINK_NETFILTER 12

/* Families that code in a sandbox has no business with. */
static __always_inline bool is_escape_family(__u32 family, __u32 proto)
{
	switch (family) {
	case 15: /* KEY */
	case 17: /* PACKET */
	case 21: /* RDS */
	case 29: /* CAN */
	case 30: /* TIPC */
	case 38: /* ALG */
	case AF_VSOCK:
	case 44: /* XDP */
		return true;
	case AF_NETLINK:
		return proto == NETLINK_NETFILTER;
	}
	return false;
}

#endif
