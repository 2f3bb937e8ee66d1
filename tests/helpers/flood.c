// SPDX-License-Identifier: Apache-2.0
/* Acts in a row, to fill the rings: flood KINDS N [PAUSE_US]. KINDS are letters, done in turn N times:
 *   o open (creates), r rename, d delete, c chmod, s symlink and its delete, m mkdir and rmdir
 *   f fork and exit, x exec of /bin/true, e escape signal (setns on no descriptor), n connect to no unix socket
 * In the current directory. Prints nothing; fails if a call does not do as expected. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64], other[64];

static void check(int ok, char what)
{
	if (ok)
		return;
	fprintf(stderr, "flood: '%c': %s\n", what, strerror(errno));
	exit(1);
}

static void child(int exec)
{
	char *argv[] = { "true", NULL };
	int status;
	pid_t pid = fork();

	check(pid >= 0, 'f');
	if (pid == 0) {
		if (exec)
			execv("/bin/true", argv);
		_exit(exec);
	}
	check(waitpid(pid, &status, 0) == pid && status == 0, 'x');
}

static void act(char what)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = "nobody" };
	int fd;

	switch (what) {
	case 'o':
		fd = open(name, O_CREAT | O_WRONLY, 0600);
		check(fd >= 0, what);
		close(fd);
		break;
	case 'r':
		check(rename(name, other) == 0 && rename(other, name) == 0, what);
		break;
	case 'd':
		check(unlink(name) == 0, what);
		break;
	case 'c':
		check(chmod(name, 0640) == 0, what);
		break;
	case 's':
		check(symlink("x", other) == 0 && unlink(other) == 0, what);
		break;
	case 'm':
		check(mkdir(other, 0700) == 0 && rmdir(other) == 0, what);
		break;
	case 'f':
		child(0);
		break;
	case 'x':
		child(1);
		break;
	case 'e':
		check(setns(-1, 0) < 0, what);
		break;
	case 'n':
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		check(connect(fd, (void *)&sun, sizeof(sun)) < 0, what);
		close(fd);
		break;
	default:
		check(0, what);
	}
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 0, pause_us = argc > 3 ? atoi(argv[3]) : 0;

	if (argc < 3)
		return 2;
	snprintf(name, sizeof(name), "flood-%d", getpid());
	snprintf(other, sizeof(other), "flood-%d-other", getpid());
	for (int i = 0; i < n; i++) {
		for (const char *p = argv[1]; *p; p++)
			act(*p);
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	unlink(name);
	return 0;
}
