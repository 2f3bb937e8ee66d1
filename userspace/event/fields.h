/* SPDX-License-Identifier: Apache-2.0 */
/* The schema: one row a field. The enum, JSON, rule fields, `warder fields`, OCSF/ECS/CEF and the man
 * page come from these rows. Rows with the same prefix stand together: JSON nests by the dot.
 * Columns: id, name, type, families in which it may appear, doc. */
#ifndef WARDER_EVENT_FIELDS_H
#define WARDER_EVENT_FIELDS_H

/* A field's slot type. */
enum field_type {
	FT_STR, /* bytes; not always UTF-8 */
	FT_U64,
	FT_I64,
	FT_BOOL,
	FT_TIME,      /* u64, ns since the epoch; RFC 3339 in JSON */
	FT_HEX,	      /* u64, "0x..." in JSON */
	FT_IP,	      /* struct ip_addr */
	FT_STRLIST,   /* struct str array */
	FT_ANCESTORS, /* struct event_ancestor array */
	FT_ANSWERS,   /* struct event_dns_answer array */
	FT_MEMBERS, /* struct str: a JSON object of single values and lists of them, always valid */
};

/* Families, as in WIRE_KINDS; ALL = every kind. */
#define FAM_PROC    0x001
#define FAM_FILE    0x002
#define FAM_NET	    0x004
#define FAM_DNS	    0x008
#define FAM_LIMIT   0x010
#define FAM_ESCAPE  0x020
#define FAM_SESSION 0x040
#define FAM_RULE    0x080
#define FAM_AGENT   0x100
#define FAM_WORK    0x200 /* what a comparison of the workspace found; no process */
#define FAM_ALL	    0x3ff
#define FAM_KERNEL  (FAM_PROC | FAM_FILE | FAM_NET | FAM_DNS | FAM_LIMIT | FAM_ESCAPE)
#define FAM_SUBJECT (FAM_KERNEL | FAM_RULE) /* kinds with a process */

