/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* The system calls we look at, x86_64: one row each. Included with some of these macros defined:
 *
 *   CALL(name, nr, nr32, slot, what, op, dir, path, dir2, path2)
 *   CALL64(name, nr, slot, what, op, dir, path, dir2, path2)   no 32-bit number of its own
 *   CALL32(name, nr32, nr)                      one more 32-bit number of the same call
 *
 * name   the kernel's entry point without its prefix: __x64_sys_NAME
 * nr32   its number by int 0x80; the arguments have the same order there
 * slot   the handler's program: enum slot without SLOT_; NONE: looked at for its failures and for who is doomed
 * what   FILE, NET: kind of event; ESCAPE: its type; both without WIRE_
 *        (MKNOD: FILE_MKNOD besides)
 * op     FILE_ATTR: 1 chmod 2 chown 3 setxattr 4 truncate; FILE_LINK: 1 hard 2 symbolic
 * dir, path, dir2, path2   argument numbers, -1 = none. FILE: the descriptor that `path` is relative to
 *                          (alone: the file itself). ESCAPE: path, path2 are the strings worth telling. */
/* clang-format off */
#ifndef CALL
#define CALL(name, nr, nr32, slot, what, op, dir, path, dir2, path2)
#endif
#ifndef CALL64
#define CALL64(name, nr, slot, what, op, dir, path, dir2, path2)
#endif
#ifndef CALL32
#define CALL32(name, nr32, nr)
#endif

/* of exec only what failed: what succeeded is told by the scheduler's tracepoint */
CALL(execve, 59, 11, EXEC, EXEC, 0, -1, 0, -1, -1)
CALL(execveat, 322, 358, EXEC, EXEC, 0, 0, 1, -1, -1)

/* open for writing */
CALL(open, 2, 5, OPEN, FILE_OPEN, 0, -1, 0, -1, -1)
CALL(creat, 85, 8, OPEN, FILE_OPEN, 0, -1, 0, -1, -1)
CALL(openat, 257, 295, OPEN, FILE_OPEN, 0, 0, 1, -1, -1)
CALL(openat2, 437, 437, OPEN, FILE_OPEN, 0, 0, 1, -1, -1)

