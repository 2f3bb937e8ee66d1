// SPDX-License-Identifier: Apache-2.0
#include "runtime/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "userspace/base/auto.h"

#define PORT_START "net/ipv4/ip_unprivileged_port_start"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t maker;
static bool making;
static int made; /* by `maker`, valid once it is joined; -errno */

int netns_configure(int proc_sys, const char **ret_what)
{
	struct ifreq req = { .ifr_flags = IFF_UP | IFF_RUNNING };
	auto_close int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	auto_close int fd = -1;

	*ret_what = "lo";
	if (sock < 0)
		return -errno;
	memcpy(req.ifr_name, "lo", sizeof("lo"));
	if (ioctl(sock, SIOCSIFFLAGS, &req) < 0)
		return -errno;
	/* Privileged ports protect the host's own services, and there are none here. */
	*ret_what = PORT_START;
	fd = openat(proc_sys, PORT_START, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, "0", 1) == 1 ? 0 : -errno;
}

/* The thread ends in the namespace that it made; only the descriptor comes back. */
static void *make(void *arg)
{
	auto_close int sys = open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *what;
	int fd = -1;

	(void)arg;
	if (sys >= 0 && unshare(CLONE_NEWNET) == 0 && netns_configure(sys, &what) == 0)
		fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	made = fd;
	return NULL;
}

void netns_prepare(void)
{
	sigset_t all, old;

	pthread_mutex_lock(&lock);
	if (!making) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		making = pthread_create(&maker, NULL, make, NULL) == 0;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_mutex_unlock(&lock);
}

int netns_take(void)
{
	int fd = -1;

	pthread_mutex_lock(&lock);
	if (making) {
		pthread_join(maker, NULL);
		making = false;
		fd = made;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}
