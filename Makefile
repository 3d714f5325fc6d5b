# tallyd: `make` builds build/tallyd, `make demo` shows it, `make check` tests it; `make help` lists the rest.

FLAVOUR ?= release
BUILD   := build$(if $(filter-out release,$(FLAVOUR)),/$(FLAVOUR))
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
VERSION := 0.1.0

STAGES   := base ingest aggregate store query web config daemon
PACKAGES := yaml-0.1 sqlite3 libarchive libmicrohttpd libxxhash zlib

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
CPPFLAGS += -I. -D_GNU_SOURCE -DTALLYD_VERSION='"$(VERSION)"'
CFLAGS   ?= -O2 -g
CFLAGS   += -std=c11 -pthread -fno-omit-frame-pointer $(WARNINGS)
LDLIBS   += $(PKG_LIBS) -lm
PKG_CFLAGS = $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
PKG_LIBS   = $(shell pkg-config --libs $(PACKAGES) 2>/dev/null)

SANITIZE_asan  := -fsanitize=address -fno-sanitize-recover=all
SANITIZE_ubsan := -fsanitize=undefined -fno-sanitize-recover=all
SANITIZE_tsan  := -fsanitize=thread
SANITIZE_cov   := --coverage -O0
CFLAGS  += $(SANITIZE_$(FLAVOUR))
LDFLAGS += $(SANITIZE_$(FLAVOUR))

SOURCES := $(wildcard $(STAGES:%=%/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/obj/%.o)
# Everything but main(): what tests, fuzzers and benchmarks link.
LIBRARY := $(filter-out $(BUILD)/obj/daemon/main.o,$(OBJECTS))

all: $(BUILD)/tallyd ## build build/tallyd (the default)

$(BUILD)/tallyd: $(OBJECTS)
	@echo "  LD $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC $<"
	@$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# A test is any tests/unit/test_*.c: found, never listed.
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))
TEST_SUPPORT := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/support/*.c))

$(BUILD)/tests/%: $(BUILD)/obj/tests/unit/%.o $(TEST_SUPPORT) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(BUILD)/bench_hot: $(BUILD)/obj/bench/hot.o $(LIBRARY)
	@echo "  LD $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/traffic: $(BUILD)/obj/bench/traffic.o $(BUILD)/obj/bench/site.o
	@echo "  LD $@"
	@$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lm

unit: $(UNIT_TESTS) ## build and run the unit tests
	@for t in $(UNIT_TESTS); do echo "$$t"; $$t || exit 1; done

format: ## rewrite the sources in the project's layout
	clang-format-14 -i $(FORMATTED)

FORMATTED = $(wildcard $(STAGES:%=%/*.[ch]) bench/*.[ch] tests/*/*.[ch])

clean: ## remove what was built
	rm -rf build

help: ## list the targets
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: all unit format clean help
.SECONDARY:

-include $(OBJECTS:.o=.d)
