// SPDX-License-Identifier: Apache-2.0
#include "userspace/store/hostlog.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "userspace/base/auto.h"
#include "userspace/base/buf.h"
#include "userspace/base/clock.h"
#include "userspace/base/fd.h"
#include "userspace/base/json.h"
#include "userspace/store/chain.h"
#include "userspace/store/hostlog_line.h"

#define LOGIN_NONE UINT32_MAX
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@"

/* ---- who ---- */

static void add_user(struct buf *out, const char *what, uint32_t uid)
{
	char text[4096];
	struct passwd pw, *found = NULL;

	buf_printf(out, "%s%s=%u", out->n ? " " : "", what, uid);
	if (getpwuid_r(uid, &pw, text, sizeof(text), &found) == 0 && found)
		buf_printf(out, "(%s)", found->pw_name);
}

/* As in id(1). The login id is the kernel's (audit); what sudo says is only as good as its caller. */
static void who_am_i(struct buf *out)
{
	const char *sudo = getenv("SUDO_USER");
	auto_free char *text = NULL;
	size_t n;

	add_user(out, "uid", getuid());
	if (file_read_at(AT_FDCWD, "/proc/self/loginuid", 64, &text, &n) == 0 &&
	    strtoul(text, NULL, 10) != LOGIN_NONE)
		add_user(out, "login", (uint32_t)strtoul(text, NULL, 10));
	if (getuid() == 0 && sudo && *sudo && strspn(sudo, NAME_CHARS) == strlen(sudo))
		buf_printf(out, " sudo=%.64s", sudo);
}

/* ---- writing ---- */

static int open_log(int dirfd, struct err *err)
{
	auto_close int fd = openat(dirfd, HOSTLOG_NAME,
				   O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, HOSTLOG_NAME ": %m");
	if (!S_ISREG(st.st_mode))
		return err_set(err, EMEDIUMTYPE, HOSTLOG_NAME ": no regular file");
	if (flock(fd, LOCK_EX) < 0)
		return err_set(err, errno, HOSTLOG_NAME ": lock: %m");
	return take_fd(fd);
}

struct log_end {
	uint64_t n; /* of the last entry, 0 = none */
	uint8_t hash[STORE_HASH_LEN];
	bool torn; /* bytes without a newline follow it */
};

/* The last whole line, out of the last bytes of the file. */
static int find_end(int fd, struct log_end *ret, struct err *err)
{
	auto_free char *tail = malloc(2 * HOSTLOG_LINE_MAX);
	struct hostlog_parts parts;
	off_t size = lseek(fd, 0, SEEK_END), from;
	const char *last, *end;
	ssize_t n;

	*ret = (struct log_end){ 0 };
	if (!tail || size < 0)
		return err_set(err, tail ? errno : ENOMEM, HOSTLOG_NAME ": %m");
	if (size == 0)
		return 0;
	from = size > 2 * HOSTLOG_LINE_MAX ? size - 2 * HOSTLOG_LINE_MAX : 0;
	n = pread(fd, tail, (size_t)(size - from), from);
	if (n != size - from)
		return err_set(err, n < 0 ? errno : EIO, HOSTLOG_NAME ": %m");
	end = memrchr(tail, '\n', (size_t)n);
	ret->torn = end != tail + n - 1;
	if (!end && from == 0)
		return 0; /* the very first was torn */
	last = end ? memrchr(tail, '\n', (size_t)(end - tail)) : NULL;
	last = last ? last + 1 : tail;
	if (!end || hostlog_parse((struct str){ last, (size_t)(end - last) }, &parts) < 0)
		return err_set(err, EBADMSG,
			       HOSTLOG_NAME ": its last line is none of ours; see `warder verify "
					    "--host-log`");
	ret->n = parts.line.n;
	memcpy(ret->hash, parts.hash, sizeof(ret->hash));
	return 0;
}

