// SPDX-License-Identifier: Apache-2.0
#include "runtime/init_config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/fd.h"

static void add_string(struct buf *b, const char *z)
{
	buf_add(b, z, strlen(z) + 1);
}

static int build(const struct init_words *w, struct buf *b, struct err *err)
{
	struct init_config head = { .magic = INIT_CONFIG_MAGIC };

	head.argc = (uint32_t)w->argc;
	head.envc = (uint32_t)w->env_n;
	head.filter_n = (uint32_t)w->filter_n;
	head.tty = w->tty;
	head.tty_rows = w->rows;
	head.tty_cols = w->cols;
	head.serve = w->serve;
	head.notify = (uint16_t)w->notify;
	buf_add(b, &head, sizeof(head));
	head.filter_off = (uint32_t)b->n;
	buf_add(b, w->filter, w->filter_n * sizeof(*w->filter));
	head.strings_off = (uint32_t)b->n;
	for (size_t i = 0; i < w->argc; i++)
		add_string(b, w->argv[i]);
	for (size_t i = 0; i < w->env_n; i++)
		add_string(b, w->env[i]);
	head.cwd_off = (uint32_t)b->n;
	add_string(b, w->cwd);
	if (b->failed)
		return err_set(err, E2BIG, "command and environment: more than %u bytes",
			       INIT_CONFIG_MAX);
	head.size = (uint32_t)b->n;
	memcpy(b->p, &head, sizeof(head));
	return 0;
}

int init_config_memfd(const struct init_words *w, int *ret_fd, struct err *err)
{
	auto_close int fd = memfd_create("warder-config", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	auto_buf struct buf b = { 0 };
	int r;

	buf_init(&b, INIT_CONFIG_MAX);
	if (fd < 0)
		return err_set(err, errno, "sandbox configuration: memfd_create: %m");
	r = build(w, &b, err);
	if (r < 0)
		return r;
	r = fd_write_all(fd, b.p, b.n);
	if (r == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, -r, "sandbox configuration: %m");
	*ret_fd = take_fd(fd);
	return 0;
}
