#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A C project of twenty files, a library, a generated header and a test, by a parallel make; then again, and cleaned.
set -eu
mkdir src build
i=0
while [ $i -lt 20 ]; do
	printf '#include "all.h"\nint f%d(int x) { return x + %d; }\n' $i $i >src/f$i.c
	i=$((i + 1))
done
cat >src/main.c <<'END'
#include <stdio.h>
#include "all.h"
int main(void) { printf("%d\n", f1(f19(22))); return 0; }
END
cat >Makefile <<'END'
CC = /usr/bin/gcc
CFLAGS = -O1 -Wall -Werror
OBJ = $(patsubst src/%.c,build/%.o,$(filter-out src/main.c,$(wildcard src/*.c)))
all: build/app
build/all.h: $(wildcard src/f*.c)
	sed -n 's/^\(int f[0-9]*(int x)\).*/\1;/p' $^ >$@.tmp && mv $@.tmp $@
build/%.o: src/%.c build/all.h
	$(CC) $(CFLAGS) -Ibuild -c -o $@ $<
build/libf.a: $(OBJ)
	ar rcs $@ $^ && ranlib $@
build/app: build/main.o build/libf.a
	$(CC) -o $@ build/main.o -Lbuild -lf && strip $@
test: all
	test "$$(build/app)" = 42
install: all
	mkdir -p root/usr/bin && install -m 755 build/app root/usr/bin/app
clean:
	rm -rf build/*
END
make -j4 all
make test install
root/usr/bin/app
make -j4 all
make clean
make -j4 all