/* The line up to what its hash is about. */
static void write_body(struct buf *out, const struct hostlog_entry *e, const struct log_end *at)
{
	char time[RFC3339_NS_LEN + 1], prev[2 * STORE_HASH_LEN + 1];
	auto_buf struct buf who = { 0 };
	struct json j;

	rfc3339_ns(time, clock_real_ns());
	hash_to_hex(prev, at->hash);
	who_am_i(&who);
	json_init(&j, out);
	json_object_begin(&j);
	json_key(&j, "n");
	json_u64(&j, at->n + 1);
	json_key(&j, "time");
	json_strz(&j, time);
	json_key(&j, "kind");
	json_strz(&j, e->kind);
	json_key(&j, "session");
	json_strz(&j, e->session ? e->session : "");
	json_key(&j, "who");
	json_str(&j, (struct str){ who.p, who.n });
	json_key(&j, "data");
	json_raw(&j, e->data.n ? e->data : STR("{}"));
	json_key(&j, "prev");
	json_strz(&j, prev);
}

static int append_one(int fd, struct log_end *at, const struct hostlog_entry *e, int keys_dirfd,
		      struct err *err)
{
	auto_buf struct buf line = { 0 };
	struct key_signature sig;
	char hex[2 * STORE_HASH_LEN + 1];
	int r;

	buf_init(&line, 2 * HOSTLOG_LINE_MAX);
	if (at->torn)
		buf_addc(&line, '\n');
	write_body(&line, e, at);
	if (line.failed)
		return err_set(err, ENOMEM, HOSTLOG_NAME ": %m");
	r = hostlog_hash(at->hash, (struct str){ line.p + at->torn, line.n - at->torn });
	if (r < 0)
		return err_set(err, r, HOSTLOG_NAME ": %m");
	hash_to_hex(hex, at->hash);
	buf_printf(&line, ",\"hash\":\"%s\"", hex);
	if (keys_dirfd >= 0) {
		r = keys_sign(keys_dirfd, clock_real_ns(), at->hash, sizeof(at->hash), &sig, err);
		if (r < 0)
			return r;
		hostlog_write_sig(&line, &sig);
	}
	buf_addz(&line, "}\n");
	if (line.failed || line.n > HOSTLOG_LINE_MAX)
		return err_set(err, EMSGSIZE, HOSTLOG_NAME ": the entry is too long");
	r = fd_write_all(fd, line.p, line.n);
	if (r == 0 && fdatasync(fd) < 0)
		r = -errno;
	at->n++;
	at->torn = false;
	return r < 0 ? err_set(err, r, HOSTLOG_NAME ": %m") : 0;
}

int hostlog_append(int dirfd, const struct hostlog_entry *e, int keys_dirfd, struct err *err)
{
	static const struct hostlog_entry recovered = { .kind = "recovered" };
	auto_close int fd = open_log(dirfd, err);
	struct log_end at;
	int r;

	if (fd < 0)
		return fd;
	if (e->data.n > HOSTLOG_DATA_MAX)
		return err_set(err, EMSGSIZE, HOSTLOG_NAME ": the entry is too long");
	r = find_end(fd, &at, err);
	if (r == 0 && at.torn)
		r = append_one(fd, &at, &recovered, keys_dirfd, err);
	return r < 0 ? r : append_one(fd, &at, e, keys_dirfd, err);
}

/* ---- reading ---- */

struct log_walk {
	const struct verify_options *opt;
	hostlog_fn fn;
	void *arg;
	struct hostlog_report *report;
	uint8_t hash[STORE_HASH_LEN];
	uint64_t lines, covered; /* by the last signature: it is about the chain up to there */
	bool closed; /* ... and it ended with a newline, which a power cut does not write */
	bool torn;   /* the line before was no entry: only "recovered" may follow */
};

static int is_bad(struct log_walk *w, const char *what)
{
	struct hostlog_report *rep = w->report;

	rep->good = false;
	snprintf(rep->text, sizeof(rep->text),
		 "altered: line %llu: %s; the %llu entries before it are "
		 "as they were written",
		 (unsigned long long)w->lines, what, (unsigned long long)rep->entries);
	return 1;
}

