# SPDX-License-Identifier: Apache-2.0
# The whole build; products go to $(BUILD) only. `make help` lists the targets.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0

CC      ?= cc
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PKGCONF ?= pkg-config
PYTHON  ?= python3

ifeq ($(V),0)
Q   := @
say  = @printf '  %-8s %s\n' $(1) $(2)
else
Q   :=
say  = @:
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

ARCH := $(shell uname -m | sed 's/aarch64/arm64/')
BPF_TARGET_ARCH := $(if $(filter arm64,$(ARCH)),arm64,x86)

# ---- libraries of others ----
PKGS := libbpf libelf libzstd yaml-0.1 libseccomp rdkafka libsodium libcrypto libpcre2-8
PKG_CFLAGS := $(shell $(PKGCONF) --cflags $(PKGS) 2>/dev/null)
PKG_LIBS   := $(shell $(PKGCONF) --libs $(PKGS) 2>/dev/null)

OPT      ?= -O2 -g
SAN      ?=
WARN     := -Wall -Wextra -Werror -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wshadow
CPPFLAGS_ALL := -I. -I$(BUILD)/gen -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL   := -std=gnu11 $(OPT) $(WARN) -fno-common -fstack-protector-strong -D_FORTIFY_SOURCE=2 \
                $(SAN) $(PKG_CFLAGS) $(CFLAGS)
ifneq ($(SAN),)
CFLAGS_ALL := $(filter-out -D_FORTIFY_SOURCE=2,$(CFLAGS_ALL))
endif
LDFLAGS_ALL  := -pie -Wl,-z,relro,-z,now $(SAN) $(LDFLAGS)
LIBS_ALL     := $(PKG_LIBS) -lpthread

# ---- our folders, by rank: a folder may use those named before it ----
FOLDERS := base event config enrich action store capture rules exporters runtime pipeline cli
DIR_rules     := rules
DIR_exporters := exporters
DIR_runtime   := runtime
dir_of = $(or $(DIR_$(1)),userspace/$(1))

define folder
SRCS_$(1) := $$(wildcard $(call dir_of,$(1))/*.c)
OBJS_$(1) := $$(SRCS_$(1):%.c=$$(BUILD)/obj/%.o) $$(EXTRA_OBJS_$(1))
$$(BUILD)/lib/$(1).a: $$(OBJS_$(1))
	$$(call say,AR,$$@)
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && $$(AR) rcs $$@ $$^
endef

# Generated objects that belong to a folder.
EXTRA_OBJS_rules   := $(if $(wildcard rules/packs/embed.sh),$(BUILD)/gen/packs.o)
EXTRA_OBJS_runtime := $(if $(wildcard runtime/init/*.c),$(BUILD)/gen/init_blob.o)

$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))
LIBS_OURS := $(foreach f,$(FOLDERS),$(BUILD)/lib/$(f).a)

# ---- main products ----
.PHONY: all
all: $(BUILD)/warder ## build the warder binary (default)

$(BUILD)/warder: $(BUILD)/obj/userspace/main.o $(LIBS_OURS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(LIBS_OURS) -Wl,--end-group $(LIBS_ALL)

$(BUILD)/obj/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# ---- BPF: one object out of bpf/*.bpf.c, and its skeleton ----
BPF_SRCS := $(wildcard bpf/*.bpf.c)
BPF_OBJS := $(BPF_SRCS:%.c=$(BUILD)/obj/%.o)
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_TARGET_ARCH) -Wall -Werror \
              -Wno-unused-function -fno-stack-protector -I. -Ivmlinux/$(ARCH)

$(BUILD)/obj/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/warder.bpf.o: $(BPF_OBJS)
	$(call say,BPFLINK,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen object $@ $^

$(BUILD)/gen/warder.skel.h: $(BUILD)/bpf/warder.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name warder > $@

$(OBJS_capture): | $(BUILD)/gen/warder.skel.h

# ---- the sandbox's pid 1: static, carried inside warder, run from a sealed memfd ----
INIT_SRCS := $(wildcard runtime/init/*.c)
$(BUILD)/init: $(INIT_SRCS) $(wildcard runtime/init/*.h)
	$(call say,INIT,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) -std=gnu11 -Os $(WARN) -fno-stack-protector -static \
		-Wl,--gc-sections -ffunction-sections -s -o $@ $(INIT_SRCS)

$(BUILD)/gen/init_blob.S: $(BUILD)/init
	$(Q)mkdir -p $(@D) && printf '%s\n' '.section .rodata' '.globl init_blob, init_blob_end' \
		'.balign 16' 'init_blob: .incbin "$<"' 'init_blob_end: .byte 0' \
		'.section .note.GNU-stack,"",@progbits' > $@

# ---- default rule packs, built in ----
PACKS := $(sort $(wildcard rules/packs/*.yaml))
$(BUILD)/gen/packs.S: $(PACKS) rules/packs/embed.sh
	$(call say,PACKS,$@)
	$(Q)mkdir -p $(@D) && sh rules/packs/embed.sh $(PACKS) > $@

$(BUILD)/gen/%.o: $(BUILD)/gen/%.S
	$(Q)$(CC) -c -o $@ $<

# ---- tests ----
# tests/unit/<folder>/test_<source>.c, one binary each, linked with the folders up to its own rank.
TEST_UNIT_SRCS := $(wildcard tests/unit/*/test_*.c)
TEST_UNIT_BINS := $(TEST_UNIT_SRCS:%.c=$(BUILD)/%)
TEST_HELPER_SRCS := $(wildcard tests/helpers/*.c)
TEST_HELPERS := $(TEST_HELPER_SRCS:%.c=$(BUILD)/%)

# Only the archives a test can reach are its prerequisites: work on one folder needs no other to build.
RANK_base      := base
RANK_event     := base event
RANK_config    := base config
RANK_enrich    := base event enrich
RANK_action    := base event action
RANK_store     := base event store
RANK_capture   := base event capture
RANK_rules     := base event rules
RANK_exporters := base event exporters
RANK_runtime   := base runtime
RANK_pipeline  := $(filter-out cli,$(FOLDERS))
RANK_cli       := $(FOLDERS)

define unit_rule
$(BUILD)/tests/unit/$(1)/%: $(BUILD)/obj/tests/unit/$(1)/%.o $(foreach f,$(RANK_$(1)),$(BUILD)/lib/$(f).a)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(LDFLAGS_ALL) -o $$@ $$< -Wl,--start-group \
		$(foreach f,$(RANK_$(1)),$(BUILD)/lib/$(f).a) -Wl,--end-group $$(LIBS_ALL) -lcmocka
endef
$(foreach f,$(FOLDERS),$(eval $(call unit_rule,$(f))))

# Helper programs are free-standing: `// libs: -lfoo` in their first lines names what they link.
$(BUILD)/tests/helpers/%: tests/helpers/%.c
	$(call say,HELPER,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(filter-out -Wmissing-prototypes,$(CFLAGS_ALL)) -MMD -MP \
		$(LDFLAGS_ALL) -o $@ $< $$(sed -n '1,5s|^// libs: ||p' $<)

.PHONY: test-bins
test-bins: $(TEST_UNIT_BINS) $(TEST_HELPERS)

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

.PHONY: clean
clean: ## remove build products
	$(Q)rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
