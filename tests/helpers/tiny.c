// SPDX-License-Identifier: Apache-2.0
// libs: -static -nostdlib -no-pie -fno-stack-protector -Wno-unused-command-line-argument
/* The least a program can be: ends at once. What `load exec` starts. */
__attribute__((noreturn)) void _start(void);

void _start(void)
{
#if defined(__x86_64__)
	__asm__ volatile("syscall" : : "a"(231), "D"(0) : "rcx", "r11", "memory");
#else
	register long nr __asm__("x8") = 94;
	register long code __asm__("x0") = 0;

	__asm__ volatile("svc 0" : : "r"(nr), "r"(code) : "memory");
#endif
	__builtin_unreachable();
}