static bool is_signed_by_known(const struct log_walk *w, const struct hostlog_parts *p)
{
	for (size_t i = 0; i < w->opt->n_keys; i++)
		if (key_signature_is_good(w->opt->keys[i], &p->sig, p->hash, sizeof(p->hash)))
			return true;
	return false;
}

static int check_line(struct log_walk *w, struct str text)
{
	struct hostlog_parts p;
	uint8_t hash[STORE_HASH_LEN];

	w->lines++;
	if (hostlog_parse(text, &p) < 0) {
		if (w->torn)
			return is_bad(w, "it is no entry");
		w->torn = w->closed = true;
		return 0;
	}
	memcpy(hash, w->hash, sizeof(hash));
	if (hostlog_hash(hash, p.body) < 0)
		return -EIO;
	if (w->torn && !str_eqz(p.line.kind, "recovered"))
		return is_bad(w, "what is before it is no entry");
	if (p.line.n != w->report->entries + 1 || memcmp(p.prev, w->hash, sizeof(p.prev)) != 0)
		return is_bad(
			w, "it does not follow the entry before it: something was taken out, put "
			   "in or changed");
	if (memcmp(hash, p.hash, sizeof(hash)) != 0)
		return is_bad(w, "its hash is not that of its text");
	if (w->opt->n_keys && p.line.is_signed && !is_signed_by_known(w, &p))
		return is_bad(
			w,
			"it is signed by none of the keys that were given (after `keys rotate`: give the old and the new)");
	memcpy(w->hash, p.hash, sizeof(w->hash));
	w->report->entries++;
	w->report->is_signed += p.line.is_signed;
	if (p.line.is_signed)
		w->covered = p.line.n;
	w->report->torn += w->torn;
	w->torn = w->closed = false;
	return w->fn ? w->fn(w->arg, &p.line) : 0;
}

static int walk_lines(struct log_walk *w, FILE *f)
{
	auto_free char *line = malloc(HOSTLOG_LINE_MAX + 1);
	size_t n = 0;
	int c, r = 0;

	if (!line)
		return -ENOMEM;
	while (r == 0 && (c = getc_unlocked(f)) != EOF) {
		if (c == '\n') {
			r = check_line(w, (struct str){ line, n });
			n = 0;
		} else if (n == HOSTLOG_LINE_MAX) {
			w->lines++;
			return is_bad(w, "it is longer than an entry can be");
		} else {
			line[n++] = (char)c;
		}
	}
	if (r == 0 && ferror(f))
		return -EIO;
	/* Torn now: the next entry will say so. */
	if (r == 0 && n)
		w->torn = true;
	return r;
}

int hostlog_walk(int dirfd, const struct verify_options *opt, hostlog_fn fn, void *arg,
		 struct hostlog_report *ret, struct err *err)
{
	static const struct verify_options none;
	struct log_walk w = { .opt = opt ? opt : &none, .fn = fn, .arg = arg, .report = ret };
	int fd = openat(dirfd, HOSTLOG_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), r;
	auto_file FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	struct stat st;

	*ret = (struct hostlog_report){ .good = true };
	if (f && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return err_set(err, EMEDIUMTYPE, HOSTLOG_NAME ": no regular file");
	if (!f) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return err_set(err, r, HOSTLOG_NAME ": %m");
	}
	r = walk_lines(&w, f);
	if (r < 0)
		return err_set(err, r, HOSTLOG_NAME ": %m");
	hash_to_hex(ret->head, w.hash);
	if (ret->good && w.closed)
		is_bad(&w, "it is no entry, and nothing was appended since");
	if (ret->good && w.opt->n_keys && w.covered < ret->entries) {
		ret->good = false;
		snprintf(ret->text, sizeof(ret->text),
			 "not signed: the last %llu of %llu entries are covered by no signature",
			 (unsigned long long)(ret->entries - w.covered),
			 (unsigned long long)ret->entries);
	}
	if (ret->good)
		snprintf(ret->text, sizeof(ret->text), "intact: %llu entries, %llu signed%s",
			 (unsigned long long)ret->entries, (unsigned long long)ret->is_signed,
			 w.torn ? "; its last line is torn, as a power cut leaves it" : "");
	return 0;
}
