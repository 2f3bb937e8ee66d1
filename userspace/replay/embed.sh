#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: embed.sh name.ext... > out.S
# Prints assembler that defines name_ext (the bytes of the file) and name_ext_n (how many, 64 bits).
set -eu

printf '/* Made by userspace/replay/embed.sh. */\n.section .rodata\n'
for f in "$@"; do
	name=$(basename "$f" | tr . _)
	printf '.globl %s, %s_n\n' "$name" "$name"
	printf '%s: .incbin "%s"\n' "$name" "$f"
	printf '.set len_%s, . - %s\n.byte 0\n.balign 8\n' "$name" "$name"
	printf '%s_n: .quad len_%s\n' "$name" "$name"
done
printf '.section .note.GNU-stack,"",%%progbits\n'
