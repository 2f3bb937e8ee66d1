/* SPDX-License-Identifier: Apache-2.0 */
// ours: capture
/* What the probes see of a command: runs it the way the launcher does (cgroup v2 leaf, init born into
 * it, payload as init's child) and prints each record as one JSON line, then the gaps and the counters.
 *
 *   probe_dump [options] -- COMMAND...
 *     --cgroup DIR   v2 directory to make the leaf in (default: the v2 mount)
 *     --urgent N --bulk N   ring sizes in bytes
 *     --kill MASK    kill_escape bits
 *     --off MASK     families of events that are not wanted (EVENTS_OFF_*)
 *     --slow MS      do not drain before the command has ended for that long (to overflow a ring)
 *     --watch        register as an existing cgroup; the command is moved in, no init
 *     --unprivileged drain from a forked child without any privilege
 *     --init-acts    the init calls unshare(CLONE_NEWUTS) itself, before the payload starts and once that has closed
 *                    its descriptor 8
 *     --forge-cred   when the command stops itself (SIGSTOP), make the kernel side believe that it had no
 *                    privilege before, and let it go on (--watch)
 *     --forge-uid    the same of its user id only
 *     --verbose      let libbpf talk
 *     --enforce E    an entry of the enforcement maps, repeatable: VERDICT:SORT:KEY[@KINDS], e.g.
 *                    deny:path:/etc, kill:path=:/etc/passwd (exact), kill:path^:/etc/pass (bytes),
 *                    deny:addr:10.0.0.0/8, deny:addr:::1/128,80-90, kill:exe:/bin/cat, kill:kind:file.open,
 *                    deny:escape:mknod, pass:path:/etc/ok; KINDS: file.open+exec. Ids count from 1.
 *     --watch-path P an entry of the watch list, also by the inode of that path here; repeatable
 *     --families     print families and features instead
 */
#include <bpf/bpf.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/helpers/v2_mount.h"
#include "userspace/base/auto.h"
#include "userspace/base/clock.h"
#include "userspace/base/json.h"
#include "userspace/capture/capture.h"
#include "userspace/capture/enforce.h"

static struct {
	const char *cgroup;
	struct capture_options capture;
	uint64_t kill_mask;
	uint32_t events_off;
	int slow_ms;
	bool watch, unprivileged, init_acts, families, forge_cred, forge_uid;
} opt = { .capture.quiet_libbpf = true };

static struct enforce_entry entries[64];
static size_t entries_n;

static struct watch_entry watch[16];
static char watch_host[16][4096];

static char leaf[512];
static int leaf_fd = -1;

static void die(const char *what)
{
	fprintf(stderr, "probe_dump: %s: %s\n", what, strerror(errno));
	exit(3);
}

/* ---- printing ---- */

static const char *kind_name(unsigned int kind)
{
#define KIND_CASE(id, name, text, family) \
	case id:                          \
		return text;
	switch (kind) {
		WIRE_KINDS(KIND_CASE)
	case WIRE_CHUNK:
		return "chunk";
	}
	return "unknown";
}

static const char *escape_name(unsigned int type)
{
#define ESCAPE_CASE(id, name, text) \
	case id:                    \
		return text;
	switch (type) {
		WIRE_ESCAPES(ESCAPE_CASE)
	}
	return "unknown";
}

