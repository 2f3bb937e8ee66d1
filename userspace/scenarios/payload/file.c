// SPDX-License-Identifier: Apache-2.0
/* Programs, files and what was left lying about: P16 to P22, P31, P32, P34, P38, P41, P42, P54 to P60. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "userspace/scenarios/payload/payload.h"

#define FILES_DELETED 320
#define FDS_TRIED     64

static int unix_connect(const char *path, size_t n)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), r, e;

	memcpy(a.sun_path, path, n);
	r = connect(fd, (void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
	e = errno;
	close(fd);
	errno = e;
	return r;
}

/* A listener at this name, and a connection to it. */
static void own_socket(const char *path, size_t n)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(a.sun_path, path, n);
	if (bind(fd, (void *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0 ||
	    listen(fd, 1) < 0) {
		did(-1, "listen on a socket of its own");
		return;
	}
	did(unix_connect(path, n), "connect to a socket of its own");
	close(fd);
}

/* words[0]: this one instead, shorter than an address may be */
static void p16(void)
{
	static const char *const sockets[] = { "/var/run/docker.sock", "/run/docker.sock",
					       "/run/containerd/containerd.sock",
					       "/run/podman/podman.sock",
					       "/var/run/crio/crio.sock" };

	if (words_n) /* one is within reach, on purpose */
		tried(unix_connect(words[0], strlen(words[0]) + 1), "connect to %s", words[0]);
	for (size_t i = 0; !words_n && i < sizeof(sockets) / sizeof(sockets[0]); i++)
		tried(unix_connect(sockets[i], strlen(sockets[i]) + 1), "connect to %s",
		      sockets[i]);
}

static void p16_twin(void)
{
	own_socket("/tmp/.own.sock", sizeof("/tmp/.own.sock"));
}

#define SHIM "\0/containerd-shim/moby/warder-selftest/shim.sock@"

static void p17(void)
{
	char line[512];
	bool seen = false;
	FILE *f = fopen("/proc/net/unix", "re");

	tried(unix_connect(SHIM, sizeof(SHIM)), "connect to an abstract containerd-shim socket");
	while (f && fgets(line, sizeof(line), f))
		seen |= strstr(line, "@/containerd-shim") || strstr(line, "@/run/containerd");
	blocked(!seen, "sockets of the host in /proc/net/unix");
	if (f)
		fclose(f);
}

static void p17_twin(void)
{
	own_socket("\0own", 4);
}

static void p18(void)
{
	char path[64];
	int fd;

	try_open("/proc/1/exe", O_RDWR);
	fd = open("/proc/1/exe", O_PATH | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd >= 0)
		try_open(path, O_WRONLY);
	else
		tried(-1, "hold /proc/1/exe");
	try_open("/proc/self/exe", O_WRONLY);
}

static void p18_twin(void)
{
	char b[256];

	did(readlink("/proc/self/exe", b, sizeof(b)), "which program is this");
	did(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "read its own program");
}

static void p19(void)
{
	char path[64], b[256];
	int n = 0, dirs = 0;

	for (int i = 3; i < FDS_TRIED; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
		n += readlink(path, b, sizeof(b)) >= 0;
		dirs += chdir(path) == 0;
	}
	blocked(n == 0, "%d descriptors besides 0, 1 and 2", n);
	blocked(dirs == 0, "%d of them directories to go to", dirs);
	blocked(getcwd(b, sizeof(b)) && b[0] == '/', "a working directory outside the root");
}

static void p19_twin(void)
{
	did(chdir("/proc/self/fd"), "look at its own descriptors");
}

/* What a hostile tree put in place of these must not have been used. */
static void p20(void)
{
	static const struct {
		const char *path;
		mode_t type;
	} rows[] = { { "/dev/null", S_IFCHR }, { "/dev/zero", S_IFCHR }, { "/dev/pts", S_IFDIR } };
	struct stat st;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		blocked(lstat(rows[i].path, &st) == 0 && (st.st_mode & S_IFMT) == rows[i].type,
			"%s is something else", rows[i].path);
}

static void p21(void)
{
	struct stat st;

	blocked(lstat("/proc", &st) == 0 && S_ISDIR(st.st_mode) && exists("/proc/self/status"),
		"/proc is something else");
	blocked(lstat("/sys", &st) < 0 || S_ISDIR(st.st_mode), "/sys is something else");
	blocked(!exists("/proc/planted"), "files of a planted /proc");
}

/* A bind was asked for below a link that leads to /tmp. words[0]: by this name. */
static void p22(void)
{
	char path[256];

	snprintf(path, sizeof(path), "/tmp/%s", words_n ? words[0] : "");
	blocked(words_n && !exists(path), "a bind that went through a link");
}

static void p31(void)
{
	static const char cap[20] = { 1, 0, 0, 2, 0, 0, 0x20, 0 }; /* v2: CAP_SYS_ADMIN */
	char *const su[] = { "su", "-c", "true", NULL };
	char *const pkexec[] = { "pkexec", "true", NULL };
	char *const whoami[] = { "whoami", NULL };
	int r;

	r = run("su", su);
	blocked(r != 0, "su to root");
	r = run("pkexec", pkexec);
	blocked(r != 0, "pkexec");
	/* EINVAL: its user namespace has no such user. */
	blocked(setuid(0) < 0 && geteuid() != 0, "setuid(0)");
	if (!did(copy_self("/workspace/whoami"), "copy itself"))
		return;
	tried(setxattr("/workspace/whoami", "security.capability", cap, sizeof(cap), 0),
	      "file capabilities");
	blocked(run("/workspace/whoami", whoami) == 0, "more rights by an exec");
	blocked(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, "no_new_privs is off");
	unlink("/workspace/whoami");
}

static void p32(void)
{
	char c = '\n';
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);

	for (int i = 0; i < 3; i++)
		tried(ioctl(i, TIOCSTI, &c), "TIOCSTI on %d", i);
	tried(fd < 0 ? fd : ioctl(fd, TIOCSTI, &c), "TIOCSTI on /dev/tty");
}

