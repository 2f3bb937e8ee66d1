// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/cli/cli.h"

/* Where a standard descriptor is closed, the next file that we open would take its number: a sandbox
 * would get it as its own, and messages would be written into it. */
static int fill_stdio(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (fill_stdio() < 0)
		return EXIT_WARDER; /* and nowhere to say why */
	/* The caller may mask others; masking the owner would shut us out of our own files. */
	umask(umask(0) & 0077);
	/* A limit on file size is an error to tell, not a reason to drop dead beside a sandbox. */
	signal(SIGXFSZ, SIG_IGN);
	/* OpenSSL 3.0 goes through a NULL pointer when there was no memory for this, whoever uses it first. */
	if (!OSSL_LIB_CTX_get0_global_default()) {
		fputs("warder: error: out of memory\n", stderr);
		return EXIT_WARDER;
	}
	return cli_main(argc, argv);
}