static void put_u(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static void put_s(struct json *j, const char *key, const void *rec, size_t len, struct wire_str s)
{
	if (!s.len || s.off + s.len > len)
		return;
	json_key(j, key);
	json_str(j, (struct str){ (const char *)rec + s.off, s.len });
}

static void put_bytes(struct json *j, const char *key, const void *p, size_t n)
{
	json_key(j, key);
	json_base64(j, (struct str){ p, n });
}

static void put_exec(struct json *j, const void *rec, size_t len)
{
	struct wire_exec r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "exec_id", r.exec_id);
	put_u(j, "parent_start", r.parent_start);
	put_u(j, "cap_effective", r.cap_effective);
	put_u(j, "cap_permitted", r.cap_permitted);
	put_u(j, "ino", r.ino);
	put_u(j, "dev", r.dev);
	put_u(j, "nlink", r.nlink);
	put_u(j, "mode", r.mode);
	put_u(j, "args_total", r.args_total);
	put_u(j, "argc", r.argc);
	put_u(j, "env_total", r.env_total);
	put_u(j, "ruid", r.ruid);
	put_u(j, "loginuid", r.loginuid);
	put_u(j, "ns_mnt", r.ns_mnt);
	put_u(j, "ns_pid", r.ns_pid);
	put_u(j, "ns_net", r.ns_net);
	put_u(j, "ns_user", r.ns_user);
	put_u(j, "tty_nr", r.tty_nr);
	put_u(j, "stdin_type", r.stdin_type);
	put_u(j, "memfd", r.memfd);
	put_u(j, "secureexec", r.secureexec);
	put_u(j, "upper_layer", r.upper_layer);
	put_u(j, "exe_mtime", r.exe_mtime);
	put_u(j, "exe_ctime", r.exe_ctime);
	put_u(j, "exe_uid", r.exe_uid);
	put_u(j, "tries", r.tries);
	put_s(j, "exe", rec, len, r.exe);
	put_s(j, "script", rec, len, r.script);
	put_s(j, "cwd", rec, len, r.cwd);
	put_s(j, "tty", rec, len, r.tty);
	put_bytes(j, "args", (const char *)rec + r.args.off, r.args.len);
	put_bytes(j, "env", (const char *)rec + r.env.off, r.env.len);
	json_key(j, "ancestors");
	json_array_begin(j);
	for (int i = 0; i < r.ancestors_n && i < WIRE_ANCESTORS; i++) {
		json_object_begin(j);
		put_u(j, "tgid", r.ancestors[i].tgid);
		put_u(j, "start", r.ancestors[i].start);
		json_key(j, "comm");
		json_strz(j, r.ancestors[i].comm);
		json_object_end(j);
	}
	json_array_end(j);
}

static void put_file(struct json *j, const void *rec, size_t len)
{
	struct wire_file r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "ino", r.ino);
	put_u(j, "dev", r.dev);
	put_u(j, "size", r.size);
	put_u(j, "mode", r.mode);
	put_u(j, "open_flags", r.open_flags);
	json_key(j, "fd");
	json_i64(j, r.fd);
	put_u(j, "op", r.op);
	put_u(j, "id", r.id);
	put_u(j, "first_ts", r.first_ts);
	put_u(j, "count", r.count);
	put_u(j, "fuid", r.uid);
	put_u(j, "fgid", r.gid);
	put_s(j, "base", rec, len, r.base);
	put_s(j, "path", rec, len, r.path);
	put_s(j, "base2", rec, len, r.base2);
	put_s(j, "path2", rec, len, r.path2);
}

static void put_net(struct json *j, const void *rec, size_t len)
{
	struct wire_net r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "cookie", r.cookie);
	put_u(j, "bytes_out", r.bytes_out);
	put_u(j, "bytes_in", r.bytes_in);
	put_u(j, "family", r.family);
	put_u(j, "type", r.type);
	put_u(j, "proto", r.proto);
	put_u(j, "sport", r.sport);
	put_u(j, "dport", r.dport);
	put_u(j, "count", r.count);
	put_u(j, "packets_out", r.packets_out);
	put_u(j, "packets_in", r.packets_in);
	put_bytes(j, "saddr", r.saddr, 16);
	put_bytes(j, "daddr", r.daddr, 16);
	put_bytes(j, "path", (const char *)rec + r.path.off,
		  r.path.off + r.path.len <= len ? r.path.len : 0);
}

static void put_dns(struct json *j, const void *rec, size_t len)
{
	struct wire_dns r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "cookie", r.cookie);
	put_u(j, "family", r.family);
	put_u(j, "sport", r.sport);
	put_u(j, "dport", r.dport);
	put_u(j, "proto", r.proto);
	put_u(j, "total", r.total);
	put_u(j, "tcp_seq", r.tcp_seq);
	put_bytes(j, "saddr", r.saddr, 16);
	put_bytes(j, "daddr", r.daddr, 16);
	put_bytes(j, "data", (const char *)rec + r.data.off,
		  r.data.off + r.data.len <= len ? r.data.len : 0);
}

