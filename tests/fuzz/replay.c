// SPDX-License-Identifier: Apache-2.0
/* main() for a fuzz target built without libFuzzer: feeds it files, and whole folders of files. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long fed;

static int feed_file(const char *path, size_t size)
{
	/* Exactly the size of the input, so that ASan sees one byte too far. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");

	if (!data || !f || fread(data, 1, size, f) != size) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	fclose(f);
	/* Named before it runs: the last one named is the one that crashed. */
	printf("%s\n", path);
	fflush(stdout);
	LLVMFuzzerTestOneInput(data, size);
	fed++;
	free(data);
	return 0;
}

static int feed(const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (stat(path, &st)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return feed_file(path, (size_t)st.st_size);
	dir = opendir(path);
	if (!dir)
		return 1;
	while ((entry = readdir(dir))) {
		char sub[4096];

		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(sub, sizeof(sub), "%s/%s", path, entry->d_name) < (int)sizeof(sub))
			feed(sub);
	}
	closedir(dir);
	return 0;
}

int main(int argc, char **argv)
{
	/* Every parser has to take nothing at all. */
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (int i = 1; i < argc; i++)
		if (feed(argv[i]))
			return 1;
	printf("%lu inputs\n", fed);
	return 0;
}
