// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/base/auto.h"
#include "userspace/cli/cli.h"
#include "userspace/cli/commands.h"
#include "userspace/cli/help.h"
#include "userspace/cli/util.h"

struct completion_args {
	bool help;
};

static const struct option_def OPTIONS[] = {
	{ "help", 'h', OPT_FLAG, offsetof(struct completion_args, help), NULL, "this text" },
	{ 0 },
};

static const char PURPOSE[] =
	"What a shell needs to complete warder's commands and options; and the manual pages.\n\n"
	"  bash       eval \"$(warder completion bash)\", or into bash-completion's directory\n"
	"  zsh        into a directory of $fpath, as _warder\n"
	"  man DIR    writes warder.1 and a page a command into DIR\n\n"
	"`make install` and the Debian package put them in place.";

static int write_page(const char *dir, const struct help_page *page, struct err *err)
{
	char path[4096];
	FILE *out;
	int n = snprintf(path, sizeof(path), "%s/warder%s%s.1", dir, page ? "-" : "",
			 page ? page->command->name : "");

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ENAMETOOLONG, "'%s': %m", dir);
	out = fopen(path, "we");
	if (!out)
		return err_set(err, errno, "'%s': %m", path);
	help_man(out, page);
	n = ferror(out);
	if (fclose(out) || n)
		return err_set(err, errno ? errno : EIO, "'%s': %m", path);
	return 0;
}

struct pages {
	const char *dir;
	struct err *err;
};

static void page_of(void *arg, const struct help_page *page)
{
	struct pages *p = arg;

	if (!p->err->code)
		write_page(p->dir, page, p->err);
}

static int man(const char *dir)
{
	struct err err = { 0 };
	struct pages p = { dir, &err };

	write_page(dir, NULL, &err);
	help_each(NULL, page_of, &p);
	return err.code ? cli_fail(&err) : 0;
}

int cmd_completion(int argc, char **argv)
{
	struct completion_args args = { 0 };
	struct err err = { 0 };
	int n;

	if (options_parse_mixed(OPTIONS, &args, argc, argv, &n, &err) < 0)
		return cli_bad_usage("completion", &err);
	if (args.help) {
		cli_usage("completion bash|zsh | man DIR", PURPOSE, OPTIONS);
		return 0;
	}
	if (n == 2 && !strcmp(argv[1], "man"))
		return man(argv[2]);
	if (n == 1 && !strcmp(argv[1], "bash"))
		help_bash(stdout);
	else if (n == 1 && !strcmp(argv[1], "zsh"))
		help_zsh(stdout);
	else {
		err_set(&err, EINVAL, "expected bash, zsh or man DIR");
		return cli_bad_usage("completion", &err);
	}
	return cli_finish_output(0);
}
