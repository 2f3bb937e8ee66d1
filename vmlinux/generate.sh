#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# generate.sh BPFTOOL BTF [KERNEL ARCH]: kernel types as C on stdout, with where they came from.
set -eu
bpftool=$1 btf=$2 kernel=${3:-$(uname -r)} arch=${4:-$(uname -m)}
cat <<EOF
/* SPDX-License-Identifier: GPL-2.0 */
/* Kernel types for CO-RE, $arch. Generated, never edited: \`make vmlinux\`.
 * From: Linux $kernel ($arch)
 * By:   bpftool btf dump file $btf format c  ($("$bpftool" version | head -n 1)) */
EOF
exec "$bpftool" btf dump file "$btf" format c