static void put_escape(struct json *j, const void *rec, size_t len)
{
	struct wire_escape r;

	memcpy(&r, rec, sizeof(r));
	json_key(j, "type");
	json_strz(j, escape_name(r.type));
	json_key(j, "args");
	json_array_begin(j);
	for (int i = 0; i < 6; i++)
		json_u64(j, r.args[i]);
	json_array_end(j);
	put_u(j, "old", r.old_value);
	put_u(j, "new", r.new_value);
	put_s(j, "detail", rec, len, r.detail);
	put_s(j, "detail2", rec, len, r.detail2);
}

static void put_mount(struct json *j, const void *rec, size_t len)
{
	struct wire_mount r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "op", r.op);
	put_u(j, "mount_flags", r.flags);
	put_s(j, "base", rec, len, r.base);
	put_s(j, "path", rec, len, r.path);
	put_s(j, "source", rec, len, r.source);
	put_s(j, "fstype", rec, len, r.fstype);
}

static void put_limit(struct json *j, const void *rec, size_t len)
{
	struct wire_limit_hit r;

	memcpy(&r, rec, sizeof(r));
	put_u(j, "type", r.type);
	put_u(j, "value", r.value);
	put_u(j, "used", r.used);
	put_u(j, "count", r.count);
	put_s(j, "target", rec, len, r.target);
}

static void put_small(struct json *j, unsigned int kind, const void *rec)
{
	if (kind == WIRE_CHUNK) {
		struct wire_chunk r;

		memcpy(&r, rec, sizeof(r));
		put_u(j, "exec_id", r.exec_id);
		put_u(j, "offset", r.offset);
		put_u(j, "n", r.n);
		put_u(j, "what", r.what);
		put_bytes(j, "data", (const char *)rec + sizeof(r), r.n);
	} else if (kind == WIRE_FORK) {
		struct wire_fork r;

		memcpy(&r, rec, sizeof(r));
		put_u(j, "child_start", r.child_start);
		put_u(j, "clone_flags", r.clone_flags);
		put_u(j, "child_tgid", r.child_tgid);
		put_u(j, "child_nspid", r.child_nspid);
	} else if (kind == WIRE_EXIT) {
		struct wire_exit r;

		memcpy(&r, rec, sizeof(r));
		put_u(j, "status", r.status);
		put_u(j, "utime_ns", r.utime_ns);
		put_u(j, "stime_ns", r.stime_ns);
	} else if (kind == WIRE_OOM) {
		struct wire_oom r;

		memcpy(&r, rec, sizeof(r));
		put_u(j, "total_vm", r.total_vm);
		put_u(j, "anon_rss", r.anon_rss);
		put_u(j, "file_rss", r.file_rss);
		put_u(j, "shmem_rss", r.shmem_rss);
		json_key(j, "oom_score_adj");
		json_i64(j, r.oom_score_adj);
	} else if (kind == WIRE_SIGNAL) {
		struct wire_signal r;

		memcpy(&r, rec, sizeof(r));
		put_u(j, "target_tgid", r.target_tgid);
		put_u(j, "sig", r.sig);
		json_key(j, "target_comm");
		json_strz(j, r.target_comm);
	}
}

