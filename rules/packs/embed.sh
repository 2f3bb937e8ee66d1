#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: embed.sh pack.yaml... > packs.S
# Prints assembler that defines rule_packs and rule_packs_n (rules/rule.h): a name and a counted text
# a pack. Data only, so one text serves gcc and clang on every 64-bit ELF target.
set -eu

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
printf '.section .data.rel.ro,"aw",%%progbits\n.balign 8\n.globl rule_packs\n'
printf '.type rule_packs, %%object\nrule_packs:\n'
i=0
while [ "$i" -lt "$n" ]; do
	printf '.quad name_%d, text_%d, text_len_%d\n' "$i" "$i" "$i"
	i=$((i + 1))
done
printf '.size rule_packs, . - rule_packs\n'
printf '.section .rodata\n.balign 8\n.globl rule_packs_n\n.type rule_packs_n, %%object\n'
printf 'rule_packs_n: .quad %d\n.size rule_packs_n, 8\n' "$n"
printf '.section .note.GNU-stack,"",%%progbits\n'
