// SPDX-License-Identifier: Apache-2.0
/* Metadata services: whoever reaches one may get the machine's own credentials. From the clouds' public
 * documentation. */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>
#include "userspace/base/auto.h"
#include "userspace/capture/internal.h"
#include "userspace/capture/metadata.h"

static const char *const addresses[] = {
	"169.254.169.254", /* AWS, Azure, GCP, OpenStack, Oracle, DigitalOcean, ... */
	"169.254.170.2",   /* AWS: credentials of an ECS task */
	"169.254.170.23",  /* AWS: EKS pod identity */
	"fd00:ec2::254",   /* AWS */
	"fd00:ec2::23",	   /* AWS: EKS pod identity */
	"fd20:ce::254",	   /* GCP */
	"168.63.129.16",   /* Azure: WireServer */
	"100.100.100.200", /* Alibaba */
	"169.254.0.23",	   /* Tencent */
	"169.254.42.42",   /* Scaleway */
	"fd00:42::42",	   /* Scaleway */
	"192.0.0.192",	   /* Oracle, classic */
};

static bool key_of(size_t i, struct metadata_key *ret)
{
	memset(ret, 0, sizeof(*ret));
	return inet_pton(AF_INET, addresses[i], ret->addr) == 1 ||
	       inet_pton(AF_INET6, addresses[i], ret->addr) == 1;
}

bool metadata_has(const uint8_t addr[16])
{
	struct metadata_key key;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++)
		if (key_of(i, &key) && !memcmp(key.addr, addr, sizeof(key.addr)))
			return true;
	return false;
}

void metadata_first_bytes(uint32_t first[8])
{
	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct metadata_key key;
		uint8_t byte;

		if (!key_of(i, &key))
			continue; /* metadata_fill names it */
		byte = *(const uint8_t *)key.addr;
		first[byte >> 5] |= 1u << (byte & 31);
	}
}

int metadata_fill(int map_fd, struct err *err)
{
	const uint32_t yes = 1;

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct metadata_key key;

		if (!key_of(i, &key))
			return err_set(err, EINVAL, "metadata address '%s'", addresses[i]);
		if (bpf_map_update_elem(map_fd, &key, &yes, BPF_ANY) < 0)
			return err_set(err, errno, "metadata addresses: %m");
	}
	return 0;
}
