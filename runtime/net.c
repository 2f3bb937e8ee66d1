// SPDX-License-Identifier: Apache-2.0
/* A network namespace with nothing but lo, on which the payload may serve any port: privileged
 * ports protect the host's own services, and there are none here. */
#include "runtime/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"

static int lo_up(void)
{
	struct ifreq req = { .ifr_flags = IFF_UP | IFF_RUNNING };
	auto_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	memcpy(req.ifr_name, "lo", sizeof("lo"));
	return ioctl(fd, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

int setup_net(struct setup *s)
{
	auto_close int fd = -1;
	int r;

	if (s->plan->net == SANDBOX_NET_HOST)
		return 0;
	setup_at(s, "lo");
	r = lo_up();
	if (r < 0)
		return r;
	setup_at(s, "/proc/sys/net/ipv4/ip_unprivileged_port_start");
	fd = open(s->at, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, "0", 1) == 1 ? 0 : -errno;
}
