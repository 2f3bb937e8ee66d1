/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* Which program tells which kind of event: one row for each pair, HOOK(kind, program, toctou, since, what).
 * The table in bpf/README.md is made from it and the programs' sections (tests/lint/test_hooks.py --update).
 *
 * program  a handler (sys_*) is reached at the end of system calls: by the hook of the tier in use
 * toctou   NO: from objects of the kernel, nobody can change them; NAMES: strings are the caller's, read when
 *          the call ends, and the record says WIRE_F_TOCTOU; MISS: only where the kernel's copy is not to be had
 * since    the oldest kernel on which this was seen to work: 6.1 is the oldest that we support
 * what     what of the kind comes this way */
/* clang-format off */
HOOK(EXEC, on_exec, NO, "6.1", "programs that start")
HOOK(EXEC, sys_exec, NAMES, "6.1", "execs that failed")
HOOK(FORK, on_newtask, NO, "6.1", "")
HOOK(EXIT, on_exit, NO, "6.1", "")
HOOK(FILE_OPEN, sys_open, NO, "6.1", "opened: the path is the file's own")
HOOK(FILE_OPEN, sys_open, NAMES, "6.1", "refused")
HOOK(FILE_OPEN, on_uring_req, NO, "6.3", "by io_uring")
HOOK(FILE_OPEN, on_uring_sqe, NO, "6.1", "by io_uring, until 6.3")
HOOK(FILE_RENAME, sys_file, NAMES, "6.1", "")
HOOK(FILE_RENAME, on_uring_req, NO, "6.3", "by io_uring")
HOOK(FILE_DELETE, sys_file, NAMES, "6.1", "")
HOOK(FILE_DELETE, on_uring_req, NO, "6.3", "by io_uring")
HOOK(FILE_LINK, sys_file, NAMES, "6.1", "")
HOOK(FILE_ATTR, sys_file, NAMES, "6.1", "by name")
HOOK(FILE_ATTR, sys_file, NO, "6.1", "by descriptor")
HOOK(FILE_MKDIR, sys_file, NAMES, "6.1", "")
HOOK(FILE_MKDIR, on_uring_req, NO, "6.3", "by io_uring")
HOOK(NET_CONNECT, on_connect4, NO, "6.1", "address, and connects without a system call of their own")
HOOK(NET_CONNECT, on_connect6, NO, "6.1", "the same")
HOOK(NET_CONNECT, sys_net, MISS, "6.1", "outcome")
HOOK(NET_CONNECT, on_sock_state, NO, "6.1", "outcome of a pending one")
HOOK(NET_LISTEN, sys_net, NO, "6.1", "")
HOOK(NET_ACCEPT, sys_net, NO, "6.1", "")
HOOK(NET_BIND, sys_net, NO, "6.1", "")
HOOK(NET_SOCKET, sys_net, NO, "6.1", "families and types that were refused")
HOOK(NET_SEND, on_sendmsg4, NO, "6.1", "")
HOOK(NET_SEND, on_sendmsg6, NO, "6.1", "")
HOOK(NET_CLOSE, on_sock_state, NO, "6.1", "TCP")
HOOK(NET_CLOSE, on_sock_release, NO, "6.1", "the others")
HOOK(DNS_QUERY, on_egress, NO, "6.1", "")
HOOK(DNS_ANSWER, on_ingress, NO, "6.1", "")
HOOK(OOM, on_oom, NO, "6.1", "")
HOOK(LIMIT, sys_limit, NO, "6.1", "full file system, file size, descriptors, tasks: calls that failed")
HOOK(SIGNAL, on_signal, NO, "6.1", "sent by programs")
HOOK(MOUNT, sys_escape, NAMES, "6.1", "changes of the mount tree that worked")
HOOK(ESCAPE, sys_escape, NAMES, "6.1", "system calls")
HOOK(ESCAPE, sys_foreign, NO, "6.1", "32-bit and x32 calls")
HOOK(ESCAPE, sys_open, NO, "6.1", "files that steer the kernel, devices")
HOOK(ESCAPE, sys_net, NO, "6.1", "sockets of container engines")
HOOK(ESCAPE, on_newtask, NO, "6.1", "new namespaces, born outside")
HOOK(ESCAPE, on_cgroup_attach, NO, "6.1", "moved out of the sandbox")
HOOK(ESCAPE, on_exec, NO, "6.1", "programs without a file, privileges gained, another place")
HOOK(ESCAPE, on_metadata_connect4, NO, "6.1", "metadata services")
HOOK(ESCAPE, on_metadata_connect6, NO, "6.1", "the same")
HOOK(ESCAPE, on_metadata_sendmsg4, NO, "6.1", "the same")
HOOK(ESCAPE, on_metadata_sendmsg6, NO, "6.1", "the same")
/* clang-format on */
#undef HOOK
