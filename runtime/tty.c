// SPDX-License-Identifier: Apache-2.0
#include "runtime/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PTMX_MAJOR 5
#define PTMX_MINOR 2

int tty_check(int fd)
{
	struct stat st;
	int number, flags;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -ENOTTY;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(PTMX_MAJOR, PTMX_MINOR) ||
	    ioctl(fd, TIOCGPTN, &number) < 0)
		return -ENOTTY;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -errno;
	return 0;
}