/* bytes written; dir is the argument that has the descriptor */
CALL(write, 1, 4, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(pwrite64, 18, 181, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(writev, 20, 146, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(pwritev, 296, 334, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(pwritev2, 328, 379, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(sendfile64, 40, 239, WRITE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(splice, 275, 313, WRITE, FILE_WRITE, 0, 2, -1, -1, -1)
CALL(copy_file_range, 326, 377, WRITE, FILE_WRITE, 0, 2, -1, -1, -1)

/* of these only failures are told (limits): no handler of their own */
CALL(fallocate, 285, 324, NONE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(fork, 57, 2, NONE, FORK, 0, -1, -1, -1, -1)
CALL(vfork, 58, 190, NONE, FORK, 0, -1, -1, -1, -1)
CALL(dup, 32, 41, NONE, FILE_OPEN, 0, -1, -1, -1, -1)
CALL(pipe, 22, 42, NONE, FILE_OPEN, 0, -1, -1, -1, -1)
CALL(pipe2, 293, 331, NONE, FILE_OPEN, 0, -1, -1, -1, -1)

/* descriptors closed: op 1 one that is given, 2 all in between */
CALL(close, 3, 6, CLOSE, FILE_WRITE, 0, 0, -1, -1, -1)
CALL(dup2, 33, 63, CLOSE, FILE_WRITE, 1, 0, -1, -1, -1)
CALL(dup3, 292, 330, CLOSE, FILE_WRITE, 1, 0, -1, -1, -1)
CALL(close_range, 436, 436, CLOSE, FILE_WRITE, 2, 0, -1, -1, -1)

CALL(mmap, 9, 192, MMAP, FILE_MMAP, 0, 4, -1, -1, -1)

/* names; of links, path is the new one and path2 what it leads to */
CALL(rename, 82, 38, FILE, FILE_RENAME, 0, -1, 0, -1, 1)
CALL(renameat, 264, 302, FILE, FILE_RENAME, 0, 0, 1, 2, 3)
CALL(renameat2, 316, 353, FILE, FILE_RENAME, 0, 0, 1, 2, 3)
CALL(unlink, 87, 10, FILE, FILE_DELETE, 0, -1, 0, -1, -1)
CALL(rmdir, 84, 40, FILE, FILE_DELETE, 0, -1, 0, -1, -1)
CALL(unlinkat, 263, 301, FILE, FILE_DELETE, 0, 0, 1, -1, -1)
CALL(mkdir, 83, 39, FILE, FILE_MKDIR, 0, -1, 0, -1, -1)
CALL(mkdirat, 258, 296, FILE, FILE_MKDIR, 0, 0, 1, -1, -1)
CALL(link, 86, 9, FILE, FILE_LINK, 1, -1, 1, -1, 0)
CALL(linkat, 265, 303, FILE, FILE_LINK, 1, 2, 3, 0, 1)
CALL(symlink, 88, 83, FILE, FILE_LINK, 2, -1, 1, -1, 0)
CALL(symlinkat, 266, 304, FILE, FILE_LINK, 2, 1, 2, -1, 0)

/* attributes */
CALL(chmod, 90, 15, FILE, FILE_ATTR, 1, -1, 0, -1, -1)
CALL(fchmod, 91, 94, FILE, FILE_ATTR, 1, 0, -1, -1, -1)
CALL(fchmodat, 268, 306, FILE, FILE_ATTR, 1, 0, 1, -1, -1)
CALL(fchmodat2, 452, 452, FILE, FILE_ATTR, 1, 0, 1, -1, -1)
CALL(chown, 92, 212, FILE, FILE_ATTR, 2, -1, 0, -1, -1)
CALL(lchown, 94, 198, FILE, FILE_ATTR, 2, -1, 0, -1, -1)
CALL(fchown, 93, 207, FILE, FILE_ATTR, 2, 0, -1, -1, -1)
CALL(fchownat, 260, 298, FILE, FILE_ATTR, 2, 0, 1, -1, -1)
CALL(setxattr, 188, 226, FILE, FILE_ATTR, 3, -1, 0, -1, 1)
CALL(lsetxattr, 189, 227, FILE, FILE_ATTR, 3, -1, 0, -1, 1)
CALL(fsetxattr, 190, 228, FILE, FILE_ATTR, 3, 0, -1, -1, 1)
CALL(setxattrat, 463, 463, FILE, FILE_ATTR, 3, 0, 1, -1, 3)
CALL(truncate, 76, 92, FILE, FILE_ATTR, 4, -1, 0, -1, -1)
CALL(ftruncate, 77, 93, FILE, FILE_ATTR, 4, 0, -1, -1, -1)

/* network */
CALL(socket, 41, 359, NET, NET_SOCKET, 0, -1, -1, -1, -1)
CALL(connect, 42, 362, NET, NET_CONNECT, 0, -1, -1, -1, -1)
CALL(bind, 49, 361, NET, NET_BIND, 0, -1, -1, -1, -1)
CALL(listen, 50, 363, NET, NET_LISTEN, 0, -1, -1, -1, -1)
CALL64(accept, 43, NET, NET_ACCEPT, 0, -1, -1, -1, -1)
CALL(accept4, 288, 364, NET, NET_ACCEPT, 0, -1, -1, -1, -1)

/* what goes out through sockets that were passed in: portable tier only */
CALL(sendto, 44, 369, SEND, NET_SEND, 0, 0, -1, -1, -1)
CALL(sendmsg, 46, 370, SEND, NET_SEND, 0, 0, -1, -1, -1)
CALL(sendmmsg, 307, 345, SEND, NET_SEND, 0, 0, -1, -1, -1)

/* escape signals */
CALL(clone, 56, 120, ESCAPE, ESCAPE_CLONE_NS, 0, -1, -1, -1, -1)
CALL(clone3, 435, 435, ESCAPE, ESCAPE_CLONE_NS, 0, -1, -1, -1, -1)
CALL(unshare, 272, 310, ESCAPE, ESCAPE_UNSHARE, 0, -1, -1, -1, -1)
CALL(setns, 308, 346, ESCAPE, ESCAPE_SETNS, 0, -1, -1, -1, -1)
CALL(mount, 165, 21, ESCAPE, ESCAPE_MOUNT, 0, -1, 1, -1, 0)
CALL(umount, 166, 52, ESCAPE, ESCAPE_UMOUNT, 0, -1, 0, -1, -1)
CALL(pivot_root, 155, 217, ESCAPE, ESCAPE_PIVOT_ROOT, 0, -1, 0, -1, 1)
CALL(chroot, 161, 61, ESCAPE, ESCAPE_CHROOT, 0, -1, 0, -1, -1)
CALL(open_tree, 428, 428, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 1, -1, -1)
CALL(move_mount, 429, 429, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 1, -1, 3)
CALL(fsopen, 430, 430, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 0, -1, -1)
CALL(fsconfig, 431, 431, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 2, -1, -1)
CALL(fsmount, 432, 432, ESCAPE, ESCAPE_MOUNT_API, 0, -1, -1, -1, -1)
CALL(fspick, 433, 433, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 1, -1, -1)
CALL(mount_setattr, 442, 442, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 1, -1, -1)
CALL(open_tree_attr, 467, 467, ESCAPE, ESCAPE_MOUNT_API, 0, -1, 1, -1, -1)
CALL(ptrace, 101, 26, ESCAPE, ESCAPE_PTRACE, 0, -1, -1, -1, -1)
CALL(process_vm_readv, 310, 347, ESCAPE, ESCAPE_PROCESS_VM, 0, -1, -1, -1, -1)
CALL(process_vm_writev, 311, 348, ESCAPE, ESCAPE_PROCESS_VM, 0, -1, -1, -1, -1)
CALL(process_madvise, 440, 440, ESCAPE, ESCAPE_PROCESS_VM, 0, -1, -1, -1, -1)
CALL(pidfd_getfd, 438, 438, ESCAPE, ESCAPE_PIDFD_GETFD, 0, -1, -1, -1, -1)
CALL(bpf, 321, 357, ESCAPE, ESCAPE_BPF, 0, -1, -1, -1, -1)
CALL(perf_event_open, 298, 336, ESCAPE, ESCAPE_PERF_EVENT, 0, -1, -1, -1, -1)
CALL(userfaultfd, 323, 374, ESCAPE, ESCAPE_USERFAULTFD, 0, -1, -1, -1, -1)
CALL(io_uring_setup, 425, 425, ESCAPE, ESCAPE_IO_URING, 0, -1, -1, -1, -1)
CALL(init_module, 175, 128, ESCAPE, ESCAPE_MODULE, 0, -1, -1, -1, -1)
CALL(finit_module, 313, 350, ESCAPE, ESCAPE_MODULE, 0, -1, -1, -1, -1)
CALL(delete_module, 176, 129, ESCAPE, ESCAPE_MODULE, 0, -1, 0, -1, -1)
CALL(kexec_load, 246, 283, ESCAPE, ESCAPE_KEXEC, 0, -1, -1, -1, -1)
CALL64(kexec_file_load, 320, ESCAPE, ESCAPE_KEXEC, 0, -1, -1, -1, -1)
CALL(open_by_handle_at, 304, 342, ESCAPE, ESCAPE_OPEN_BY_HANDLE, 0, -1, -1, -1, -1)
CALL(add_key, 248, 286, ESCAPE, ESCAPE_KEYCTL, 0, -1, 0, -1, 1)
CALL(request_key, 249, 287, ESCAPE, ESCAPE_KEYCTL, 0, -1, 0, -1, 1)
CALL(keyctl, 250, 288, ESCAPE, ESCAPE_KEYCTL, 0, -1, -1, -1, -1)
CALL(reboot, 169, 88, ESCAPE, ESCAPE_REBOOT, 0, -1, -1, -1, -1)
CALL(swapon, 167, 87, ESCAPE, ESCAPE_SWAP, 0, -1, 0, -1, -1)
CALL(swapoff, 168, 115, ESCAPE, ESCAPE_SWAP, 0, -1, 0, -1, -1)
CALL(acct, 163, 51, ESCAPE, ESCAPE_ACCT, 0, -1, 0, -1, -1)
CALL(personality, 135, 136, ESCAPE, ESCAPE_PERSONALITY, 0, -1, -1, -1, -1)
CALL(settimeofday, 164, 79, ESCAPE, ESCAPE_TIME, 0, -1, -1, -1, -1)
CALL(clock_settime, 227, 404, ESCAPE, ESCAPE_TIME, 0, -1, -1, -1, -1)
CALL(adjtimex, 159, 124, ESCAPE, ESCAPE_TIME, 0, -1, -1, -1, -1)
CALL(clock_adjtime, 305, 405, ESCAPE, ESCAPE_TIME, 0, -1, -1, -1, -1)
CALL(fanotify_init, 300, 338, ESCAPE, ESCAPE_FANOTIFY, 0, -1, -1, -1, -1)
CALL(mknod, 133, 14, ESCAPE, ESCAPE_MKNOD, 0, -1, 0, -1, -1)
CALL(mknodat, 259, 297, ESCAPE, ESCAPE_MKNOD, 0, 0, 1, -1, -1)
CALL(syslog, 103, 103, ESCAPE, ESCAPE_SYSLOG, 0, -1, -1, -1, -1)
CALL(quotactl, 179, 131, ESCAPE, ESCAPE_QUOTA, 0, -1, 1, -1, -1)
CALL(quotactl_fd, 443, 443, ESCAPE, ESCAPE_QUOTA, 0, -1, -1, -1, -1)
CALL(nfsservctl, 180, 169, ESCAPE, ESCAPE_NFS, 0, -1, -1, -1, -1)
CALL(iopl, 172, 110, ESCAPE, ESCAPE_IOPORT, 0, -1, -1, -1, -1)
CALL(ioperm, 173, 101, ESCAPE, ESCAPE_IOPORT, 0, -1, -1, -1, -1)

/* older and wider forms of the same */
CALL32(chown16, 182, 92)
CALL32(lchown16, 16, 94)
CALL32(fchown16, 95, 93)
CALL32(ia32_sendfile, 187, 40)
CALL32(ia32_truncate64, 193, 76)
CALL32(ia32_ftruncate64, 194, 77)
CALL32(clock_settime32, 264, 227)
CALL32(clock_adjtime32, 343, 305)

#undef CALL
#undef CALL64
#undef CALL32
/* clang-format on */
