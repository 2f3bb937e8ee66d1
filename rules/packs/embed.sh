#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: embed.sh [-t TABLE] pack.yaml... > packs.S
# Prints assembler that defines TABLE and TABLE_n (rule_packs: rules/rule.h): a name and a counted text
# a pack. Data only, so one text serves gcc and clang on every 64-bit ELF target.
set -eu

table=rule_packs
if [ "$1" = -t ]; then
	table=$2
	shift 2
fi
printf '/* Made by rules/packs/embed.sh. */\n.section .rodata\n'
n=0
for f in "$@"; do
	name=$(basename "$f" .yaml)
	printf 'name_%d: .asciz "%s"\n' "$n" "$name"
	printf 'text_%d: .incbin "%s"\n' "$n" "$f"
	printf '.set text_len_%d, . - text_%d\n' "$n" "$n"
	printf '.byte 0\n'
	n=$((n + 1))
done

# Pointers need relocation in a position-independent program: not .rodata.
printf '.section .data.rel.ro,"aw",%%progbits\n.balign 8\n.globl %s\n' "$table"
printf '.type %s, %%object\n%s:\n' "$table" "$table"
i=0
while [ "$i" -lt "$n" ]; do
	printf '.quad name_%d, text_%d, text_len_%d\n' "$i" "$i" "$i"
	i=$((i + 1))
done
printf '.size %s, . - %s\n' "$table" "$table"
printf '.section .rodata\n.balign 8\n.globl %s_n\n.type %s_n, %%object\n' "$table" "$table"
printf '%s_n: .quad %d\n.size %s_n, 8\n' "$table" "$n" "$table"
printf '.section .note.GNU-stack,"",%%progbits\n'