static int print_record(void *arg, const void *rec, size_t len)
{
	static struct buf out;
	struct wire_hdr h;
	struct json j;

	(void)arg;
	buf_reset(&out);
	json_init(&j, &out);
	memcpy(&h, rec, sizeof(h));
	json_object_begin(&j);
	json_key(&j, "kind");
	json_strz(&j, kind_name(h.kind));
	put_u(&j, "len", len);
	put_u(&j, "flags", h.flags);
	put_u(&j, "seq", h.seq);
	put_u(&j, "ts", h.ts);
	put_u(&j, "start", h.start);
	put_u(&j, "cgid", h.cgid);
	put_u(&j, "sandbox", h.sandbox);
	put_u(&j, "tgid", h.tgid);
	put_u(&j, "tid", h.tid);
	put_u(&j, "ppid", h.ppid);
	put_u(&j, "uid", h.uid);
	put_u(&j, "gid", h.gid);
	put_u(&j, "nspid", h.nspid);
	json_key(&j, "ret");
	json_i64(&j, h.ret);
	put_u(&j, "nr", h.nr);
	put_u(&j, "cpu", h.cpu);
	put_u(&j, "ring", h.ring);
	json_key(&j, "comm");
	json_strz(&j, h.comm);
	if (h.enforced)
		put_u(&j, "enforced", h.enforced);
	if (h.len != len)
		put_u(&j, "BROKEN_HEADER", h.len);
	if (h.kind == WIRE_EXEC)
		put_exec(&j, rec, len);
	else if (h.kind >= WIRE_FILE_OPEN && h.kind < WIRE_MOUNT)
		put_file(&j, rec, len);
	else if (h.kind >= WIRE_NET_CONNECT && h.kind <= WIRE_NET_SOCKET)
		put_net(&j, rec, len);
	else if (h.kind == WIRE_DNS_QUERY || h.kind == WIRE_DNS_ANSWER)
		put_dns(&j, rec, len);
	else if (h.kind == WIRE_ESCAPE)
		put_escape(&j, rec, len);
	else if (h.kind == WIRE_MOUNT)
		put_mount(&j, rec, len);
	else if (h.kind == WIRE_LIMIT)
		put_limit(&j, rec, len);
	else
		put_small(&j, h.kind, rec);
	json_object_end(&j);
	buf_addc(&out, '\n');
	fwrite(out.p, 1, out.n, stdout);
	return 0;
}

static void print_end(struct capture *c)
{
	struct capture_gap gaps[64];
	struct capture_stats st;
	size_t i, n;

	if (!opt.unprivileged)
		capture_count_missed(c);
	n = capture_gaps(c, gaps, ARRAY_SIZE(gaps));

	for (i = 0; i < n; i++)
		printf("{\"kind\":\"GAP\",\"sandbox\":%u,\"of\":\"%s\",\"count\":%llu,"
		       "\"first_ts\":%llu,\"last_ts\":%llu,\"rate\":%s,\"missed\":%s}\n",
		       gaps[i].sandbox, kind_name(gaps[i].kind), (unsigned long long)gaps[i].count,
		       (unsigned long long)gaps[i].first_ts, (unsigned long long)gaps[i].last_ts,
		       gaps[i].rate ? "true" : "false", gaps[i].missed ? "true" : "false");
	capture_stats(c, &st);
	printf("{\"kind\":\"END\",\"records\":%llu,\"late\":%llu,\"fails\":[",
	       (unsigned long long)st.records, (unsigned long long)st.late);
	for (i = 0; i < FAIL_SITE_COUNT; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)st.fails[i]);
	printf("]}\n");
	fflush(stdout);
}

static void print_features(void)
{
	struct capture_feature row[48];
	size_t i, n;

	n = capture_features(row, ARRAY_SIZE(row));
	for (i = 0; i < n; i++)
		printf("{\"feature\":\"%s\",\"what\":\"%s\",\"ok\":%s,\"required\":%s,\"detail\":\"%s\"}\n",
		       row[i].name, row[i].what, row[i].ok ? "true" : "false",
		       row[i].required ? "true" : "false", row[i].detail);
}

static void print_families(struct capture *c)
{
	struct capture_family_state fam[16];
	size_t i, n = capture_families(c, fam, ARRAY_SIZE(fam));

	for (i = 0; i < n; i++)
		printf("{\"family\":\"%s\",\"tier\":\"%s\",\"hook\":\"%s\",\"ok\":%s,\"detail\":\"%s\"}\n",
		       fam[i].name, fam[i].tier, fam[i].hook, fam[i].ok ? "true" : "false",
		       fam[i].detail);
}

/* ---- running the command ---- */

static void remove_leaf(void)
{
	char cmd[600];
	int fd;

	if (leaf_fd < 0)
		return;
	fd = openat(leaf_fd, "cgroup.kill", O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, "1", 1);
	for (int i = 0; i < 200; i++) {
		snprintf(cmd, sizeof(cmd), "%s/sub", leaf);
		rmdir(cmd);
		if (rmdir(leaf) == 0 || errno == ENOENT)
			return;
		usleep(10000);
	}
}