static void p32_twin(void)
{
	struct winsize w;

	did(ioctl(0, TIOCGWINSZ, &w) < 0 && errno != ENOTTY ? -1 : 0, "size of the terminal");
}

/* words[0]: a process of the host */
static void p34(void)
{
	tried(kill((pid_t)word_u64(0, 1), 0), "signal a process of the host");
	/* SIGURG does nothing to who does not ask for it. */
	if (kill(-1, SIGURG) < 0)
		tried(-1, "kill -1");
	else
		blocked(getpid() < 1000 && exists("/proc/1"), "kill -1 beyond its own processes");
}

static int wait_long(void)
{
	pause();
	return 0;
}

static void p34_twin(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(wait_long());
	did(kill(pid, SIGTERM), "end a child");
	waitpid(pid, NULL, 0);
}

static void p38(void)
{
	try_open("/etc/shadow", O_RDONLY);
	try_open("/root/.ssh/id_rsa", O_RDONLY);
	try_open("/root/.aws/credentials", O_RDONLY);
	try_open("/root/.config/gcloud/application_default_credentials.json", O_RDONLY);
	try_open("/root/.kube/config", O_RDONLY);
	try_open("/var/run/secrets/kubernetes.io/serviceaccount/token", O_RDONLY);
	try_open("/proc/1/environ", O_RDONLY);
}

static void p38_twin(void)
{
	did(open("/etc/passwd", O_RDONLY | O_CLOEXEC), "read /etc/passwd");
	did(getenv("HOME") ? 0 : -1, "read its own environment");
}

static void p41(void)
{
	char *const argv[] = { "nothing", NULL }, *const env[] = { NULL };
	int fd = (int)syscall(SYS_memfd_create, "nothing", 0), from, st = 0;
	char path[64];
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	from = fd < 0 ? -1 : copy_self(path);
	if (!did(from, "a program in a memfd"))
		return;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		/* The descriptor that wrote it is closed by copy_self: ETXTBSY is not in the way. */
		syscall(SYS_execveat, fd, "", argv, env, AT_EMPTY_PATH);
		_exit(errno == EACCES || errno == EPERM ? 99 : 98);
	}
	waitpid(pid, &st, 0);
	if (WEXITSTATUS(st) == 99) {
		errno = EACCES;
		tried(-1, "execveat of the memfd");
	} else {
		errno = EIO;
		did(st ? -1 : 0, "execveat of the memfd");
	}
}

