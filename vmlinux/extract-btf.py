#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""extract-btf.py IMAGE > BTF: the type information inside an uncompressed kernel image that is no ELF file
(arm64's Image), found by the header that BTF begins with. For a package of another architecture:

    apt-get download linux-image-VERSION-arm64:arm64 && dpkg-deb -x linux-image-*.deb x
    vmlinux/extract-btf.py x/boot/vmlinuz-* > arm64.btf
    sh vmlinux/generate.sh bpftool arm64.btf VERSION arm64 > vmlinux/arm64/vmlinux.h
"""
import struct
import sys

MAGIC = b"\x9f\xeb\x01\x00"  # little endian, version 1, no flags (include/uapi/linux/btf.h)


def find(image):
    at = image.find(MAGIC)
    while at >= 0:
        header, types, types_n, strings, strings_n = struct.unpack_from("<IIIII", image, at + 4)
        end = at + header + types_n + strings_n
        # The kernel's own is large; a module's or a false hit is not.
        if header == 24 and types == 0 and strings == types_n and types_n > 1 << 16 and end <= len(image):
            return image[at:end]
        at = image.find(MAGIC, at + 4)
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: extract-btf.py IMAGE > BTF")
    with open(sys.argv[1], "rb") as f:
        btf = find(f.read())
    if btf is None:
        sys.exit("%s: no type information in it (compressed? unpack it first)" % sys.argv[1])
    sys.stdout.buffer.write(btf)


if __name__ == "__main__":
    main()