static pid_t clone_into(int cgroup_fd)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP,
				   .exit_signal = SIGCHLD,
				   .cgroup = (uint64_t)cgroup_fd };

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The launcher's pid 1: sets things up, starts the payload, ends with its status. */
static void init_main(char **argv)
{
	int status;
	int started[2];
	pid_t pid;
	char c;

	if (opt.init_acts && (pipe(started) < 0 || dup2(started[1], 8) < 0 ||
			      close(started[1]) < 0 || unshare(CLONE_NEWUTS) < 0))
		die("init");
	pid = fork();
	if (pid == 0) {
		if (opt.init_acts)
			(void)!unshare(CLONE_NEWIPC);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (opt.init_acts) {
		close(8);
		(void)!read(started[0], &c, 1); /* nothing, as soon as nobody has the other end */
		(void)!unshare(CLONE_NEWUTS);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* An existing process that is moved into the cgroup, as for `warder watch`. */
static pid_t start_watched(char **argv)
{
	char text[32];
	int fd;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	fd = openat(leaf_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%d", getpid());
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(3);
	execvp(argv[0], argv);
	_exit(127);
}

/* No exploit at hand, so the other side of the comparison is changed: the snapshot of before. */
static void forge_cred(int pidfd)
{
	struct bpf_map_info info;
	struct task_state st;
	uint32_t id = 0, n;
	int fd, found = -1;

	while (bpf_map_get_next_id(id, &id) == 0) {
		fd = bpf_map_get_fd_by_id(id);
		n = sizeof(info);
		memset(&info, 0, sizeof(info));
		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &n) == 0 &&
		    info.type == BPF_MAP_TYPE_TASK_STORAGE && strcmp(info.name, "tasks") == 0 &&
		    bpf_map_lookup_elem(fd, &pidfd, &st) == 0)
			found = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (found < 0)
		die("forge: no state of the command");
	st.cred = 1;
	if (!opt.forge_uid)
		st.caps = 0;
	st.may_root = 0;
	st.uids[0] = st.uids[1] = st.uids[2] = 65534;
	if (bpf_map_update_elem(found, &pidfd, &st, BPF_EXIST) < 0)
		die("forge");
	close(found);
}

static void drain_all(struct capture *c, bool flush)
{
	size_t held;

	do {
		capture_drain(c, flush, print_record, NULL, &held);
	} while (flush && held);
}

/* What init leaves behind may still be on its way out. */
static void wait_empty(void)
{
	char text[128];
	ssize_t n;
	int fd;

	for (int i = 0; i < 500; i++) {
		fd = openat(leaf_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		if (fd >= 0)
			close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (n <= 0 || strstr(text, "populated 0"))
			return;
		usleep(10000);
	}
}

static int drain_until(struct capture *c, int done_fd)
{
	struct pollfd pf[2] = { { .fd = capture_fd(c), .events = POLLIN },
				{ .fd = done_fd, .events = POLLIN } };
	size_t held = 0;

	for (;;) {
		poll(pf, 2, held ? 1 : CAPTURE_TICK_MS);
		if (!opt.slow_ms)
			capture_drain(c, false, print_record, NULL, &held);
		if (pf[1].revents)
			break;
	}
	usleep((useconds_t)opt.slow_ms * 1000);
	wait_empty();
	drain_all(c, true);
	print_end(c);
	return 0;
}

static void drop_privilege(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2] = { { 0 } };

	if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
	    setresuid(65534, 65534, 65534) < 0)
		die("drop privilege");
	(void)!syscall(SYS_capset, &h, d);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static uint64_t kinds_by_name(char *list)
{
	char *save = NULL;
	uint64_t kinds = 0;

	for (char *w = strtok_r(list, "+", &save); w; w = strtok_r(NULL, "+", &save))
		for (unsigned int k = 1; k < ENFORCE_KINDS; k++)
			if (strcmp(kind_name(k), w) == 0)
				kinds |= ENFORCE_KIND(k);
	return kinds;
}

/* ADDRESS/BITS[,FROM-TO] */
static void parse_addr(struct enforce_entry *e, char *key)
{
	char *slash = strchr(key, '/');
	unsigned int bits = 0, from = 0, to = 0;

	if (!slash || sscanf(slash + 1, "%u,%u-%u", &bits, &from, &to) < 1)
		die("--enforce addr");
	*slash = 0;
	e->addr.family = strchr(key, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(e->addr.family, key, e->addr.ip) != 1)
		die("--enforce addr");
	e->addr.bits = (uint8_t)bits;
	e->addr.port_from = (uint16_t)from;
	e->addr.port_to = (uint16_t)to;
}

/* The kernel's number of a file's device: an overlay shows another one in stat. */
static uint32_t kernel_dev(dev_t d)
{
	return major(d) << 20 | minor(d);
}

static void parse_entry(char *text)
{
	static const char *const verdicts[] = { "pass", "deny", "kill" };
	static const char *const sorts[] = { "kind", "escape", "path", "exe", "addr" };
	struct enforce_entry *e = &entries[entries_n];
	char *sort = strchr(text, ':'), *key = sort ? strchr(sort + 1, ':') : NULL, *kinds;
	struct stat st;

	if (!key || entries_n == ARRAY_SIZE(entries))
		die("--enforce");
	*sort++ = 0;
	*key++ = 0;
	kinds = strrchr(key, '@');
	if (kinds) {
		*kinds++ = 0;
		e->kinds = kinds_by_name(kinds);
	}
	e->id = (uint16_t)++entries_n;
	for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++)
		if (strcmp(text, verdicts[i]) == 0)
			e->verdict = (uint16_t)i;
	e->path.exact = sort[strlen(sort) - 1] == '=';
	e->path.bytes = sort[strlen(sort) - 1] == '^';
	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++)
		if (strncmp(sort, sorts[i], strlen(sorts[i])) == 0)
			e->by = (uint16_t)i;
	if (e->by == ENFORCE_BY_KIND) {
		e->kinds = kinds_by_name(key);
	} else if (e->by == ENFORCE_BY_ESCAPE) {
		for (unsigned int t = 1; t < ENFORCE_KINDS; t++)
			if (strcmp(escape_name(t), key) == 0)
				e->escape = t;
	} else if (e->by == ENFORCE_BY_PATH) {
		e->path.path = key;
		e->path.cut = true;
	} else if (e->by == ENFORCE_BY_EXE) {
		if (sscanf(key, "%u/%lu", &e->exe.dev, &e->exe.ino) != 2) {
			if (stat(key, &st) < 0)
				die(key);
			e->exe.dev = kernel_dev(st.st_dev);
			e->exe.ino = st.st_ino;
		}
	} else {
		parse_addr(e, key);
	}
}

/* Without the final slash: to be found here. */
static void add_watch(const char *text)
{
	size_t i = opt.capture.watch_n++, n;

	if (i == ARRAY_SIZE(watch))
		die("--watch-path");
	n = (size_t)snprintf(watch_host[i], sizeof(watch_host[i]), "%s", text);
	if (n > 1 && n < sizeof(watch_host[i]) && watch_host[i][n - 1] == '/')
		watch_host[i][n - 1] = 0;
	watch[i] = (struct watch_entry){ .text = text, .host_path = watch_host[i] };
	opt.capture.watch = watch;
}

static void parse(int argc, char **argv, char ***ret_cmd)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--watch") == 0)
			opt.watch = true;
		else if (strcmp(argv[i], "--unprivileged") == 0)
			opt.unprivileged = true;
		else if (strcmp(argv[i], "--init-acts") == 0)
			opt.init_acts = true;
		else if (strcmp(argv[i], "--forge-cred") == 0)
			opt.forge_cred = true;
		else if (strcmp(argv[i], "--forge-uid") == 0)
			opt.forge_cred = opt.forge_uid = true;
		else if (strcmp(argv[i], "--verbose") == 0)
			opt.capture.quiet_libbpf = false;
		else if (strcmp(argv[i], "--families") == 0)
			opt.families = true;
		else if (i + 1 < argc && strcmp(argv[i], "--cgroup") == 0)
			opt.cgroup = argv[++i];
		else if (i + 1 < argc && strcmp(argv[i], "--urgent") == 0)
			opt.capture.urgent_bytes = strtoul(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--bulk") == 0)
			opt.capture.bulk_bytes = strtoul(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--kill") == 0)
			opt.kill_mask = strtoull(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--off") == 0)
			opt.events_off = (uint32_t)strtoul(argv[++i], NULL, 0);
		else if (i + 1 < argc && strcmp(argv[i], "--watch-path") == 0)
			add_watch(argv[++i]);
		else if (i + 1 < argc && strcmp(argv[i], "--enforce") == 0)
			parse_entry(argv[++i]);
		else if (i + 1 < argc && strcmp(argv[i], "--slow") == 0)
			opt.slow_ms = atoi(argv[++i]);
		else {
			fprintf(stderr, "probe_dump: bad option '%s'\n", argv[i]);
			exit(2);
		}
	}
	*ret_cmd = i < argc ? argv + i + 1 : NULL;
	if (!opt.families && (!*ret_cmd || !**ret_cmd)) {
		fprintf(stderr, "probe_dump: no command\n");
		exit(2);
	}
}

static void make_leaf(void)
{
	snprintf(leaf, sizeof(leaf), "%s/warder-probe-%d", opt.cgroup ? opt.cgroup : v2_mount(),
		 getpid());
	if (mkdir(leaf, 0755) < 0)
		die(leaf);
	leaf_fd = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf_fd < 0)
		die(leaf);
}

int main(int argc, char **argv)
{
	struct sandbox_cfg cfg = { .id = 7 };
	struct capture *c = NULL;
	struct err err = { 0 };
	int done[2], pidfd, status = 0;
	pid_t pid, drainer = -1;
	uint64_t t0 = clock_boot_ns();
	char **cmd;

	parse(argc, argv, &cmd);
	opt.capture.enforce = entries_n > 0;
	if (opt.families)
		print_features();
	if (capture_open(&c, &opt.capture, &err) < 0) {
		fprintf(stderr, "probe_dump: %s\n", err_text(&err));
		return 3;
	}
	fprintf(stderr, "probe_dump: probes ready after %.1f ms\n",
		(double)(clock_boot_ns() - t0) / 1e6);
	if (opt.families) {
		print_families(c);
		capture_close(c);
		return 0;
	}
	make_leaf();
	cfg.kill_escape = opt.kill_mask;
	cfg.events_off = opt.events_off;
	if (entries_n) {
		cfg.enforce = 1;
		if (capture_enforce_load(c, 1, entries, entries_n, &err) < 0) {
			fprintf(stderr, "probe_dump: %s\n", err_text(&err));
			remove_leaf();
			return 3;
		}
	}
	cfg.flags = opt.watch ? SANDBOX_F_WATCH : 0;
	if (capture_watch(c, leaf_fd, &cfg, &err) < 0) {
		fprintf(stderr, "probe_dump: %s\n", err_text(&err));
		remove_leaf();
		return 3;
	}
	if (pipe2(done, O_CLOEXEC) < 0)
		die("pipe");
	printf("{\"kind\":\"BEGIN\",\"leaf\":\"%s\",\"self\":%d}\n", leaf, getpid());
	fflush(stdout);
	if (opt.unprivileged) {
		drainer = fork();
		if (drainer == 0) {
			close(done[1]);
			drop_privilege();
			_exit(drain_until(c, done[0]));
		}
	}

	pid = opt.watch ? start_watched(cmd) : clone_into(leaf_fd);
	if (pid < 0) {
		fprintf(stderr, "probe_dump: start: %s\n", strerror(errno));
		remove_leaf();
		return 3;
	}
	if (pid == 0)
		init_main(cmd);
	if (drainer < 0) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd < 0)
			die("pidfd_open");
		if (opt.forge_cred) {
			siginfo_t si;

			if (waitid(P_PID, (id_t)pid, &si, WSTOPPED) < 0)
				die("waiting for the command to stop itself");
			forge_cred(pidfd);
			kill(pid, SIGCONT);
		}
		drain_until(c, pidfd);
	}
	waitpid(pid, &status, 0);
	if (drainer > 0) {
		close(done[1]); /* tells it */
		waitpid(drainer, NULL, 0);
	}
	remove_leaf();
	capture_kill_left(c, leaf_fd);
	capture_unwatch(c, leaf_fd);
	capture_close(c);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