static void p41_twin(void)
{
	int fd = (int)syscall(SYS_memfd_create, "buffer", 0);

	did(write(fd, "x", 1), "a memfd as a buffer");
}

static void drop(const char *path)
{
	char *const argv[] = { "nothing", NULL };
	int r;

	if (!did(copy_self(path), "drop a program at %s", path))
		return;
	r = run(path, argv);
	if (r == -EACCES || r == -EPERM)
		tried(-1, "run %s", path);
	else
		did(r, "run %s", path);
	unlink(path);
}

static void p42(void)
{
	drop("/workspace/dropped");
	drop("/tmp/.dropped");
}

static void p42_twin(void)
{
	int fd = open("/workspace/script.sh", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	did(write(fd, "exit 0\n", 7), "write a script");
	close(fd);
	did(run("sh", (char *[]){ "sh", "/workspace/script.sh", NULL }) == 0 ? 0 : -1, "run it");
}

/* Would it be possible to delete there? Renaming a file to its own name asks for the same right, and does nothing; a
 * directory with something in it is not removed. */
static void try_delete(const char *dir, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (exists(path))
		tried(rename(path, path), "delete %s", path);
	if (rmdir(dir) < 0 && (errno == EBUSY || errno == ENOTEMPTY))
		errno = EPERM;
	tried(-1, "remove %s", dir);
}

static void p54(void)
{
	char path[64];
	int n = 0;

	try_delete("/usr", "bin/env");
	try_delete("/usr/bin", "env");
	try_delete("/etc", "passwd");
	try_delete("/etc/ssl/certs", "ca-certificates.crt");
	/* What it may delete, its own, is many. */
	mkdir("/workspace/doomed", 0700);
	for (int i = 0; i < FILES_DELETED; i++) {
		snprintf(path, sizeof(path), "/workspace/doomed/%d", i);
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	for (int i = 0; i < FILES_DELETED; i++) {
		snprintf(path, sizeof(path), "/workspace/doomed/%d", i);
		n += unlink(path) == 0;
	}
	rmdir("/workspace/doomed");
	errno = EIO;
	did(n == FILES_DELETED ? 0 : -1, "delete %d files of its own", n);
}

static void p54_twin(void)
{
	mkdir("/workspace/old", 0700);
	close(open("/workspace/old/a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	did(unlink("/workspace/old/a"), "delete a file");
	did(rmdir("/workspace/old"), "remove its directory");
}

static void try_plant(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	tried(fd, "plant %s", path);
	if (fd < 0)
		return;
	close(fd);
	unlink(path);
}

static void p55(void)
{
	static const char *const unit[] = { "/workspace/.selftest/.config",
					    "/workspace/.selftest/.config/systemd",
					    "/workspace/.selftest/.config/systemd/user" };
	int fd;

	try_plant("/etc/cron.d/warder-selftest");
	try_plant("/etc/systemd/system/warder-selftest.service");
	try_plant("/etc/profile.d/warder-selftest.sh");
	try_plant("/etc/ld.so.preload");
	/* Of the sandbox's own home it may: it ends with it, but for a workspace that stays. */
	mkdir("/workspace/.selftest", 0700);
	fd = open("/workspace/.selftest/.bashrc", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	did(fd, "write a .bashrc");
	close(fd);
	unlink("/workspace/.selftest/.bashrc");
	for (size_t i = 0; i < 3; i++)
		mkdir(unit[i], 0700);
	fd = open("/workspace/.selftest/.config/systemd/user/x.service",
		  O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	did(fd, "write a unit of systemd's");
	close(fd);
	unlink("/workspace/.selftest/.config/systemd/user/x.service");
	for (size_t i = 3; i-- > 0;)
		rmdir(unit[i]);
	rmdir("/workspace/.selftest");
}

static void p55_twin(void)
{
	did(open("/workspace/app.conf", O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "write a setting");
	unlink("/workspace/app.conf");
}

static void try_score(const char *value)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	tried(fd < 0 ? fd : write(fd, value, strlen(value)), "oom_score_adj %s", value);
	if (fd >= 0)
		close(fd);
}

static void p56(void)
{
	mkdir("/workspace/.selftest", 0700);
	try_score("-1000");
	close(open("/workspace/.selftest/.bash_history", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	did(unlink("/workspace/.selftest/.bash_history"), "remove a history");
	rmdir("/workspace/.selftest");
	/* The one that watches, and the one that every sandbox has: still there after it? */
	tried(kill((pid_t)word_u64(0, 1), SIGSTOP), "stop the agent");
	if (getpid() == 1) {
		absent("a process 1 besides itself");
		return;
	}
	kill(1, SIGKILL);
	blocked(kill(1, 0) == 0 || errno == EPERM, "kill pid 1");
}

static void p56_twin(void)
{
	did(access("/proc/self/oom_score_adj", R_OK), "read its own score");
}

static void p57(void)
{
	static const char *const clients[] = { "docker", "kubectl", "podman", "crictl" };

	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		char *const argv[] = { (char *)clients[i], "ps", NULL };
		int r = run(clients[i], argv);

		errno = r == -ENOENT ? ENOENT : EPERM;
		blocked(r != 0, "%s ps: %s", clients[i],
			r == -ENOENT ? "is not there" : "of no use");
	}
	blocked(run("nsenter", (char *[]){ "nsenter", "-t", "1", "-m", "true", NULL }) != 0,
		"nsenter into pid 1");
}

static void p57_twin(void)
{
	did(run("true", (char *[]){ "true", NULL }) == 0 ? 0 : -1, "run true");
}

static void p58(void)
{
	did(run("/proc/self/exe", (char *[]){ "[kworker/0:0]", NULL }), "run as [kworker/0:0]");
}

static void p58_twin(void)
{
	did(run("/proc/self/exe", (char *[]){ "nothing", NULL }), "run by another name");
}

static void p59(void)
{
	static const char cap[20] = { 1, 0, 0, 2, 0x80, 0, 0, 0 }; /* v2: CAP_SETUID */
	char *const whoami[] = { "whoami", NULL };

	if (!did(copy_self("/workspace/whoami"), "copy itself"))
		return;
	if (chmod("/workspace/whoami", 04755) < 0)
		tried(-1, "chmod u+s");
	else
		did(0, "chmod u+s");
	tried(setxattr("/workspace/whoami", "security.capability", cap, sizeof(cap), 0),
	      "file capabilities");
	blocked(run("/workspace/whoami", whoami) == 0, "more rights by an exec");
	unlink("/workspace/whoami");
}

static void p59_twin(void)
{
	int fd = open("/workspace/tool", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	close(fd);
	did(chmod("/workspace/tool", 0755), "chmod +x");
	unlink("/workspace/tool");
}

static void p60(void)
{
	try_open("/proc/1/environ", O_RDONLY);
	try_open("/etc/warder", O_RDONLY);
	try_open("/run/warder/control.sock", O_RDONLY);
	try_open("/var/lib/warder", O_RDONLY);
	blocked(!getenv("WARDER_STATE") && !getenv("WARDER_CONFIG"), "the launcher's environment");
}

static void p60_twin(void)
{
	did(open("/proc/self/environ", O_RDONLY | O_CLOEXEC), "read its own environment");
}

const struct attempt file_attempts[] = {
	{ "P16", p16, p16_twin }, { "P17", p17, p17_twin }, { "P18", p18, p18_twin },
	{ "P19", p19, p19_twin }, { "P20", p20, NULL },	    { "P21", p21, NULL },
	{ "P22", p22, NULL },	  { "P31", p31, NULL },	    { "P32", p32, p32_twin },
	{ "P34", p34, p34_twin }, { "P38", p38, p38_twin }, { "P41", p41, p41_twin },
	{ "P42", p42, p42_twin }, { "P54", p54, p54_twin }, { "P55", p55, p55_twin },
	{ "P56", p56, p56_twin }, { "P57", p57, p57_twin }, { "P58", p58, p58_twin },
	{ "P59", p59, p59_twin }, { "P60", p60, p60_twin }, { 0 },
};