/* clang-format off */
#define EVENT_FIELDS(X)                                                                            \
	X(V, "v", FT_U64, FAM_ALL, "schema version")                                               \
	X(ID, "id", FT_STR, FAM_ALL, "stable id: session and sequence; equal ids are one event")   \
	X(SEQ, "seq", FT_U64, FAM_ALL, "position in the session's journal, without holes")         \
	X(TIME, "time", FT_TIME, FAM_ALL, "wall-clock time of the event")                          \
	X(MONO, "mono", FT_U64, FAM_ALL, "nanoseconds since boot (CLOCK_BOOTTIME)")                \
	X(KIND, "kind", FT_STR, FAM_ALL, "event kind")                                             \
	X(REDACTIONS, "redactions", FT_U64, FAM_ALL, "places in it where a secret was taken out")  \
	X(VANTAGE, "vantage", FT_STR, FAM_ALL, "who saw it: kernel, guest, runtime or agent")      \
	X(SESSION, "session", FT_STR, FAM_ALL, "session id (ULID)")                                \
	X(SANDBOX, "sandbox", FT_STR, FAM_ALL, "name of the sandbox")                              \
	X(TENANT, "tenant", FT_STR, FAM_ALL, "tenant the session belongs to")                      \
	X(HOST, "host", FT_STR, FAM_ALL, "name of the host")                                       \
	X(OUTCOME, "outcome", FT_STR, FAM_SUBJECT | FAM_AGENT, "success, failure, denied or pending")          \
	X(ERRNO, "errno", FT_STR, FAM_SUBJECT, "name of the error when outcome is not success")    \
	X(SYSCALL, "syscall", FT_STR, FAM_KERNEL, "system call that did it")                       \
	X(TOCTOU, "toctou", FT_BOOL, FAM_KERNEL,                                                   \
	  "a string came from user memory: could be forged")                                       \
	X(TRUNCATED, "truncated", FT_BOOL, FAM_KERNEL,                                             \
	  "something in the event was cut at a limit")                                             \
	X(ENFORCE_VERDICT, "enforce.verdict", FT_STR, FAM_KERNEL,                                  \
	  "what the kernel did by itself: deny or kill")                                           \
	X(ENFORCE_ENTRY, "enforce.entry", FT_U64, FAM_KERNEL,                                      \
	  "which entry of the enforcement maps decided that")                                      \
	X(DEGRADED, "degraded", FT_STRLIST, FAM_ALL, "what could not be seen, by probe family")    \
	X(PROC_PID, "proc.pid", FT_U64, FAM_SUBJECT, "process id on the host")                     \
	X(PROC_TID, "proc.tid", FT_U64, FAM_SUBJECT, "thread id on the host")                      \
	X(PROC_NSPID, "proc.nspid", FT_U64, FAM_SUBJECT, "process id inside the sandbox")          \
	X(PROC_PPID, "proc.ppid", FT_U64, FAM_SUBJECT, "parent's process id on the host")          \
	X(PROC_UID, "proc.uid", FT_U64, FAM_SUBJECT, "effective user id on the host")              \
	X(PROC_GID, "proc.gid", FT_U64, FAM_SUBJECT, "effective group id on the host")             \
	X(PROC_RUID, "proc.ruid", FT_U64, FAM_PROC, "real user id on the host")                    \
	X(PROC_LOGINUID, "proc.loginuid", FT_I64, FAM_PROC, "audit login uid; -1 = not set")       \
	X(PROC_COMM, "proc.comm", FT_STR, FAM_SUBJECT, "kernel's 15-byte task name")               \
	X(PROC_EXE, "proc.exe", FT_STR, FAM_SUBJECT, "resolved path of the running executable")    \
	X(PROC_SCRIPT, "proc.script", FT_STR, FAM_PROC, "script, when exe is its interpreter")     \
	X(PROC_ARGS, "proc.args", FT_STRLIST, FAM_SUBJECT, "argument vector, argv[0] included")    \
	X(PROC_ARGC, "proc.argc", FT_U64, FAM_PROC, "number of arguments")                         \
	X(PROC_ARGS_LEN, "proc.args_len", FT_U64, FAM_PROC, "bytes of argv, NULs included")        \
	X(PROC_ARGS_TRUNCATED, "proc.args_truncated", FT_BOOL, FAM_SUBJECT, "argv was cut")        \
	X(PROC_ARGS_TAIL, "proc.args_tail", FT_STRLIST, FAM_PROC,                                  \
	  "last 32 KiB of an argv that was cut; the first word may be half a word")                \
	X(PROC_ARGS_SHA256, "proc.args_sha256", FT_STR, FAM_PROC,                                  \
	  "SHA-256 of an argv that was cut, NULs included: of proc.args_hashed bytes of it")       \
	X(PROC_ARGS_HASHED, "proc.args_hashed", FT_U64, FAM_PROC,                                  \
	  "bytes hashed: all, or with more than 256 KiB the first 224 and the last 32 KiB")        \
	X(PROC_ENV, "proc.env", FT_STRLIST, FAM_PROC,                                              \
	  "names in the environment; NAME=VALUE of those chosen (--watch-env)")                    \
	X(PROC_ENV_LEN, "proc.env_len", FT_U64, FAM_PROC, "bytes of the environment")              \
	X(PROC_ENV_TRUNCATED, "proc.env_truncated", FT_BOOL, FAM_PROC,                             \
	  "the environment was not seen to its end (32 KiB)")                                      \
	X(PROC_CWD, "proc.cwd", FT_STR, FAM_SUBJECT, "working directory at exec")                  \
	X(PROC_START, "proc.start", FT_U64, FAM_SUBJECT, "start, ns since boot; with pid unique")  \
	X(PROC_RUNTIME, "proc.runtime", FT_BOOL, FAM_SUBJECT,                                      \
	  "Warder's own init in the sandbox, not the payload")                                     \
	X(PROC_PART, "proc.part", FT_STR, FAM_SUBJECT,                                             \
	  "of a process of gVisor on the host: cli gofer sentry stub")                             \
	X(PROC_TTY, "proc.tty", FT_STR, FAM_PROC, "controlling terminal")                          \
	X(PROC_STDIN, "proc.stdin", FT_STR, FAM_PROC, "type of fd 0: tty pipe socket file null other none")   \
	X(PROC_CAPS, "proc.caps", FT_HEX, FAM_PROC, "effective capabilities")                      \
	X(PROC_CAPS_PERMITTED, "proc.caps_permitted", FT_HEX, FAM_PROC, "permitted capabilities")  \
	X(PROC_EXE_INO, "proc.exe_ino", FT_U64, FAM_PROC, "inode of the executable")               \
	X(PROC_EXE_DEV, "proc.exe_dev", FT_STR, FAM_PROC, "device of the executable, major:minor") \
	X(PROC_EXE_MTIME, "proc.exe_mtime", FT_TIME, FAM_PROC,                                     \
	  "when the executable's content last changed")                                            \
	X(PROC_EXE_CTIME, "proc.exe_ctime", FT_TIME, FAM_PROC,                                     \
	  "when the executable's inode last changed; cannot be set back")                          \
	X(PROC_EXE_UID, "proc.exe_uid", FT_U64, FAM_PROC, "owner of the executable, on the host")  \
	X(PROC_EXE_MODE, "proc.exe_mode", FT_U64, FAM_PROC,                                        \
	  "mode of the executable, decimal: 2048 is the set-user-id bit")                          \
	X(PROC_MEMFD, "proc.memfd", FT_BOOL, FAM_PROC, "executable is a memfd: fileless")          \
	X(PROC_DELETED, "proc.deleted", FT_BOOL, FAM_PROC, "executable has no name left")          \
	X(PROC_DROPPED, "proc.dropped", FT_BOOL, FAM_PROC,                                         \
	  "executable was written in the sandbox or lies in an overlay's upper layer")                                                 \
	X(PROC_DROPPED_BY, "proc.dropped_by", FT_STR, FAM_PROC,                                    \
	  "task name of the program in the sandbox that wrote it")                                 \
	X(PROC_SETUID, "proc.setuid", FT_BOOL, FAM_PROC, "exec raised privilege (secureexec)")     \
	X(PROC_PEXE, "proc.pexe", FT_STR, FAM_SUBJECT, "executable of the parent")                 \
	X(PROC_PCOMM, "proc.pcomm", FT_STR, FAM_SUBJECT, "task name of the parent")                \
	X(PROC_PARGS, "proc.pargs", FT_STRLIST, FAM_PROC, "argument vector of the parent")         \
	X(PROC_ANCESTORS, "proc.ancestors", FT_ANCESTORS, FAM_SUBJECT,                             \
	  "parent first, to the sandbox's pid 1")                                                  \
	X(EXEC_PATH, "exec.path", FT_STR, FAM_PROC,                                                \
	  "exec that failed: program asked for; proc.* is who asked")                              \
	X(EXEC_TRIES, "exec.tries", FT_U64, FAM_PROC,                                              \
	  "exec that failed: names tried in a row for it (PATH search)")                           \
	X(CHILD_PID, "child.pid", FT_U64, FAM_PROC, "pid of the new process on the host")          \
	X(CHILD_NSPID, "child.nspid", FT_U64, FAM_PROC, "pid of the new process in the sandbox")   \
	X(CHILD_START, "child.start", FT_U64, FAM_PROC, "start of the new process, ns since boot") \
	X(CHILD_FLAGS, "child.flags", FT_HEX, FAM_PROC, "clone flags")                             \
	X(PACKAGE_MANAGER, "package.manager", FT_STR, FAM_PROC,                                    \
	  "pip npm apt deb apk rpm cargo gem go conda pacman composer")                            \
	X(PACKAGE_NAME, "package.name", FT_STR, FAM_PROC, "package as asked for or found")         \
	X(PACKAGE_VERSION, "package.version", FT_STR, FAM_PROC,                                    \
	  "version as asked for (may be a range) or found")                                        \
	X(PACKAGE_REGISTRY, "package.registry", FT_STR, FAM_PROC,                                  \
	  "registry that the command line names instead of the usual one")                         \
	X(PACKAGE_URL, "package.url", FT_STR, FAM_PROC,                                            \
	  "installed from this URL or path, not by name from a registry")                          \
	X(PACKAGE_HASH, "package.hash", FT_STR, FAM_PROC, "hash that the command line asks for")   \
	X(PACKAGE_MORE, "package.more", FT_U64, FAM_PROC,                                          \
	  "packages of the same command line that are not told: there were too many")              \
	X(PACKAGE_FROM, "package.from", FT_STR, FAM_PROC,                                          \
	  "command: asked for; files: seen to be written")                                         \
	X(EXIT_CODE, "exit.code", FT_U64, FAM_PROC | FAM_SESSION, "exit code")                     \
	X(EXIT_SIGNAL, "exit.signal", FT_STR, FAM_PROC | FAM_SESSION, "signal that ended it")      \
	X(EXIT_CORE, "exit.core", FT_BOOL, FAM_PROC, "core was dumped")                            \
	X(EXIT_UTIME, "exit.utime_ns", FT_U64, FAM_PROC, "user CPU time")                          \
	X(EXIT_STIME, "exit.stime_ns", FT_U64, FAM_PROC, "system CPU time")                        \
	X(SIGNAL_NAME, "signal.name", FT_STR, FAM_PROC, "signal sent")                             \
	X(SIGNAL_TARGET, "signal.target", FT_U64, FAM_PROC, "pid of the receiver")                 \
	X(SIGNAL_COMM, "signal.comm", FT_STR, FAM_PROC, "task name of the receiver")               \
	X(FILE_PATH, "file.path", FT_STR, FAM_FILE | FAM_WORK, "absolute path as the sandbox sees it")        \
	X(FILE_NAME, "file.name", FT_STR, FAM_FILE | FAM_WORK, "last component of the path")                  \
	X(FILE_OLD_PATH, "file.old_path", FT_STR, FAM_FILE,                                        \
	  "rename: path before; link: existing name")                                              \
	X(FILE_RAW_PATH, "file.raw_path", FT_STR, FAM_FILE,                                        \
	  "string that the caller passed, when other")                                             \
	X(FILE_HOST_PATH, "file.host_path", FT_STR, FAM_FILE | FAM_WORK,                                      \
	  "where that is on the host, when elsewhere; absent: the sandbox's own, or not known")    \
	X(FILE_WATCHED, "file.watched", FT_STR, FAM_FILE,                                          \
	  "entry of the operator's watch list (--watch) that it falls under")                      \
	X(FILE_PATH_TRUNCATED, "file.path_truncated", FT_BOOL, FAM_FILE,                           \
	  "path was cut: its beginning is not known")                                              \
	X(FILE_FLAGS, "file.flags", FT_STRLIST, FAM_FILE, "open flags by name")                    \
	X(FILE_WRITE, "file.write", FT_BOOL, FAM_FILE, "opened for writing")                       \
	X(FILE_CREATED, "file.created", FT_BOOL, FAM_FILE, "O_CREAT was given")                    \
	X(FILE_MODE, "file.mode", FT_U64, FAM_FILE | FAM_WORK, "mode of the object, decimal")                 \
	X(FILE_TYPE, "file.type", FT_STR, FAM_FILE | FAM_WORK,                                                \
	  "regular directory symlink char block fifo socket")                                      \
	X(FILE_FD, "file.fd", FT_I64, FAM_FILE, "file descriptor returned")                        \
	X(FILE_INO, "file.ino", FT_U64, FAM_FILE, "inode number")                                  \
	X(FILE_DEV, "file.dev", FT_STR, FAM_FILE, "device, major:minor")                           \
	X(FILE_BYTES, "file.bytes", FT_U64, FAM_FILE,                                              \
	  "write: bytes so far; truncate, mmap: length")                                           \
	X(FILE_WRITES, "file.writes", FT_U64, FAM_FILE, "write: how many writes that were")        \
	X(FILE_FIRST_WRITE, "file.first_write", FT_U64, FAM_FILE,                                  \
	  "write: when the first one was, ns since boot")                                          \
	X(FILE_OPEN_ID, "file.open_id", FT_U64, FAM_FILE,                                          \
	  "joins the open and the writes of an open file")                                         \
	X(FILE_PROT, "file.prot", FT_STRLIST, FAM_FILE, "mmap: read write exec, as asked for")     \
	X(FILE_RDEV, "file.rdev", FT_STR, FAM_FILE, "mknod: device made, major:minor")             \
	X(FILE_OP, "file.op", FT_STR, FAM_FILE,                                                    \
	  "attr: chmod chown setxattr truncate; link: hard symbolic; write: first total")                              \
	X(FILE_XATTR, "file.xattr", FT_STR, FAM_FILE, "attr: extended attribute that was set")     \
	X(FILE_UID, "file.uid", FT_U64, FAM_FILE, "owner given to chown")                          \
	X(FILE_GID, "file.gid", FT_U64, FAM_FILE, "group given to chown")                          \
	X(FILE_DELETED, "file.deleted", FT_BOOL, FAM_FILE, "the file had no name left")            \
	X(FILE_UNREACHABLE, "file.unreachable", FT_BOOL, FAM_FILE, "outside the process's root")   \
	X(FILE_CHANGE, "file.change", FT_STR, FAM_WORK, "workspace: created changed deleted")      \
	X(FILE_SIZE, "file.size", FT_U64, FAM_WORK, "workspace: bytes now")                        \
	X(FILE_SIZE_BEFORE, "file.size_before", FT_U64, FAM_WORK, "workspace: bytes at the start") \
	X(FILE_SHA256, "file.sha256", FT_STR, FAM_WORK, "workspace: SHA-256 of what is in it now") \
	X(FILE_SHA256_BEFORE, "file.sha256_before", FT_STR, FAM_WORK,                              \
	  "workspace: SHA-256 of what was in it at the start")                                     \
	X(FILE_MODE_BEFORE, "file.mode_before", FT_U64, FAM_WORK, "workspace: mode at the start")  \
	X(FILE_EXECUTABLE, "file.executable", FT_BOOL, FAM_WORK,                                   \
	  "workspace: somebody may execute the file now")                                          \
	X(FILE_EXECUTABLE_BEFORE, "file.executable_before", FT_BOOL, FAM_WORK,                     \
	  "workspace: somebody could execute it at the start")                                     \
	X(FILE_TARGET, "file.target", FT_STR, FAM_WORK, "workspace: what a symbolic link says")    \
	X(FILE_UNHASHED, "file.unhashed", FT_STR, FAM_WORK,                                        \
	  "workspace: why there is no SHA-256: size budget time unreadable redacted")                       \
	X(FILE_TEXT, "file.text", FT_STR, FAM_WORK,                                                \
	  "workspace: its text is kept in the bundle as blobs/<this>")                             \
	X(FILE_TEXT_BEFORE, "file.text_before", FT_STR, FAM_WORK,                                  \
	  "workspace: the text at the start, likewise")                                            \
	X(WORKSPACE_WHEN, "workspace.when", FT_STR, FAM_SESSION,                                      \
	  "scan: stop, or demand while the sandbox ran")                                           \
	X(WORKSPACE_PLACES, "workspace.places", FT_STRLIST, FAM_SESSION,                              \
	  "scan: what was compared, as the sandbox sees it")                                       \
	X(WORKSPACE_FILES, "workspace.files", FT_U64, FAM_SESSION, "scan: files looked at")           \
	X(WORKSPACE_BYTES, "workspace.bytes", FT_U64, FAM_SESSION, "scan: bytes hashed")              \
	X(WORKSPACE_CREATED, "workspace.created", FT_U64, FAM_SESSION, "scan: files created")         \
	X(WORKSPACE_CHANGED, "workspace.changed", FT_U64, FAM_SESSION, "scan: files changed")         \
	X(WORKSPACE_DELETED, "workspace.deleted", FT_U64, FAM_SESSION, "scan: files deleted")         \
	X(WORKSPACE_SKIPPED, "workspace.skipped", FT_U64, FAM_SESSION,                                \
	  "scan: files not looked at, or not told: as far as they were counted")                   \
	X(WORKSPACE_UNHASHED, "workspace.unhashed", FT_U64, FAM_SESSION,                              \
	  "scan: changes told without a SHA-256")                                                  \
	X(WORKSPACE_WHY, "workspace.why", FT_STRLIST, FAM_SESSION,                                    \
	  "scan: limits and errors that made it incomplete; absent: it is complete")               \
	X(WORKSPACE_NS, "workspace.duration_ns", FT_U64, FAM_SESSION, "scan: how long it took")       \
	X(SNAPSHOT_NAME, "snapshot.name", FT_STR, FAM_SESSION, "name of the snapshot")               \
	X(SNAPSHOT_SESSION, "snapshot.session", FT_STR, FAM_SESSION,                                  \
	  "restore: session that it was taken of")                                                 \
	X(SNAPSHOT_SHA256, "snapshot.sha256", FT_STR, FAM_SESSION, "SHA-256 of its archive")          \
	X(SNAPSHOT_FILES, "snapshot.files", FT_U64, FAM_SESSION, "files and directories in it")       \
	X(SNAPSHOT_BYTES, "snapshot.bytes", FT_U64, FAM_SESSION, "bytes of data in them")             \
	X(SNAPSHOT_STORED, "snapshot.stored", FT_U64, FAM_SESSION, "bytes of its archive")            \
	X(SNAPSHOT_WHO, "snapshot.who", FT_STR, FAM_SESSION, "for whom it was taken")                 \
	X(BASELINE_NEW, "baseline.new", FT_BOOL, FAM_PROC | FAM_FILE | FAM_NET,                    \
	  "exec, file.open, net.connect: not in the baseline that was given")                      \
	X(MOUNT_OP, "mount.op", FT_STR, FAM_FILE, "mount umount move pivot_root setattr")           \
	X(MOUNT_TYPE, "mount.type", FT_STR, FAM_FILE, "file system type asked for")                \
	X(MOUNT_FLAGS, "mount.flags", FT_STR, FAM_FILE, "mount flags by name")                     \
	X(NET_FAMILY, "net.family", FT_STR, FAM_NET | FAM_DNS,                                     \
	  "inet inet6 unix vsock netlink ...")                                                     \
	X(NET_PROTO, "net.proto", FT_STR, FAM_NET | FAM_DNS, "tcp udp icmp raw unix")              \
	X(NET_SRC_IP, "net.src.ip", FT_IP, FAM_NET | FAM_DNS, "local address")                     \
	X(NET_SRC_PORT, "net.src.port", FT_U64, FAM_NET | FAM_DNS, "local port")                   \
	X(NET_DST_IP, "net.dst.ip", FT_IP, FAM_NET | FAM_DNS, "remote address; 0.0.0.0 and :: as loopback")                    \
	X(NET_DST_PORT, "net.dst.port", FT_U64, FAM_NET | FAM_DNS, "remote port")                  \
	X(NET_DST_NAME, "net.dst.name", FT_STR, FAM_NET, "name that this sandbox resolved to it")  \
	X(NET_DST_CID, "net.dst.cid", FT_U64, FAM_NET, "vsock: context id of the remote end")       \
	X(NET_REASON, "net.reason", FT_STR, FAM_NET,                                               \
	  "why the way out refused or ended it: name, port, address, sni, host, private, metadata, limit.*") \
	X(NET_ASKED, "net.asked", FT_STR, FAM_NET,                                                 \
	  "name in TLS or HTTP where it was another than net.dst.name")                            \
	X(NET_UNRESOLVED, "net.unresolved", FT_BOOL, FAM_NET,                                      \
	  "address came from no DNS answer seen")                                                  \
	X(NET_OPAQUE, "net.opaque", FT_STR, FAM_NET,                                               \
	  "DNS that cannot be read goes there: doh dot doq")                                       \
	X(NET_TYPE, "net.type", FT_STR, FAM_NET, "net.socket: stream dgram raw seqpacket ...")     \
	X(NET_PATH, "net.path", FT_STR, FAM_NET, "unix socket path; @name = abstract")             \
	X(NET_COOKIE, "net.cookie", FT_U64, FAM_NET | FAM_DNS,                                     \
	  "kernel's socket cookie: joins events of a flow")                                        \
	X(NET_BYTES_OUT, "net.bytes_out", FT_U64, FAM_NET, "bytes sent")                           \
	X(NET_BYTES_IN, "net.bytes_in", FT_U64, FAM_NET, "bytes received")                         \
	X(NET_COUNT, "net.count", FT_U64, FAM_NET, "sends merged into this event")                 \
	X(NET_PACKETS_OUT, "net.packets_out", FT_U64, FAM_NET,                                     \
	  "close of a datagram socket: datagrams sent")                                            \
	X(NET_PACKETS_IN, "net.packets_in", FT_U64, FAM_NET,                                       \
	  "close of a datagram socket: datagrams received")                                        \
	X(HTTP_METHOD, "http.method", FT_STR, FAM_NET, "request of a route: GET POST ...")         \
	X(HTTP_PATH, "http.path", FT_STR, FAM_NET, "request of a route: path, without its query")  \
	X(HTTP_STATUS, "http.status", FT_U64, FAM_NET, "request of a route: what the upstream answered") \
	X(DNS_ID, "dns.id", FT_U64, FAM_DNS, "transaction id")                                     \
	X(DNS_NAME, "dns.name", FT_STR, FAM_DNS, "name asked for, without final dot")              \
	X(DNS_TYPE, "dns.type", FT_STR, FAM_DNS, "record type asked for")                          \
	X(DNS_RCODE, "dns.rcode", FT_STR, FAM_DNS, "response code")                                \
	X(DNS_ANSWERS, "dns.answers", FT_ANSWERS, FAM_DNS, "records of the answer section")        \
	X(DNS_TC, "dns.tc", FT_BOOL, FAM_DNS,                                                      \
	  "cut by the resolver: it will be asked again over TCP")                                  \
	X(DNS_EDNS, "dns.edns", FT_U64, FAM_DNS, "EDNS: largest UDP message that the sender takes") \
	X(DNS_UNSOLICITED, "dns.unsolicited", FT_BOOL, FAM_DNS,                                    \
	  "answer to no query that was seen: its names are not trusted")                           \
	X(DNS_MALFORMED, "dns.malformed", FT_STR, FAM_DNS, "why the packet is no DNS message")     \
	X(LIMIT_TYPE, "limit.type", FT_STR, FAM_LIMIT, "memory pids cpu disk output timeout ...")  \
	X(LIMIT_VALUE, "limit.value", FT_U64, FAM_LIMIT, "the limit, in its own unit")             \
	X(LIMIT_USED, "limit.used", FT_U64, FAM_LIMIT, "what was used when it was hit")            \
	X(LIMIT_COUNT, "limit.count", FT_U64, FAM_LIMIT, "times it was hit since it was told last") \
	X(LIMIT_EFFECT, "limit.effect", FT_STR, FAM_LIMIT, "refused, throttled, cut, removed or killed") \
	X(LIMIT_TARGET, "limit.target", FT_STR, FAM_LIMIT, "file or stream at which it was hit")    \
	X(USAGE_PERIOD, "usage.period_ms", FT_U64, FAM_LIMIT, "time that the sample is about")     \
	X(USAGE_CPU, "usage.cpu_pct", FT_U64, FAM_LIMIT,                                           \
	  "CPU time used in the period, percent of one CPU")                                       \
	X(USAGE_MEM, "usage.mem", FT_U64, FAM_LIMIT, "memory used, bytes")                         \
	X(USAGE_MEM_GROWTH, "usage.mem_growth", FT_I64, FAM_LIMIT,                                 \
	  "bytes of memory more than one period before, negative when less")                       \
	X(USAGE_NET, "usage.net_bps", FT_U64, FAM_LIMIT, "bits a second, sent and received")       \
	X(USAGE_PIDS, "usage.pids", FT_U64, FAM_LIMIT, "tasks")                                    \
	X(OOM_TOTAL_VM, "oom.total_vm", FT_U64, FAM_LIMIT, "victim's virtual size, bytes")         \
	X(OOM_ANON, "oom.anon_rss", FT_U64, FAM_LIMIT, "victim's anonymous memory, bytes")         \
	X(OOM_FILE, "oom.file_rss", FT_U64, FAM_LIMIT, "victim's file memory, bytes")              \
	X(OOM_SHMEM, "oom.shmem_rss", FT_U64, FAM_LIMIT, "victim's shared memory, bytes")          \
	X(OOM_ADJ, "oom.score_adj", FT_I64, FAM_LIMIT, "victim's oom_score_adj")                   \
	X(ESCAPE_TYPE, "escape.type", FT_STR, FAM_ESCAPE, "kind of escape signal")                 \
	X(ESCAPE_DETAIL, "escape.detail", FT_STR, FAM_ESCAPE,                                      \
	  "path, name or flags of the attempt")                                                    \
	X(ESCAPE_TARGET, "escape.target", FT_STR, FAM_ESCAPE, "second path or name")               \
	X(ESCAPE_OLD, "escape.old", FT_HEX, FAM_ESCAPE,                                            \
	  "value before: id of namespace, root, cgroup")                                           \
	X(ESCAPE_NEW, "escape.new", FT_HEX, FAM_ESCAPE, "value after")                             \
	X(ESCAPE_ARG0, "escape.arg0", FT_HEX, FAM_ESCAPE, "raw system call argument")              \
	X(ESCAPE_ARG1, "escape.arg1", FT_HEX, FAM_ESCAPE, "raw system call argument")              \
	X(ESCAPE_ARG2, "escape.arg2", FT_HEX, FAM_ESCAPE, "raw system call argument")              \
	X(ESCAPE_KILLED, "escape.killed", FT_BOOL, FAM_ESCAPE,                                     \
	  "killed in the kernel before return")                                                    \
	X(RUN_BACKEND, "run.backend", FT_STR, FAM_SESSION, "sandbox backend")                      \
	X(RUN_COMMAND, "run.command", FT_STRLIST, FAM_SESSION, "command given by the operator")    \
	X(RUN_POLICY, "run.policy", FT_STR, FAM_SESSION, "SHA-256 of what the sandbox may do")   \
	X(RUN_IMAGE, "run.image", FT_STR, FAM_SESSION, "digest of the image that is its root")     \
	X(RUN_SECRETS, "run.secrets", FT_STRLIST, FAM_SESSION,                                     \
	  "names of the secrets that it may read")                                                 \
	X(RUN_TIER, "run.tier", FT_STR, FAM_SESSION, "probe tier: full or portable")               \
	X(RUN_REASON, "run.reason", FT_STR, FAM_SESSION,                                           \
	  "how it ended: exit signal timeout oom rule ...")                                        \
	X(RUN_CPU, "run.cpu_usec", FT_U64, FAM_SESSION, "CPU time used")                           \
	X(RUN_MEM_PEAK, "run.mem_peak", FT_U64, FAM_SESSION, "most memory used, bytes")            \
	X(RUN_PIDS_PEAK, "run.pids_peak", FT_U64, FAM_SESSION, "most tasks at once")               \
	X(RUN_STDOUT, "run.stdout_bytes", FT_U64, FAM_SESSION, "bytes written to stdout")          \
	X(RUN_STDERR, "run.stderr_bytes", FT_U64, FAM_SESSION, "bytes written to stderr")          \
	X(RULE_NAME, "rule.name", FT_STR, FAM_RULE, "rule that matched")                           \
	X(RULE_PRIORITY, "rule.priority", FT_STR, FAM_RULE, "priority of the rule")                \
	X(RULE_OUTPUT, "rule.output", FT_STR, FAM_RULE,                                            \
	  "the rule's output with its fields filled in")                                           \
	X(RULE_OUTPUT_FIELDS, "rule.output_fields", FT_MEMBERS, FAM_RULE,                          \
	  "the fields that the output names, each with its value")                                 \
	X(RULE_TAGS, "rule.tags", FT_STRLIST, FAM_RULE, "tags of the rule")                        \
	X(RULE_ATTACK, "rule.attack", FT_STRLIST, FAM_RULE, "MITRE ATT&CK technique ids")          \
	X(RULE_ACTION, "rule.action", FT_STR, FAM_RULE, "action that the rule asks for")           \
	X(RULE_ENFORCED, "rule.enforced", FT_STR, FAM_RULE,                                        \
	  "what became of the act: prevented killed-before-return killed-after ...")                \
	X(RULE_SET, "rule.set", FT_STR, FAM_RULE | FAM_AGENT, "SHA-256 of the rule set in force")  \
	X(RULE_SUPPRESSED, "rule.suppressed", FT_U64, FAM_RULE | FAM_AGENT,                        \
	  "alerts of this rule held back by its throttle since the one before")                    \
	X(RULE_TRIGGER, "rule.trigger", FT_STR, FAM_RULE, "id of the event that matched")          \
	X(RULE_TRIGGER_KIND, "rule.trigger_kind", FT_STR, FAM_RULE,                                \
	  "kind of the event that matched")                                                        \
	X(ACTION_TYPE, "action.type", FT_STR, FAM_RULE, "kill, freeze, deny, hold")                \
	X(ACTION_SCOPE, "action.scope", FT_STR, FAM_RULE, "process or sandbox")                    \
	X(ACTION_RESULT, "action.result", FT_STR, FAM_RULE, "done, partial or failed, with why")   \
	X(ACTION_LATENCY, "action.latency_ns", FT_U64, FAM_RULE,                                   \
	  "from the event to the action done")                                                     \
	X(ACTION_BY, "action.by", FT_STR, FAM_RULE, "kernel, agent, operator or timeout")          \
	X(ACTION_ID, "action.id", FT_STR, FAM_RULE, "hold: what warder approve and deny take")      \
	X(ACTION_WHO, "action.who", FT_STR, FAM_RULE, "operator: user, login user and process")     \
	X(GAP_KIND, "gap.kind", FT_STR, FAM_AGENT, "event kind that was lost; any = unknown")      \
	X(GAP_COUNT, "gap.count", FT_U64, FAM_AGENT, "how many were lost")                         \
	X(GAP_REASON, "gap.reason", FT_STR, FAM_AGENT, "ring_full; rate: one sandbox's flood was cut; hook_missed: the kernel left out runs of a hook, of whom is not known; guest: the guest's kernel (gVisor) could not tell them; not_stored: memory or disk did not suffice") \
	X(GAP_FIRST, "gap.first", FT_TIME, FAM_AGENT, "not earlier than")                          \
	X(GAP_LAST, "gap.last", FT_TIME, FAM_AGENT, "not later than")                              \
	X(AUDIT_MESSAGE, "audit.message", FT_STR, FAM_AGENT, "what happened to the audit itself")  \
	X(TERMINAL_FIRST, "terminal.first", FT_U64, FAM_AGENT, "first new record of the terminal's or output's recording") \
	X(TERMINAL_LAST, "terminal.last", FT_U64, FAM_AGENT, "last record of it that is on disk")   \
	X(TERMINAL_BYTES, "terminal.bytes", FT_U64, FAM_AGENT, "output and input in these records") \
	X(TERMINAL_HEAD, "terminal.head", FT_STR, FAM_AGENT, "SHA-256 over all of it up to there")
/* clang-format on */

#endif
