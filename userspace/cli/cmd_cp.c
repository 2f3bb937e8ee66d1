// SPDX-License-Identifier: Apache-2.0
/* cp: by commands that run inside, as the payload. Every path of the sandbox is resolved there, with its rights; what
 * comes out is one file's bytes or a stream, and nothing that a sandbox names is created on the host. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/fd.h"
#include "userspace/base/fd_new.h"
#include "userspace/base/json.h"
#include "userspace/cli/agent.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/util.h"

struct cp_args {
	bool json, help;
};

static const struct option_def OPTIONS[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct cp_args, json), NULL,
	  "one JSON object: what was copied, or why not; not where stdout is the data" },
	{ "help", 'h', OPT_FLAG, offsetof(struct cp_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"Copy into or out of a sandbox of the agent:\n\n"
	"  cp FILE BOX:PATH    a file to this path, or into this directory\n"
	"  cp DIR BOX:PATH     what is in a directory, into this one, made if need be\n"
	"  cp - BOX:PATH       a tar stream from stdin, unpacked there\n"
	"  cp BOX:FILE FILE    a file out; it appears whole or not at all\n"
	"  cp BOX:PATH -       a file, or a directory as a tar stream, to stdout\n\n"
	"The sandbox's sh, cat and tar do its part, as its payload: a link in there leads nowhere\n"
	"else. A directory comes out as a stream only: what a sandbox has named is yours to judge.\n"
	"Exit code: 0, or that of what failed.";

/* "BOX:PATH"; a path with a slash in front of its colon is the host's. */
static const char *split(char *word)
{
	char *colon = strchr(word, ':');

	if (!colon || colon == word || !colon[1] || memchr(word, '/', (size_t)(colon - word)))
		return NULL;
	*colon = 0;
	return colon + 1;
}

/* With these as our stdin and stdout; -1 = ours. */
static int run_inside(const char *box, const char *const *argv, size_t argc, int in, int out)
{
	struct agent_request q = {
		.op = AGENT_EXEC, .sandbox = box, .argv = (const char **)argv, .argc = argc
	};

	if ((in >= 0 && dup2(in, STDIN_FILENO) < 0) || (out >= 0 && dup2(out, STDOUT_FILENO) < 0))
		return EXIT_WARDER;
	return agent_talk(&q, NULL);
}

/* ---- in ---- */

static const char PUT[] = "if [ -d \"$1\" ]; then exec cat > \"$1/$2\"; else exec cat > \"$1\"; fi";
static const char UNPACK[] = "mkdir -p -- \"$1\" && exec tar -C \"$1\" -xf - --no-same-owner";
static const char PACK[] =
	"if [ -d \"$1\" ]; then exec tar -C \"$1\" -cf - .; else exec cat -- \"$1\"; fi";

static int unpack(const char *box, const char *path, int in)
{
	const char *argv[] = { "sh", "-c", UNPACK, "sh", path };

	return run_inside(box, argv, ARRAY_SIZE(argv), in, -1);
}

/* The host's tar packs what is the caller's own. */
static int put_dir(const char *dir, const char *box, const char *path, struct err *err)
{
	int pipe_fd[2], code, status = 0;
	pid_t pid;

	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fd[1], STDOUT_FILENO);
		execlp("tar", "tar", "-C", dir, "-cf", "-", ".", (char *)NULL);
		_exit(127);
	}
	close(pipe_fd[1]);
	if (pid < 0)
		return err_set(err, errno, "fork: %m");
	code = unpack(box, path, pipe_fd[0]);
	close(pipe_fd[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (code == 0 && (!WIFEXITED(status) || WEXITSTATUS(status)))
		return err_set(err, EIO, "packing '%s' failed", dir);
	return code;
}

static int put(const char *from, const char *box, const char *path, struct err *err)
{
	const char *slash = strrchr(from, '/'), *name = slash ? slash + 1 : from;
	const char *argv[] = { "sh", "-c", PUT, "sh", path, name };
	auto_close int fd = -1;
	struct stat st;

	if (!strcmp(from, "-"))
		return unpack(box, path, -1);
	fd = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "'%s': %m", from);
	if (S_ISDIR(st.st_mode))
		return put_dir(from, box, path, err);
	return run_inside(box, argv, ARRAY_SIZE(argv), fd, -1);
}

/* ---- out ---- */

static int get(const char *box, const char *path, const char *to, struct err *err)
{
	const char *argv[] = { "sh", "-c", PACK, "sh", path };
	struct fd_new file;
	struct stat st;
	int code, r;

	if (!strcmp(to, "-"))
		return run_inside(box, argv, ARRAY_SIZE(argv), -1, -1);
	if (stat(to, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(err, EISDIR,
			       "'%s' is a directory: name the file, or take the stream of '-'", to);
	r = fd_new_open(&file, to, 0600, err);
	if (r < 0)
		return r;
	argv[2] = "exec cat -- \"$1\"";
	code = run_inside(box, argv, ARRAY_SIZE(argv), -1, file.fd);
	r = code == 0 ? fd_new_commit(&file, err) : 0;
	fd_new_done(&file);
	return r < 0 ? r : code;
}

/* Stdout may have been the file's. `r`: an exit code, or less than 0 with err. */
static int say(int out, bool in, int r, const struct err *err)
{
	auto_buf struct buf text = { 0 };
	struct json j;

	json_init(&j, &text);
	json_object_begin(&j);
	json_key(&j, "type");
	json_strz(&j, r ? "error" : "done");
	if (r) {
		json_key(&j, "message");
		json_strz(&j, r < 0 ? err_text(err) : "it failed in the sandbox");
	}
	json_key(&j, "bytes");
	json_u64(&j, agent_talk_bytes(in));
	json_key(&j, "code");
	json_i64(&j, r < 0 ? EXIT_WARDER : r);
	json_object_end(&j);
	buf_addc(&text, '\n');
	if (out < 0 || fd_write_all(out, text.p, text.n) < 0)
		return EXIT_WARDER;
	return r < 0 ? EXIT_WARDER : r;
}

int cmd_cp(int argc, char **argv)
{
	auto_close int null = open("/dev/null", O_RDONLY | O_CLOEXEC), out = -1;
	struct cp_args args = { 0 };
	const char *from, *to;
	struct err err = { 0 };
	int n, r;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("cp", &err);
	if (args.help) {
		cli_usage("cp FROM TO", PURPOSE, OPTIONS);
		return 0;
	}
	if (n != 2) {
		err_set(&err, EINVAL, "it takes what to copy, and where to");
		return cli_bad_usage("cp", &err);
	}
	from = split(argv[1]);
	to = split(argv[2]);
	if (!from == !to) {
		err_set(&err, EINVAL, "one of the two must be SANDBOX:PATH");
		return cli_bad_usage("cp", &err);
	}
	if (args.json && !strcmp(argv[2], "-")) {
		err_set(&err, EINVAL, "option '--json': stdout is what is copied");
		return cli_bad_usage("cp", &err);
	}
	out = args.json ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	if (from && null >= 0)
		dup2(null, STDIN_FILENO); /* it reads nothing */
	r = to ? put(argv[1], argv[2], to, &err) : get(argv[1], from, argv[2], &err);
	if (args.json)
		return say(out, to != NULL, r, &err);
	return r < 0 ? cli_fail(&err) : r;
}
