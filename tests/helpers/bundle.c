// SPDX-License-Identifier: Apache-2.0
// ours: store
/* Makes and verifies session bundles for tests/store: `bundle make DIR KEY=VALUE...` with records,
 * frame (records in a frame), segment (bytes), gaps, seal (0 or 1), big (bytes of record 1), session,
 * keys (directory of a host key that signs), tty (records of the terminal, one in two bound at once, segment bytes too), lines (a file: its lines are the records); `bundle keys DIR` makes such a key; `bundle verify DIR...`
 * prints one JSON object a directory, with KEY set in the environment against the key in that
 * directory. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/json.h"
#include "userspace/store/chain.h"
#include "userspace/store/keys.h"
#include "userspace/store/terminal.h"
#include "userspace/store/store.h"

struct options {
	unsigned long long records, frame, segment, gaps, seal, big, tty;
	const char *session, *keys, *lines;
};

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

static int parse(struct options *o, const char *arg)
{
	const struct {
		const char *name;
		unsigned long long *value;
	} numbers[] = {
		{ "records=", &o->records }, { "frame=", &o->frame }, { "segment=", &o->segment },
		{ "gaps=", &o->gaps },	     { "seal=", &o->seal },   { "big=", &o->big },
		{ "tty=", &o->tty },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		size_t n = strlen(numbers[i].name);

		if (strncmp(arg, numbers[i].name, n) == 0) {
			*numbers[i].value = strtoull(arg + n, NULL, 10);
			return 0;
		}
	}
	if (strncmp(arg, "session=", 8) == 0) {
		o->session = arg + 8;
		return 0;
	}
	if (strncmp(arg, "lines=", 6) == 0) {
		o->lines = arg + 6;
		return 0;
	}
	if (strncmp(arg, "keys=", 5) == 0) {
		o->keys = arg + 5;
		return 0;
	}
	return -1;
}

/* Noise where `big` asks for it: such a frame is stored, not compressed. */
static int append(struct journal *j, const struct options *o)
{
	uint64_t seq = journal_next_seq(j), x = seq * 88172645463325252ull + 1;
	char *rec = malloc(o->big + 256);
	size_t n = (size_t)sprintf(rec, "{\"seq\":%llu,\"kind\":\"exec\",\"pad\":\"",
				   (unsigned long long)seq);
	size_t fill = seq == 1 ? o->big : seq * 37 % 90;
	int r;

	for (size_t i = 0; i < fill; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		rec[n++] = o->big && seq == 1 ? (char)(' ' + 3 + x % 57) : (char)('a' + x % 5);
	}
	memcpy(rec + n, "\"}", 2);
	r = journal_append(j, (struct str){ rec, n + 2 });
	free(rec);
	return r;
}

static int append_lines(struct journal *j, const struct options *o)
{
	FILE *f = fopen(o->lines, "re");
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int r = f ? 0 : -errno;

	while (r == 0 && (n = getline(&line, &cap, f)) > 0) {
		r = journal_append(j, (struct str){ line, (size_t)n - (line[n - 1] == '\n') });
		if (r == 0 && o->frame && (journal_next_seq(j) - 1) % o->frame == 0)
			r = journal_commit(j);
	}
	free(line);
	if (f)
		fclose(f);
	return r;
}

/* One terminal record and, with every second, the event that binds both. */
static int append_tty(struct journal *j, struct terminal_log *t, unsigned long long i)
{
	struct terminal_record rec = { .type = TERMINAL_OUTPUT, .mono = 1000 * i };
	char text[64], head[2 * STORE_HASH_LEN + 1], event[512];
	struct terminal_mark m;
	int r;

	snprintf(text, sizeof(text), "line %llu\r\n", i);
	rec.data = str_from(text);
	r = terminal_log_append(t, &rec);
	if (r < 0 || i % 2)
		return r;
	r = terminal_log_commit(t, &m);
	if (r < 0)
		return r;
	hash_to_hex(head, m.head);
	snprintf(event, sizeof(event),
		 "{\"seq\":%llu,\"kind\":\"terminal\",\"terminal\":{\"first\":%llu,\"last\":%llu,"
		 "\"bytes\":%llu,\"head\":\"%s\"}}",
		 (unsigned long long)journal_next_seq(j), (unsigned long long)m.first,
		 (unsigned long long)m.last, (unsigned long long)m.bytes, head);
	return journal_append(j, str_from(event));
}

