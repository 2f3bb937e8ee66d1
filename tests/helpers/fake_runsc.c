// SPDX-License-Identifier: Apache-2.0
// libs: -static -no-pie
/* A runsc whose sentry is in the hands of somebody: static, since gVisor's small root has no libraries. What it does is
 * the first word of the payload's command, in the bundle:
 *   good      answers, and says that the payload ended with 7
 *   garbage   answers what is no JSON      refuse   answers that the start has failed
 *   flood     answers without an end       silent   takes the call and never answers
 *   lie       an answer to the wait that says nothing, then its end with 9
 *   close     closes each connection       dies     ends with SIGSYS while the payload runs */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char mode[32];

static void read_mode(void)
{
	static char text[1 << 16];
	FILE *f = fopen("/bundle/config.json", "r");
	char *at;

	if (!f)
		exit(3);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	at = strstr(text, "\"args\":[\"");
	if (!at || sscanf(at + strlen("\"args\":[\""), "%31[a-z]", mode) != 1)
		exit(3);
}

static int is(const char *word)
{
	return !strcmp(mode, word);
}

static void say(int fd, const char *text)
{
	send(fd, text, strlen(text), MSG_NOSIGNAL);
}

static void answer(int fd, const char *call)
{
	int wait = strstr(call, "Wait") != NULL, start = strstr(call, "StartRoot") != NULL;

	if (is("close"))
		return;
	if (is("garbage") && start) {
		say(fd, "}}}]]\xff\xfe\\\"");
		return;
	}
	if (is("silent") && start)
		pause();
	while (is("flood") && start)
		if (send(fd, "{\"x\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"y\":[", 50,
			 MSG_NOSIGNAL) < 0)
			return;
	if (is("refuse") && start)
		say(fd, "{\"success\":false,\"err\":\"no such thing\",\"result\":null}");
	else if (!wait)
		say(fd, "{\"success\":true,\"err\":\"\",\"result\":{}}");
	else if (is("lie"))
		say(fd, "{\"success\":maybe,\"result\":99999999999999999999}");
	else
		say(fd, "{\"success\":true,\"err\":\"\",\"result\":1792}");
	if (wait && is("lie"))
		exit(9);
}

static void serve(int fd)
{
	for (;;) {
		char call[4096];
		int c = accept(fd, NULL, NULL);
		ssize_t n = c < 0 ? -1 : read(c, call, sizeof(call) - 1);

		if (c < 0)
			exit(1);
		call[n > 0 ? n : 0] = 0;
		if (strstr(call, "Wait") && is("dies")) {
			signal(SIGSYS, SIG_DFL);
			raise(SIGSYS);
		}
		answer(c, call);
		close(c);
	}
}

static int create(const char *id)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), n;
	FILE *f;
	pid_t pid;

	read_mode();
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "runsc-sandbox.%s", id);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a, (socklen_t)(sizeof(a.sun_family) + 1 + (size_t)n)) <
		    0 ||
	    listen(fd, 16) < 0)
		return 4;
	pid = fork();
	if (pid == 0) {
		setsid();
		serve(fd);
	}
	f = fopen("/state/pid", "w");
	if (!f)
		return 5;
	fprintf(f, "%d", (int)pid);
	return fclose(f) ? 5 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "flags"))
		return puts("  -ignore-cgroups\n  -network value\n  -overlay2 value") < 0;
	if (!strcmp(what, "help"))
		return puts("ptrace") < 0;
	if (!strcmp(what, "--version"))
		return puts("runsc version fake") < 0;
	return create(argv[argc - 1]);
}
