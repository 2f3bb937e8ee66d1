# SPDX-License-Identifier: Apache-2.0
# The whole build; products go to $(BUILD) only. `make help` lists the targets.

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=
V       ?= 0

CC      ?= cc
CLANG   ?= clang
# Ubuntu's /usr/sbin/bpftool is a wrapper that refuses kernels it has no package for: the real one first.
BPFTOOL ?= $(firstword $(wildcard /usr/lib/linux-tools/*/bpftool /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
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
PKGS := libbpf libelf libzstd yaml-0.1 libseccomp rdkafka libcares libsodium libssl libcrypto zlib libpcre2-8 sqlite3 vterm libarchive
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
LIBS_ALL     := $(PKG_LIBS) -lpthread -lm

# ---- what a product was made with: other compiler or flags, or another list of sources, make it again ----
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_TARGET_ARCH) -Wall -Werror \
              -Wno-unused-function -fno-stack-protector -I. -Ivmlinux/$(ARCH)

.PHONY: FORCE
FORCE:
# $(call stamp,FILE,TEXT): FILE changes only when TEXT does.
define stamp
$(1): FORCE
	@mkdir -p $$(@D); printf '%s\n' '$(subst ','\'',$(2))' | cmp -s - $$@ || \
		printf '%s\n' '$(subst ','\'',$(2))' > $$@
endef
$(eval $(call stamp,$(BUILD)/stamp/cc,$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(LIBS_ALL)))
$(eval $(call stamp,$(BUILD)/stamp/bpf,$(CLANG) $(BPF_CFLAGS)))

# Hyperscan or Vectorscan, where its headers are: `make HYPERSCAN=0` builds without. It is loaded at run time, not linked.
HYPERSCAN ?= $(shell $(PKGCONF) --exists libhs && echo 1 || echo 0)
HYPERSCAN_CFLAGS := -DHAVE_HYPERSCAN=$(HYPERSCAN) $(if $(filter 1,$(HYPERSCAN)),$(shell $(PKGCONF) --cflags libhs))
$(eval $(call stamp,$(BUILD)/stamp/hyperscan,$(HYPERSCAN_CFLAGS)))
$(BUILD)/obj/userspace/redact/scan.o: CPPFLAGS_ALL += $(HYPERSCAN_CFLAGS)
$(BUILD)/obj/userspace/redact/scan.o: $(BUILD)/stamp/hyperscan

# ---- our folders, by rank: a folder may use those named before it ----
FOLDERS := base event config enrich action store redact capture replay rules exporters runtime workspace image pipeline oci catalog scenarios api cli
DIR_rules     := rules
DIR_exporters := exporters
DIR_runtime   := runtime
SUBDIRS_exporters := exporters/render
SUBDIRS_runtime   := runtime/egress runtime/gvisor
dir_of = $(or $(DIR_$(1)),userspace/$(1))

define folder
SRCS_$(1) := $$(wildcard $(addsuffix /*.c,$(call dir_of,$(1)) $(SUBDIRS_$(1))))
OBJS_$(1) := $$(SRCS_$(1):%.c=$$(BUILD)/obj/%.o) $$(EXTRA_OBJS_$(1))
$$(eval $$(call stamp,$$(BUILD)/stamp/$(1).objs,$$(OBJS_$(1))))
$$(BUILD)/lib/$(1).a: $$(OBJS_$(1)) $$(BUILD)/stamp/$(1).objs
	$$(call say,AR,$$@)
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && $$(AR) rcs $$@ $$(OBJS_$(1))
endef

# Generated objects that belong to a folder.
EXTRA_OBJS_rules   := $(if $(wildcard rules/packs/embed.sh),$(BUILD)/gen/packs.o)
EXTRA_OBJS_redact  := $(BUILD)/gen/redact_packs.o
EXTRA_OBJS_api     := $(BUILD)/gen/openapi.o
EXTRA_OBJS_replay  := $(BUILD)/gen/report.o
EXTRA_OBJS_scenarios := $(BUILD)/gen/scenario_blob.o
EXTRA_OBJS_runtime := $(if $(wildcard runtime/init/*.c),$(BUILD)/gen/init_blob.o) $(BUILD)/gen/keeper_blob.o $(BUILD)/gen/policies.o

$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))
LIBS_OURS := $(foreach f,$(FOLDERS),$(BUILD)/lib/$(f).a)

# ---- main products ----
.PHONY: all
all: $(BUILD)/warder ## build the warder binary (default)

$(BUILD)/warder: $(BUILD)/obj/userspace/main.o $(LIBS_OURS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(LIBS_OURS) -Wl,--end-group $(LIBS_ALL)

$(BUILD)/obj/%.o: %.c $(BUILD)/stamp/cc
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# ---- BPF: one object out of bpf/*.bpf.c, and its skeleton ----
BPF_FIRST := bpf/syscall.bpf.c # bpf/lib/compat.bpf.h says why
BPF_SRCS := $(BPF_FIRST) $(filter-out $(BPF_FIRST),$(wildcard bpf/*.bpf.c))
BPF_OBJS := $(BPF_SRCS:%.c=$(BUILD)/obj/%.o)

$(BUILD)/obj/bpf/%.bpf.o: bpf/%.bpf.c $(BUILD)/stamp/bpf
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/bpf/warder.bpf.o: $(BPF_OBJS)
	$(call say,BPFLINK,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen object $@ $^

$(BUILD)/gen/warder.skel.h: $(BUILD)/bpf/warder.bpf.o
	$(call say,SKEL,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name warder > $@

$(OBJS_capture): | $(BUILD)/gen/warder.skel.h

# ---- process 1 of a sandbox: static, without libc, carried inside warder, run from a sealed memfd ----
# $(call process1,NAME,SOURCES,HEADERS): $(BUILD)/NAME, and NAME_blob to NAME_blob_end with it inside.
define process1
$(BUILD)/$(1): $(2) $(3) $(BUILD)/stamp/cc
	$$(call say,PROCESS1,$$@)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(CPPFLAGS_ALL) -std=gnu11 -Os $$(WARN) -ffreestanding -fno-builtin \
		-fno-stack-protector -fno-pie -fno-asynchronous-unwind-tables -U_FORTIFY_SOURCE -nostdlib \
		-static -Wl,--build-id=none -Wl,-z,noexecstack -s -o $$@ $(2)

$(BUILD)/gen/$(1)_blob.S: $(BUILD)/$(1)
	$$(Q)mkdir -p $$(@D) && printf '%s\n' '.section .rodata' '.globl $(1)_blob, $(1)_blob_end' \
		'.balign 16' '$(1)_blob: .incbin "$$<"' '$(1)_blob_end: .byte 0' \
		'.section .note.GNU-stack,"",@progbits' > $$@
endef
INIT_HEADERS := $(wildcard runtime/init/*.h)
INIT_SRCS := $(wildcard runtime/init/*.c)
KEEPER_SRCS := $(wildcard runtime/gvisor/keeper/*.c)
$(eval $(call process1,init,$(INIT_SRCS),$(INIT_HEADERS)))
# Under gVisor: what runs runsc.
$(eval $(call process1,keeper,$(KEEPER_SRCS) runtime/init/process1.c,$(INIT_HEADERS) $(wildcard runtime/gvisor/keeper/*.h)))

# ---- the program that attacks its sandbox: static, carried inside warder; no sanitizers, it is not what is tested ----
PAYLOAD_SRCS := $(wildcard userspace/scenarios/payload/*.c)
$(BUILD)/scenario: $(PAYLOAD_SRCS) userspace/scenarios/payload/payload.h $(BUILD)/stamp/cc
	$(call say,PAYLOAD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) -std=gnu11 -Os $(WARN) -fstack-protector-strong -fno-pie -static \
		-Wl,--build-id=none -Wl,-z,noexecstack -Wno-unused-command-line-argument -s -o $@ $(PAYLOAD_SRCS)

$(BUILD)/gen/scenario_blob.S: $(BUILD)/scenario
	$(Q)mkdir -p $(@D) && printf '%s\n' '.section .rodata' '.globl scenario_blob, scenario_blob_end' \
		'.balign 16' 'scenario_blob: .incbin "$<"' 'scenario_blob_end: .byte 0' \
		'.section .note.GNU-stack,"",@progbits' > $@

# ---- the HTML report: page, style, one script out of small ones, and the terminal player, built in ----
WEB := userspace/replay/web
REPORT_JS := $(sort $(filter-out %/main.js,$(wildcard $(WEB)/*.js))) $(WEB)/main.js
REPORT_PARTS := $(WEB)/page.html $(BUILD)/gen/web/style.css $(BUILD)/gen/web/report.js $(BUILD)/gen/web/player.css \
                $(BUILD)/gen/web/player.js
$(eval $(call stamp,$(BUILD)/stamp/report.js,$(REPORT_JS)))

# What npm fetches: once, kept in $(BUILD). Without a way to npm's registry, `make PLAYER=no`: the report then shows
# a recording's text in place of its screen.
PLAYER ?= yes
$(eval $(call stamp,$(BUILD)/stamp/player,$(PLAYER)))
$(BUILD)/web/fetched: $(WEB)/package.json $(WEB)/package-lock.json $(WEB)/fetch.sh
	$(call say,NPM,$@)
	$(Q)sh $(WEB)/fetch.sh $(@D) && touch $@

ifeq ($(PLAYER),no)
$(BUILD)/gen/web/player.js $(BUILD)/gen/web/player.css: $(BUILD)/stamp/player
	$(Q)mkdir -p $(@D) && echo '/* made without the terminal player */' > $@
else
$(BUILD)/gen/web/player.js: $(BUILD)/web/fetched $(WEB)/player.sh $(BUILD)/stamp/player
	$(Q)mkdir -p $(@D) && sh $(WEB)/player.sh $(BUILD)/web/node_modules > $@

$(BUILD)/gen/web/player.css: $(BUILD)/web/fetched $(BUILD)/stamp/player
	$(Q)mkdir -p $(@D) && cp $(BUILD)/web/node_modules/asciinema-player/dist/bundle/asciinema-player.css $@
endif

$(BUILD)/gen/web/style.css: $(sort $(wildcard $(WEB)/*.css))
	$(Q)mkdir -p $(@D) && cat $^ > $@

$(BUILD)/gen/web/report.js: $(REPORT_JS) $(BUILD)/stamp/report.js
	$(Q)mkdir -p $(@D) && { printf '"use strict";\n(() => {\n'; cat $(REPORT_JS); printf '})();\n'; } > $@

$(BUILD)/gen/report.S: $(REPORT_PARTS) userspace/replay/embed.sh
	$(call say,GEN,$@)
	$(Q)mkdir -p $(@D) && sh userspace/replay/embed.sh $(REPORT_PARTS) > $@

# ---- default rule packs, built in ----
PACKS := $(sort $(wildcard rules/packs/*.yaml))
$(BUILD)/gen/packs.S: $(PACKS) rules/packs/embed.sh
	$(call say,PACKS,$@)
	$(Q)mkdir -p $(@D) && sh rules/packs/embed.sh $(PACKS) > $@

REDACT_PACKS := $(sort $(wildcard rules/redact/*.yaml))
$(BUILD)/gen/redact_packs.S: $(REDACT_PACKS) rules/packs/embed.sh
	$(call say,PACKS,$@)
	$(Q)mkdir -p $(@D) && sh rules/packs/embed.sh -t redact_packs $(REDACT_PACKS) > $@

POLICIES := $(sort $(wildcard runtime/policies/*.yaml))
$(BUILD)/gen/policies.S: $(POLICIES) rules/packs/embed.sh
	$(call say,PACKS,$@)
	$(Q)mkdir -p $(@D) && sh rules/packs/embed.sh -t shipped_policies $(POLICIES) > $@

$(BUILD)/gen/openapi.S: userspace/api/openapi.json userspace/api/mcp_tools.json
	$(Q)mkdir -p $(@D) && printf '%s\n' '.section .rodata' '.globl api_openapi, api_openapi_end' \
		'.globl mcp_tools, mcp_tools_end' 'api_openapi: .incbin "$<"' 'api_openapi_end: .byte 0' \
		'mcp_tools: .incbin "userspace/api/mcp_tools.json"' 'mcp_tools_end: .byte 0' '.section .note.GNU-stack,"",@progbits' > $@

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
RANK_redact    := base event redact
RANK_capture   := base event capture
RANK_replay    := base event replay
RANK_rules     := base event rules
RANK_exporters := base event exporters
RANK_runtime   := base event runtime
RANK_workspace := base workspace
RANK_image     := base event image
RANK_pipeline  := $(filter-out oci catalog scenarios api cli,$(FOLDERS))
RANK_oci       := base event oci
RANK_catalog   := $(filter-out scenarios api cli,$(FOLDERS))
RANK_scenarios := $(filter-out catalog api cli,$(FOLDERS))
RANK_api       := $(filter-out catalog scenarios cli,$(FOLDERS))
RANK_cli       := $(FOLDERS)

define unit_rule
$(BUILD)/tests/unit/$(1)/%: $(BUILD)/obj/tests/unit/$(1)/%.o $(foreach f,$(RANK_$(1)),$(BUILD)/lib/$(f).a)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(LDFLAGS_ALL) -o $$@ $$< -Wl,--start-group \
		$(foreach f,$(RANK_$(1)),$(BUILD)/lib/$(f).a) -Wl,--end-group $$(LIBS_ALL) -lcmocka
endef
$(foreach f,$(FOLDERS),$(eval $(call unit_rule,$(f))))

# gVisor's messages are read a second time by protobuf-c, to compare: tests/unit/event/seccheck.proto.
$(BUILD)/gen/seccheck.pb-c.c: tests/unit/event/seccheck.proto
	$(call say,PROTOC,$@)
	$(Q)mkdir -p $(@D) && protoc-c --c_out=$(@D) --proto_path=$(<D) $(<F)
$(BUILD)/obj/gen/seccheck.pb-c.o: $(BUILD)/gen/seccheck.pb-c.c $(BUILD)/stamp/cc
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
$(BUILD)/obj/tests/unit/event/test_seccheck.o: CPPFLAGS_ALL += -I$(BUILD)/gen
$(BUILD)/obj/tests/unit/event/test_seccheck.o: $(BUILD)/gen/seccheck.pb-c.c
$(BUILD)/tests/unit/event/test_seccheck: $(BUILD)/obj/gen/seccheck.pb-c.o
$(BUILD)/tests/unit/event/test_seccheck: LIBS_ALL += $(BUILD)/obj/gen/seccheck.pb-c.o -lprotobuf-c

# Helper programs are free-standing: `// libs: -lfoo` in their first lines names what they link. They are not
# what is tested, and some are static: no sanitizers.
# Some are shared objects, for LD_PRELOAD: -pie is not for them.
LDFLAGS_HELPERS = $(filter-out $(SAN) $(if $(shell grep -m1 '^// libs:.*-shared' $<),-pie),$(LDFLAGS_ALL))
$(BUILD)/tests/helpers/%: tests/helpers/%.c $(BUILD)/stamp/cc
	$(call say,HELPER,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(filter-out -Wmissing-prototypes $(SAN),$(CFLAGS_ALL)) \
		-MMD -MP $(LDFLAGS_HELPERS) -o $@ $< $$(sed -n '1,5s|^// libs: ||p' $<)

# A helper that drives our own code says so by `// ours: <folder>` in its second line: it is linked like a
# unit test of that folder.
HELPERS_OURS := $(shell sed -ns '2s|^// ours: ||p;T;F' $(TEST_HELPER_SRCS) | paste - - | sed 's|\(.*\)\t.*/\(.*\)\.c|\2:\1|')
define helper_rule
$(BUILD)/tests/helpers/$(1): $(BUILD)/obj/tests/helpers/$(1).o $(foreach f,$(RANK_$(2)),$(BUILD)/lib/$(f).a)
	$$(call say,LINK,$$@)
	$$(Q)mkdir -p $$(@D) && $$(CC) $$(LDFLAGS_ALL) -o $$@ $$< -Wl,--start-group \
		$(foreach f,$(RANK_$(2)),$(BUILD)/lib/$(f).a) -Wl,--end-group $$(LIBS_ALL)
endef
$(foreach h,$(HELPERS_OURS),$(eval $(call helper_rule,$(word 1,$(subst :, ,$(h))),$(word 2,$(subst :, ,$(h))))))

# An engine, a hub, a front that were taken over: they have these in place of their own, in this program alone.
$(BUILD)/tests/helpers/takeover: LDFLAGS_ALL += -Wl,--wrap=engine_check_stopped -Wl,--wrap=hub_stream_first \
	-Wl,--wrap=upstream_ask

# tests/fuzz/fuzz_<parser>.c: a libFuzzer target. Linked with a plain main it replays its corpus in `check`,
# so a crash that was found once is tested for good.
FUZZ_SRCS    := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_REPLAYS := $(FUZZ_SRCS:tests/fuzz/fuzz_%.c=$(BUILD)/tests/fuzz/replay_%)
FUZZ_BINS    := $(FUZZ_SRCS:tests/fuzz/%.c=$(BUILD)/tests/fuzz/%)
LIBS_TEST    := $(foreach f,$(filter-out cli,$(FOLDERS)),$(BUILD)/lib/$(f).a)

.PHONY: test-bins
test-bins: $(TEST_UNIT_BINS) $(TEST_HELPERS) $(FUZZ_REPLAYS) ## build all test programs without running them

$(BUILD)/tests/fuzz/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(LIBS_TEST)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(LIBS_TEST) \
		-Wl,--end-group $(LIBS_ALL)

$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(LIBS_TEST)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(LIBS_TEST) \
		-Wl,--end-group $(LIBS_ALL)

# tests/bench/bench_<x>.c: linked as the main binary is, without the command line.
BENCH_SRCS := $(wildcard tests/bench/bench_*.c)
BENCH_BINS := $(BENCH_SRCS:%.c=$(BUILD)/%)
$(BUILD)/tests/bench/bench_%: $(BUILD)/obj/tests/bench/bench_%.o $(LIBS_TEST)
	$(call say,LINK,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(LDFLAGS_ALL) -o $@ $< -Wl,--start-group $(LIBS_TEST) -Wl,--end-group \
		$(LIBS_ALL)

# `sudo make` would leave products that the owner of the tree cannot replace.
ifneq ($(and $(SUDO_UID),$(filter 0,$(shell id -u))),)
GIVE_BACK = chown -hR $(SUDO_UID):$(SUDO_GID) $(wildcard $(BUILD))
else
GIVE_BACK = :
endif
RUN_TESTS = $(GIVE_BACK); $(PYTHON) tests/run.py --build $(BUILD)
# T="word word": only the tests whose name holds one of the words.
T ?=

.PHONY: check
check: all test-bins ## run the tests; as root also those that load BPF and enter sandboxes (T=WORD: only those)
	$(Q)$(RUN_TESTS) $(T)

.PHONY: check-root
check-root: all test-bins ## as root: run only the tests that need root, and those of the sinks
	$(Q)$(RUN_TESTS) --suite root,scenarios,bpf,export $(T)

.PHONY: check-gvisor-corpus
check-gvisor-corpus: all test-bins ## as root: all scenarios under gVisor; `make check` takes one of each kind
	$(Q)WARDER_ALL_SCENARIOS=1 $(RUN_TESTS) -v --timeout 3000 root/scenarios

ASAN := -fsanitize=address,undefined -fno-sanitize-recover=all
.PHONY: check-asan
check-asan: ## run the tests that need no root under ASan and UBSan (products in $(BUILD)-asan)
	$(Q)$(MAKE) BUILD=$(BUILD)-asan SAN='$(ASAN)' OPT='-O1 -g' all test-bins
	$(Q)ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(PYTHON) tests/run.py --build $(BUILD)-asan --suite unit,golden,rules,fuzz,export $(T)

.PHONY: bpf-cost
bpf-cost: all test-bins ## as root: write down what each program costs the verifier, here and under KERNELS in VMs
	$(Q)BUILD=$(BUILD) CLANG=$(CLANG) $(PYTHON) tests/bpf/cost.py --update
	$(Q)for k in $(KERNELS); do tests/vm/vmtest --kernel $$k -- $(BUILD)/tests/helpers/prog_cost 2>/dev/null | \
		$(PYTHON) tests/bpf/cost.py --update --place "$$k clang$$($(CLANG) --version | sed -n 's/.*version \([0-9]*\).*/\1/p')" || exit; done

KERNELS ?= 6.1 6.12
.PHONY: check-vm
check-vm: all test-bins ## run what depends on the kernel under other ones in VMs (KERNELS="6.1 6.12"; T=--families or T=WORD)
	$(Q)$(GIVE_BACK); tests/vm/check --build $(BUILD) --kernels "$(KERNELS)" $(T)

.PHONY: vm-shell
vm-shell: ## a shell under the first of KERNELS, in a VM that sees this machine's files
	$(Q)tests/vm/vmtest --kernel $(firstword $(KERNELS)) --timeout 0 --shell

SOAK_SECONDS ?= 600
SOAK_RATE    ?= 20000
.PHONY: soak
soak: all test-bins ## SOAK_SECONDS (600) of SOAK_RATE (20000) events/s into sinks that fail at random; as root 10,000 sandboxes
	$(Q)SOAK_SECONDS=$(SOAK_SECONDS) SOAK_RATE=$(SOAK_RATE) $(PYTHON) tests/run.py --build $(BUILD) -v \
		--timeout $$(( $(SOAK_SECONDS) * 2 + 600 )) export/soak
	$(Q)MANY_SANDBOXES=10000 $(PYTHON) tests/run.py --build $(BUILD) -v --timeout 3000 root/many

MANY_ALIVE ?= 200
.PHONY: many
many: all test-bins ## as root: MANY_ALIVE (200) sandboxes at once, and kill -9 of the agent and of keepers (some minutes)
	$(Q)MANY_ALIVE=$(MANY_ALIVE) $(PYTHON) tests/run.py --build $(BUILD) -v --timeout 3000 root/agent_many

CHAOS_SECONDS ?= 600
CHAOS_SEED ?=
.PHONY: chaos
chaos: all test-bins ## as root: things break at random under an agent for CHAOS_SECONDS (600); CHAOS_SEED repeats a run
	$(Q)CHAOS_SECONDS=$(CHAOS_SECONDS) CHAOS_SEED=$(CHAOS_SEED) $(PYTHON) tests/run.py --build $(BUILD) -v \
		--timeout $$(( $(CHAOS_SECONDS) * 2 + 900 )) root/chaos

.PHONY: check-oom
check-oom: all test-bins ## commands with each of their allocations failing; `make check` takes some of them (hours)
	$(Q)OOM_ALL=1 $(RUN_TESTS) --timeout 36000 oom/ root/oom

FUZZ_SECONDS ?= 20
.PHONY: fuzz-bins
fuzz-bins: $(FUZZ_BINS)

.PHONY: fuzz-smoke
fuzz-smoke: ## fuzz each parser for FUZZ_SECONDS (20) s with clang's libFuzzer (products in $(BUILD)-fuzz)
	$(Q)$(MAKE) BUILD=$(BUILD)-fuzz CC=$(CLANG) OPT='-O1 -g' SAN='-fsanitize=fuzzer-no-link $(ASAN)' fuzz-bins
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/smoke.sh $(BUILD)-fuzz $(T)

SECONDS ?= 60
TARGETS ?=
.PHONY: fuzz
fuzz: ## the same for SECONDS (60) s each, of TARGETS="decode dns" only those
	$(Q)$(MAKE) fuzz-smoke FUZZ_SECONDS=$(SECONDS) T='$(TARGETS)'

.PHONY: bench
bench: all $(BENCH_BINS) $(TEST_HELPERS) ## measure speed against the targets; ratios in one run (as root: all of it; ONLY=cost: a part)
	$(Q)$(GIVE_BACK); $(PYTHON) -B tests/bench/run --build $(BUILD) $(if $(ONLY),--only $(ONLY))

.PHONY: demo
demo: all $(TEST_HELPERS) ## as root: real commands in a sandbox, the kill, the evidence, Kafka (KAFKA=host:port)
	$(Q)$(GIVE_BACK); BUILD=$(BUILD) KAFKA=$(KAFKA) tests/demo/demo.sh

# ---- hygiene ----
.PHONY: lint
lint: ## check formatting, layers, the tree and the shell scripts
	$(Q)tests/lint/all.sh

.PHONY: tidy
tidy: $(BUILD)/gen/warder.skel.h ## static analysis by clang-tidy and cppcheck; slow, to be read with judgement
	$(Q)clang-tidy --quiet $(foreach f,$(FOLDERS),$(SRCS_$(f))) $(INIT_SRCS) $(KEEPER_SRCS) -- $(CPPFLAGS_ALL) -std=gnu11 $(PKG_CFLAGS)
	$(Q)cppcheck -q --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 -I. -I$(BUILD)/gen \
		--suppress=missingInclude $(foreach f,$(FOLDERS),$(SRCS_$(f))) $(INIT_SRCS) $(KEEPER_SRCS)

.PHONY: format
format: ## apply clang-format
	$(Q)tests/lint/format.sh --fix

.PHONY: precommit
precommit: lint ## what every commit must pass: lint, build, tests without root
	$(Q)$(MAKE) all check

# ---- set-up and installation ----
.PHONY: deps
deps: ## as root: install what building and testing needs, by apt (Debian 12, 13, Ubuntu 24.04)
	$(Q)sh .ci/deps

# Manual pages and completion come from the tables of options, so from the binary itself.
$(BUILD)/help/made: $(BUILD)/warder
	$(call say,HELP,$(@D))
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/man
	$(Q)$(BUILD)/warder completion man $(@D)/man
	$(Q)$(BUILD)/warder completion bash > $(@D)/warder.bash
	$(Q)$(BUILD)/warder completion zsh > $(@D)/_warder
	$(Q)touch $@

SHARE := $(PREFIX)/share
.PHONY: install
install: all $(BUILD)/help/made ## install binary, manual pages, completion, policies, systemd unit under DESTDIR and PREFIX
	$(Q)install -D -m 0755 $(BUILD)/warder $(DESTDIR)$(PREFIX)/bin/warder
	$(Q)ln -sf warder $(DESTDIR)$(PREFIX)/bin/warder-oci
	$(Q)install -D -m 0644 -t $(DESTDIR)$(SHARE)/warder/policies $(POLICIES)
	$(Q)install -D -m 0644 -t $(DESTDIR)$(SHARE)/man/man1 $(BUILD)/help/man/*.1
	$(Q)install -D -m 0644 $(BUILD)/help/warder.bash $(DESTDIR)$(SHARE)/bash-completion/completions/warder
	$(Q)install -D -m 0644 $(BUILD)/help/_warder $(DESTDIR)$(SHARE)/zsh/vendor-completions/_warder
	$(Q)sed 's|@BIN@|$(PREFIX)/bin|' userspace/package/warder-agent.service.in > $(BUILD)/help/warder-agent.service
	$(Q)install -D -m 0644 -t $(DESTDIR)$(PREFIX)/lib/systemd/system $(BUILD)/help/warder-agent.service

.PHONY: uninstall
uninstall: ## remove what `make install` put there; records and /etc/warder stay
	$(Q)rm -f $(DESTDIR)$(PREFIX)/bin/warder $(DESTDIR)$(PREFIX)/bin/warder-oci $(DESTDIR)$(SHARE)/man/man1/warder.1 \
		$(DESTDIR)$(SHARE)/man/man1/warder-*.1 $(DESTDIR)$(SHARE)/bash-completion/completions/warder \
		$(DESTDIR)$(SHARE)/zsh/vendor-completions/_warder $(DESTDIR)$(PREFIX)/lib/systemd/system/warder-agent.service
	$(Q)rm -rf $(DESTDIR)$(SHARE)/warder

.PHONY: deb
deb: all $(BUILD)/help/made ## build a Debian package, $(BUILD)/warder_VERSION_ARCH.deb
	$(Q)sh userspace/package/deb $(BUILD)

.PHONY: clean
clean: ## remove build products
	$(Q)rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-fuzz

.PHONY: vmlinux
vmlinux: ## regenerate vmlinux/$(ARCH)/vmlinux.h from the running kernel
	$(Q)sh vmlinux/generate.sh $(BPFTOOL) /sys/kernel/btf/vmlinux > vmlinux/$(ARCH)/vmlinux.h.new
	$(Q)mv vmlinux/$(ARCH)/vmlinux.h.new vmlinux/$(ARCH)/vmlinux.h

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