static int make(int argc, char **argv)
{
	struct options o = { .records = 10, .frame = 10, .seal = 1, .session = "01JFIXTURE" };
	auto_close int fd = open_dir(argv[0]);
	struct journal_options opt = { .no_sync = true };
	struct journal_seal seal = { .summary = STR("{\"kinds\":{\"exec\":1},\"note\":\"}{\"}") };
	auto_close int keys_fd = -1;
	struct terminal_log *t = NULL;
	struct terminal_mark m;
	struct terminal_end end;
	struct journal *j = NULL;
	struct err err = { 0 };
	int r;

	for (int i = 1; i < argc; i++) {
		if (parse(&o, argv[i]) < 0) {
			fprintf(stderr, "bundle: unknown option '%s'\n", argv[i]);
			return 1;
		}
	}
	opt.session = o.session;
	if (o.keys) {
		keys_fd = open_dir(o.keys);
		opt.sign = true;
		opt.keys_dirfd = keys_fd;
	}
	opt.segment_max = o.segment;
	seal.gaps = o.gaps;
	r = journal_create(&j, fd, &opt, &err);
	if (r == 0 && o.lines)
		r = append_lines(j, &o);
	for (unsigned long long i = 1; r == 0 && !o.lines && i <= o.records; i++) {
		r = append(j, &o);
		if (r == 0 && o.frame && i % o.frame == 0)
			r = journal_commit(j);
	}
	if (r == 0 && o.tty)
		r = terminal_log_create(&t, fd, &opt, &err);
	for (unsigned long long i = 1; r == 0 && i <= o.tty; i++)
		r = append_tty(j, t, i);
	if (r == 0 && t)
		r = terminal_log_commit(t, &m);
	if (r == 0 && t) {
		terminal_log_end(t, &end);
		seal.terminal = &end;
	}
	if (r == 0)
		r = o.seal ? journal_seal(j, &seal) : journal_commit(j);
	terminal_log_free(t);
	journal_free(j);
	if (r < 0)
		fprintf(stderr, "bundle: %s: %s\n", argv[0], err.code ? err.text : strerror(-r));
	return r < 0;
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static int verify(const char *path)
{
	auto_close int fd = open_dir(path);
	const char *keys = getenv("KEY");
	uint8_t key[1][KEY_LEN];
	struct verify_options opt = { .keys = (const uint8_t(*)[KEY_LEN])key };
	struct verify_report rep = { 0 };
	auto_buf struct buf out = { 0 };
	struct err err = { 0 };
	struct json j;
	int r;

	if (keys) {
		auto_close int keys_fd = open_dir(keys);

		if (keys_public(keys_fd, key[0], &err) < 0)
			return 1;
		opt.n_keys = 1;
	}
	r = store_verify_signed(fd, &opt, &rep, NULL, NULL, &err);
	buf_init(&out, 0);
	json_init(&j, &out);
	json_object_begin(&j);
	json_key(&j, "state");
	json_i64(&j, r < 0 ? -1 : (int64_t)rep.state);
	put_u64(&j, "records", rep.records);
	put_u64(&j, "frames", rep.frames);
	put_u64(&j, "segments", rep.segments);
	put_u64(&j, "gaps", rep.gaps);
	put_u64(&j, "first_bad", rep.first_bad);
	put_u64(&j, "checkpoints", rep.checkpoints);
	json_key(&j, "signed");
	json_bool(&j, rep.is_signed);
	json_key(&j, "head");
	json_strz(&j, rep.head);
	json_key(&j, "text");
	json_strz(&j, r < 0 ? err.text : rep.text);
	json_object_end(&j);
	printf("%.*s\n", (int)out.n, out.p);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "make") == 0)
		return make(argc - 2, argv + 2);
	if (argc == 3 && strcmp(argv[1], "keys") == 0) {
		static const struct key_options small = { .depth = 5 };
		auto_close int fd = open_dir(argv[2]);

		return keys_init(fd, &small, NULL) < 0;
	}
	if (argc >= 3 && strcmp(argv[1], "verify") == 0) {
		for (int i = 2; i < argc; i++)
			verify(argv[i]);
		return 0;
	}
	fputs("usage: bundle make DIR KEY=VALUE... | bundle keys DIR | bundle verify DIR...\n",
	      stderr);
	return 2;
}
