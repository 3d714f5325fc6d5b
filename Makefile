# tallyd: `make` builds build/tallyd, `make demo` shows it, `make check` tests it; `make help` lists the rest.

FLAVOUR ?= release
BUILD   := build$(if $(filter-out release,$(FLAVOUR)),/$(FLAVOUR))
PREFIX  ?= /usr/local
DESTDIR ?=
CC      ?= cc
CFLAGS  ?= -O2 -g
VERSION := 0.1.0
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += --jobs=$(shell nproc) --no-print-directory
endif

# Lowest first: a folder includes itself and the folders before it.
FOLDERS  := base ingest ingest/file ingest/derive ingest/schema ingest/decode ingest/kafka aggregate store store/common store/mem store/sqlite \
            $(addprefix store/mongo/,wire handle doc ledger live send raw writer catalog job admin) store/mongo store/backend \
            stats query prom web config daemon/service daemon/count daemon daemon/file daemon/topic verify cli/top cli
STAGES   := $(sort $(foreach f,$(FOLDERS),$(firstword $(subst /, ,$f))))
LINKED   := yaml-0.1 sqlite3 libmicrohttpd libxxhash zlib libzstd libbson-1.0 rdkafka libsystemd
LOADED   := libarchive libcurl jansson libmongoc-1.0 glib-2.0 libpcre2-8 snappy libmaxminddb# at run time, when they are needed: base/library.h

# `make asan` and its like build a flavour into build/FLAVOUR, with clang (gcc for cov). The fuzz targets are of asan, too.
SANITIZE_asan  := -O1 -g1 -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all
SANITIZE_tsan  := -O1 -g1 -fsanitize=thread
SANITIZE_cov   := -O0 --coverage
CLANG := clang-14

# The flavour arm64 is cross-built with Debian's libraries in a folder of their own, and its tests run by qemu.
PKG_CONFIG := pkg-config
ARM64_ROOT ?= $(CURDIR)/build/arm64/root
ifeq ($(FLAVOUR),arm64)
CC         := aarch64-linux-gnu-gcc
SYSROOT    := $(ARM64_ROOT)
export PKG_CONFIG_SYSROOT_DIR := $(SYSROOT)
export PKG_CONFIG_LIBDIR      := $(SYSROOT)/usr/lib/aarch64-linux-gnu/pkgconfig
endif
QEMU       := qemu-aarch64-static -L $(ARM64_ROOT)$() # with a space behind it

# What Debian's hardening=+all does, each flag only where the compiler takes it without a warning. Sanitizers find more by themselves.
HARDENED := release arm64
HARDEN   := -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fstack-clash-protection -fcf-protection -fPIE
HARDEN_LINK := -pie -Wl,-z,relro -Wl,-z,now
# Tests are linked by the faster linker if there is one: a hundred of them hold the whole program.
TEST_LINK    := -fuse-ld=gold
WRAP_THREADS := -Wl,--wrap=pthread_create
# Links by $1, without the complaints of that linker about symbols that are the sanitizer's own.
link_test     = mkdir -p $(@D); ($1 @$(BUILD)/test.libs) 2>$@.said; status=$$?; sed '/Cannot export local symbol/d' $@.said >&2; \
                rm -f $@.said; exit $$status
# The flags of a list $1 that the compiler takes for a program.
taken     = for flag in $1; do printf '\#include <stdio.h>\nint main(void) { return 0; }\n' | \
            $(COMPILER) $(CFLAGS) -Werror -fPIE $$flag -x c -o $@.try - 2>/dev/null && echo "$$flag"; rm -f $@.try; done

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
DYGRAPHS ?= /usr/share/javascript/dygraphs
DEFINES  := -I. -D_GNU_SOURCE -DTALLYD_VERSION='"$(VERSION)"' -DDYGRAPHS='"$(DYGRAPHS)"'
COMPILER  = $(CC) $(SYSROOT:%=--sysroot=%)
COMPILE   = $(COMPILER) $(DEFINES) $(CPPFLAGS) @$(BUILD)/packages.cflags @$(BUILD)/harden.cflags -std=c11 -pthread -fno-omit-frame-pointer \
            $(WARNINGS) $(CFLAGS) $(SANITIZE_$(FLAVOUR))
LINK      = echo "  LD $@" && mkdir -p $(@D) && $(COMPILER) -pthread $(CFLAGS) $(SANITIZE_$(FLAVOUR)) @$(BUILD)/harden.libs $(LDFLAGS) \
            -o $@ $(filter %.o,$^) @$(BUILD)/packages.libs $(LIBS) -lm

SOURCES := $(wildcard $(FOLDERS:%=%/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/obj/%.o) $(if $(filter tsan,$(FLAVOUR)),$(BUILD)/obj/tests/tsan/threads.o)
# Everything but main(): tests, fuzzers and benchmarks link it.
LIBRARY := $(filter-out $(BUILD)/obj/cli/main.o,$(OBJECTS))
# The files that format, lint and compile_commands.json look at.
ALL_C   := $(wildcard $(FOLDERS:%=%/*.c) bench/*.c bench/kafka/*.c bench/mongo/*.c tests/*/*.c)
ALL_H   := $(wildcard $(FOLDERS:%=%/*.h) bench/*.h bench/kafka/*.h bench/mongo/*.h tests/*/*.h)
SCRIPTS := packages.sh .ci/run $(wildcard docs/completions/* tests/*/*.sh bench/*.sh)

all: $(BUILD)/tallyd ## build build/tallyd (the default)

# ---- programs

$(BUILD)/tallyd: $(OBJECTS)
	@$(LINK)

$(BUILD)/obj/%.o: %.c Makefile $(BUILD)/packages.cflags $(BUILD)/harden.cflags
	@mkdir -p $(@D)
	@echo "  CC $(if $(SANITIZE_$(FLAVOUR)),($(FLAVOUR)) )$<"
	@$(COMPILE) -MMD -MP -c -o $@ $<

$(BUILD)/bench_%: $(BUILD)/obj/bench/%.o $(LIBRARY)
	@$(LINK)

# web/assets.c embeds the page in the program.
$(BUILD)/obj/web/assets.o: $(wildcard web/*.html web/*.css web/*.js web/*.svg $(DYGRAPHS)/dygraph.min.*)

$(BUILD)/traffic: $(BUILD)/obj/bench/traffic.o $(BUILD)/obj/bench/site.o
	@$(LINK)

# Programs of the Kafka benchmark: bench/kafka/bare.c is build/kafka_bare.
KAFKA_TOOLS := $(BUILD)/kafka_bare $(BUILD)/kafka_load $(BUILD)/kafka_pace

$(BUILD)/kafka_%: $(BUILD)/obj/bench/kafka/%.o $(BUILD)/obj/bench/kafka/client.o $(BUILD)/obj/bench/site.o
	@$(LINK)

# Programs of the MongoDB benchmark: bench/mongo/naive.c is build/mongo_naive.
MONGO_TOOLS := $(BUILD)/mongo_naive $(BUILD)/mongo_apply $(BUILD)/mongo_chart $(BUILD)/mongo_feed
FIGURES     := $(BUILD)/mongo_figures
SEALS       := $(BUILD)/mongo_seals

$(BUILD)/mongo_feed: $(BUILD)/obj/bench/mongo/feed.o $(BUILD)/obj/bench/site.o
	@$(LINK)

$(BUILD)/mongo_naive $(BUILD)/mongo_apply $(BUILD)/mongo_chart $(FIGURES) $(SEALS): LIBS := -lmongoc-1.0
# mongo_apply wraps these functions, to count round trips.
$(BUILD)/mongo_apply: LDFLAGS += $(foreach f,read write make update_one find,-Wl,--wrap=mongo_$f)
$(BUILD)/mongo_%: $(BUILD)/obj/bench/mongo/%.o $(BUILD)/obj/bench/mongo/visits.o $(BUILD)/obj/bench/site.o $(LIBRARY)
	@$(LINK)

# Every tests/unit/test_*.c is a test: they are found, never listed.
UNIT_TESTS   := $(patsubst tests/unit/%.c,tests/%,$(wildcard tests/unit/test_*.c))
# Those that make threads: the only ones that check-all runs under ThreadSanitizer. tests/support/threads.h finds what is missing here.
THREADED     := $(addprefix tests/test_,hostile kafka_told log member pipeline quota registry row_jobs streams topic verify web worker workers)
# What check-all does not run for arm64: nothing that is particular to these depends on the processor, but on files, SQLite, processes and
# sockets, and by qemu they take longer than all others together. `make arm64` runs them, too.
LONG_BY_QEMU := $(addprefix tests/test_,audit expire expire_watermarks hostile input listing pipeline plan prealloc reader sketch_orders sqlite_damage \
                sqlite_faults sqlite_files sqlite_flips step store_contract store_disk store_random survey verify web)
TEST_SUPPORT := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/support/*.c))

$(BUILD)/tests/test_%: $(BUILD)/obj/tests/unit/test_%.o $(TEST_SUPPORT) $(LIBRARY)
	@$(call link_test,$(LINK) -lcmocka $(WRAP_THREADS))
# These have calls of the system fail.
$(BUILD)/tests/test_family: LDFLAGS += -Wl,--wrap=readdir,--wrap=stat
$(BUILD)/tests/test_survey_more: LDFLAGS += -Wl,--wrap=open

# test_input makes archives, too.
$(BUILD)/tests/test_input: LIBS := -larchive

# Every tests/fuzz/fuzz_*.c is a fuzz target; its inputs are in tests/fuzz/corpus.
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/tests/replay_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(BUILD)/obj/tests/fuzz/replay.o $(LIBRARY)
	@$(call link_test,$(LINK))

$(BUILD)/tests/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(LIBRARY)
	@$(call link_test,$(LINK) -fsanitize=fuzzer)

# fuzz_prom makes a store with counts to ask for.
$(BUILD)/tests/fuzz_prom $(BUILD)/tests/replay_prom: $(BUILD)/obj/tests/support/batcher.o

# fuzz_json compares with jansson.
$(BUILD)/tests/fuzz_json $(BUILD)/tests/replay_json: LIBS := -ljansson

# Tests preload these into tallyd: faulty.so makes reads or writes fail, otherday.so puts the clock forward or back, hurry.so has it run
# faster.
PRELOADED := $(BUILD)/faulty.so $(BUILD)/otherday.so $(BUILD)/hurry.so

$(PRELOADED): $(BUILD)/%.so: tests/system/%.c Makefile $(BUILD)/packages.cflags $(BUILD)/harden.cflags
	@mkdir -p $(@D)
	@echo "  LD $@"
	@$(COMPILE) -fPIC -shared -o $@ $< -ldl

# The flags from pkg-config, after a check that all packages are there. Goals that install packages do so before.
$(BUILD)/packages.cflags: Makefile $(SYSROOT) | $(if $(filter demo check check-all,$(MAKECMDGOALS)),deps)
	@mkdir -p $(@D)
	@$(PKG_CONFIG) --exists --print-errors '$(LINKED) $(LOADED)' || \
	    { echo 'Libraries are missing: `make deps` installs their Debian packages.'; exit 1; }
	@$(PKG_CONFIG) --libs $(LINKED) >$(BUILD)/packages.libs
	@$(PKG_CONFIG) --cflags $(LINKED) $(LOADED) | sed 's/-I/-isystem/g' >$@ # whose headers are not ours to warn about

$(BUILD)/harden.cflags: Makefile $(SYSROOT)
	@mkdir -p $(@D)
	@($(call taken,$(if $(filter $(HARDENED),$(FLAVOUR)),$(HARDEN_LINK)))) >$(BUILD)/harden.libs
	@($(call taken,$(TEST_LINK))) >$(BUILD)/test.libs
	@($(call taken,$(if $(filter $(HARDENED),$(FLAVOUR)),$(HARDEN)))) >$@

$(ARM64_ROOT): tests/arm64/sysroot.sh debian/control
	@echo "  FETCH $(@F)"
	@mkdir -p build
	@tests/arm64/sysroot.sh $@ >build/arm64-root.log 2>&1 || { cat build/arm64-root.log; exit 1; }

# The address at which `make demo` serves its page.
LISTEN ?= 127.0.0.1:8080

demo: deps all build/traffic build/kafka_mock ## count made-up traffic live and show it on a page; Ctrl-C ends it
	@bench/demo.sh build $(LISTEN)

deps: ## install the Debian packages that build and tests need, if missing
	@./packages.sh build $(if $(filter-out demo deb arm64 image,$(or $(MAKECMDGOALS),deps)),check) $(if $(filter image,$(MAKECMDGOALS)),package image) \
	    $(if $(filter deb,$(MAKECMDGOALS)),package) $(if $(filter arm64,$(MAKECMDGOALS) $(ARCH)),arm64) $(if $(filter check-all,$(MAKECMDGOALS)),all)

servers: | $(if $(filter check-all,$(MAKECMDGOALS)),deps) ## get the MongoDB servers and vmalert of check-all into .cache: needs go and cargo, 9 minutes
	@tests/servers/mongo.py install --server=all
	@tests/servers/alerts.py install

# ---- tests: arguments of tests/run.py, command lines with timeouts

UNIT_BUILD := $(UNIT_TESTS:%=$(BUILD)/%) $(FUZZ_TARGETS:%=$(BUILD)/tests/replay_%)
# The unit tests $3 of flavour $1, each run by the command $2; and all of them, with the fuzz replays.
units       = --timeout=180 $(foreach t,$3,'$(if $(filter $t,$(THREADED)),,TALLYD_THREADS=none )$2build$1/$t')
replays     = --timeout=180 $(foreach t,$(FUZZ_TARGETS),'$2build$1/tests/replay_$t tests/fuzz/corpus/$t')
unit_runs   = $(call units,$1,$2,$(UNIT_TESTS)) $(call replays,$1,$2)
ON_ARM64   := $(filter-out $(LONG_BY_QEMU),$(UNIT_TESTS))
system = $(patsubst %,tests/system/test_%.py,$1)
# The system tests of `make check`, the longest first. All others run in check-all only.
CHECK_TESTS  := mongo_contract service kafka run mongo_apply import api faults monitoring kill prometheus figures backup \
                mongo_charts mongo_series zones metrics expire audit verify gauges openapi words prom_sketches
SYSTEM_TESTS := $(wildcard tests/system/test_*.py tests/system/test_*.sh)
# The MongoDB tests run on SecantusDB's Python edition, which is slow, but installed in seconds. check-all runs the longer tests on
# two faster servers instead, which take minutes to build. ON_ONE names what tests tallyd beside a broker, a proxy or a clock more than
# the server.
ON_FERRETDB  := mongo mongo_contract mongo_fleet mongo_ttl mongo_raw_growth mongo_expire mongo_rollup mongo_top mongo_kafka mongo_passing \
                mongo_monitoring mongo_raw mongo_prealloc mongo_peers mongo_apply mongo_raw_kafka mongo_copy mongo_sample \
                mongo_failover mongo_chart_page mongo_top_sketches
ON_ONE       := mongo_fleet mongo_kafka mongo_monitoring mongo_passing mongo_prealloc mongo_copy mongo_chart_page
ON_SECANTUS  := $(filter-out $(ON_ONE),$(ON_FERRETDB))
# On SecantusDB these run in check-mongo only: check-all has mongo_weeks and mongo_raw roll up and store raw events there.
LEFT_OUT     := mongo_rollup mongo_raw_kafka
# These need no second server. The faster edition takes half the processor time: 15 s instead of 28 s for mongo_forget.
ONLY_SECANTUS := mongo_weeks mongo_audit mongo_backup mongo_identity mongo_forget mongo_backfill mongo_kafka_backfill mongo_past \
                mongo_versions mongo_registry mongo_charts mongo_series mongo_kills mongo_replace mongo_weeks_sketches mongo_totals \
                mongo_sketches mongo_sketch_orders mongo_live mongo_newest mongo_otlp mongo_page mongo_builds mongo_seats mongo_longer
# The MongoDB tests on FerretDB with $1 rounds of what happens by chance; and the tests $3 on SecantusDB with $2 rounds.
mongo_runs    = $(foreach t,$(ON_FERRETDB),'TALLYD_MONGO=ferretdb TALLYD_ROUNDS=$1 $(call system,$t)') \
                $(foreach t,$3,'TALLYD_MONGO=secantus TALLYD_ROUNDS=$2 $(call system,$t)')
# Only the Python edition can be told to refuse commands.
REFUSALS     := 'tests/system/test_mongo.py Daemon.test_commands_are_refused' 'tests/system/test_mongo_ttl.py Ttl.test_what_the_server_refuses_is_said' \
                'tests/system/test_mongo_raw.py Exact.test_a_server_that_refuses_for_a_while Concern.test_no_right_to_write' \
                'tests/system/test_mongo_raw_growth.py Growth.test_a_drop_that_fails_holds_up_nothing_else'
RUN_RULES  := --timeout=180 'tests/lint/layers.py $(FOLDERS)' 'tests/lint/sizes.py $(STAGES) bench tests' \
              'tests/lint/checked.py $(STAGES)' tests/lint/docs.sh
RUN_FORMAT := --timeout=180 'clang-format-14 --dry-run --Werror $(ALL_C) $(ALL_H)'
RUN_TIDY   := --timeout=1800 tests/lint/tidy.sh
RUN_LINT   := --timeout=60 'shellcheck $(SCRIPTS)' tests/lint/unit.sh 'mandoc -Tlint -Wwarning $(wildcard docs/*.[1-8])'
# ThreadSanitizer needs memory at addresses that it knows, so address randomization is off.
PLAIN      := $(shell setarch -R true 2>/dev/null && echo 'setarch -R ')
# The longest first, so that no long test runs alone at the end.
RUN_LONG   := --timeout=1800 'tests/lint/tidy.sh 20000' --timeout=900 tests/model/model.py 'TALLYD_SWEEP=all tests/system/test_faults.py' \
              'TALLYD_ROUNDS=60 tests/system/test_kafka.py' \
              $(call mongo_runs,5,3,$(filter-out $(LEFT_OUT),$(ON_SECANTUS))) \
              $(foreach t,$(ONLY_SECANTUS),'TALLYD_MONGO=secantus $(call system,$t)') \
              'TALLYD_ROUNDS=100 tests/system/test_kill.py' 'TALLYD_ROUNDS=100 tests/system/test_copy.py' \
              'TALLYD_ROUNDS=50 tests/system/test_versions.py' \
              'TALLYD_ROUNDS=300 tests/system/test_flips.py' 'TALLYD_ROUNDS=2000 build/tests/test_sqlite_flips' \
              'TALLYD_ROUNDS=500 build/tests/test_sketch_orders' \
              $(filter-out $(call system,kill faults kafka flips kafka_topics copy versions $(ON_SECANTUS) $(ON_ONE) $(ONLY_SECANTUS)),$(SYSTEM_TESTS)) $(REFUSALS) \
              $(wildcard tests/long/test_*.py tests/long/test_*.sh) 'tests/chaos/chaos.py --seed=31 --seconds=20' 'tests/chaos/chaos.py --store=ferretdb --seed=3 --seconds=20 --only=kill,die,pause,cut,server,reload' \
              'TALLYD=build/asan/tallyd tests/system/test_import.py' \
              'TALLYD="$(PLAIN)build/tsan/tallyd" tests/system/test_import.py' \
              'TALLYD=build/asan/tallyd tests/system/test_kafka_topics.py' \
              'TALLYD="$(PLAIN)build/tsan/tallyd" tests/system/test_kafka_topics.py' \
              'TALLYD=build/asan/tallyd tests/system/test_mix.py' \
              'TALLYD="$(PLAIN)build/tsan/tallyd" tests/system/test_mix.py' \
              'TALLYD=build/asan/tallyd tests/system/test_api.py' \
              'TALLYD="$(PLAIN)build/tsan/tallyd" tests/system/test_api.py'
TEST_ARM64 := 'TALLYD_PROGRAM=build/arm64/tallyd tests/system/test_hardening.py'
RUN_FUZZ    = --timeout=$(shell expr $(FUZZ_SECONDS) + 60) $(foreach t,$(FUZZ_TARGETS),'tests/fuzz/run.sh $t $(FUZZ_SECONDS)')
FUZZ_SECONDS ?= $(if $(filter check-all,$(MAKECMDGOALS)),5,60)

export ASAN_OPTIONS  := detect_stack_use_after_return=1
export UBSAN_OPTIONS := print_stacktrace=1
export TSAN_OPTIONS  := suppressions=$(CURDIR)/tests/tsan/suppressions

unit: $(UNIT_BUILD) ## build and run the unit tests
	@tests/run.py $(call unit_runs,$(BUILD:build%=%),$(if $(filter tsan,$(FLAVOUR)),$(PLAIN)))

quick: all $(UNIT_BUILD) ## unit tests and the rules of the code, in seconds
	@tests/run.py $(call unit_runs) $(RUN_RULES)

check: deps all $(UNIT_BUILD) build/traffic $(PRELOADED) $(FIGURES) ## install what is missing, build, run the tests that take 3 minutes
	@tests/run.py --timeout=300 $(call system,$(CHECK_TESTS)) $(call unit_runs) $(RUN_RULES)

# Under AddressSanitizer the fuzz targets try the kept inputs before others, so these are not replayed besides.
check-all: deps servers all $(UNIT_BUILD) build/traffic build/bench_sketch $(PRELOADED) $(FIGURES) ## all that can be tested, under every sanitizer: half an hour
	@$(MAKE) FLAVOUR=asan CC=$(CLANG) all $(UNIT_TESTS:%=build/asan/%) fuzz-build
	@$(MAKE) FLAVOUR=tsan CC=$(CLANG) all threaded-build
	@$(MAKE) FLAVOUR=arm64 all portable-build
	@tests/run.py $(SEED:%=--seed=%) $(RUN_LONG) $(RUN_LINT) $(RUN_FUZZ) $(RUN_RULES) $(RUN_FORMAT) $(call unit_runs) \
	    $(call units,/asan,,$(UNIT_TESTS)) $(call units,/tsan,$(PLAIN),$(THREADED)) \
	    $(call units,/arm64,$(QEMU),$(ON_ARM64)) $(call replays,/arm64,$(QEMU)) $(TEST_ARM64)

model: ## search the models of the ledger and of rolling up for a way to count an event twice or never
	@tests/model/model.py

model-deep: ## search them in larger worlds, too: ten minutes
	@tests/model/model.py --deep

seats: ## play the rules of tests/model/divided.pml on FerretDB and SecantusDB, for a minute each
	@tests/model/seats.py --server=ferretdb --seconds=60
	@tests/model/seats.py --server=secantus --seconds=60

check-mongo: ROUNDS = 8
check-mongo: deps all $(UNIT_BUILD) $(PRELOADED) ## the MongoDB tests on FerretDB and SecantusDB, with ROUNDS=8 of what happens by chance
	@tests/servers/mongo.py install --server=all
	@tests/run.py $(SEED:%=--seed=%) --timeout=1800 $(call mongo_runs,$(ROUNDS),$(ROUNDS),$(ON_SECANTUS))

# The minutes that `make soak` takes.
MINUTES ?= 10

soak: deps all ## kill, pause and restart a daemon and its broker by chance for MINUTES=10; prints its seed
	@TALLYD_MINUTES=$(MINUTES) tests/system/test_kafka.py Exactness.test_killed_at_random_moments

# The parameters of `make chaos`. `SEED=` is the first round's seed. `ONLY=` lists the faults to draw from, with commas between them.
# `RESULTS=yes` adds a row with the findings to bench/RESULTS.md.
STORE   ?= sqlite
ROUNDS  ?= 1
SECONDS ?= 60

chaos: deps all $(PRELOADED) ## random faults under an independent judge: STORE=sqlite (or ferretdb, secantus) ROUNDS=1 SECONDS=60 SEED= ONLY= RESULTS=yes
	@tests/chaos/chaos.py --store=$(STORE) --rounds=$(ROUNDS) --seconds=$(SECONDS) $(SEED:%=--seed=%) $(ONLY:%=--only=%) \
	    $(if $(RESULTS),--results=bench/RESULTS.md)

losses: deps all build/traffic $(PRELOADED) ## each loss that once was silent, ROUNDS=1 times: ONLY=WORD,… RESULTS=yes
	@tests/chaos/losses.py --rounds=$(ROUNDS) $(ONLY:%=--only=%) $(if $(RESULTS),--results=bench/RESULTS.md)

histories: deps all $(PRELOADED) ## ROUNDS=1 random histories of a followed log, each rotated while its daemon is killed: SEED= RESULTS=yes
	@tests/chaos/histories.py --rounds=$(ROUNDS) $(SEED:%=--seed=%) $(if $(RESULTS),--results=bench/RESULTS.md)

kills: deps all ## KILLS=200 deaths of upgrade, backfill, forget and copy; as many in MongoDB (TALLYD_MONGO=), and of a fleet
	@TALLYD_KILLS=$(or $(KILLS),200) tests/system/test_kills.py
	@TALLYD_KILLS=$(or $(KILLS),200) tests/system/test_mongo_kills.py
	@TALLYD_KILLS=$(or $(KILLS),200) tests/system/test_mongo_fleet.py Fleet.test_four_killed_at_any_step

asan: ## unit tests under AddressSanitizer (with LeakSanitizer) and UndefinedBehaviorSanitizer
tsan: ## unit tests under ThreadSanitizer
asan tsan:
	@$(MAKE) FLAVOUR=$@ CC=$(CLANG) all unit

arm64: deps ## cross-build for arm64, its Debian package too; run the unit tests by qemu
	@$(MAKE) FLAVOUR=arm64 all unit-build
	@tests/run.py $(call unit_runs,/arm64,$(QEMU)) $(TEST_ARM64) --timeout=900 tests/arm64/test_package.py

image: deps all ## build the image of the Containerfile by buildah, and count in it: needs root
	@tests/run.py --timeout=900 tests/image/test_image.py

cov: ## which lines the unit tests reach: build/cov/index.html
	@$(MAKE) FLAVOUR=cov unit-build
	@find build/cov -name '*.gcda' -delete
	@$(MAKE) FLAVOUR=cov unit
	@gcovr --root . --filter '($(subst $() ,|,$(STAGES)))/' --html-details build/cov/index.html --print-summary build/cov

fuzz: ## libFuzzer on every target, FUZZ_SECONDS=60 each; what crashes is kept in tests/fuzz/corpus
	@$(MAKE) FLAVOUR=asan CC=$(CLANG) fuzz-build
	@tests/run.py $(RUN_FUZZ)

fuzz-replay: $(FUZZ_TARGETS:%=$(BUILD)/tests/replay_%) ## run the fuzz targets over the inputs kept
	@for t in $(FUZZ_TARGETS); do $(BUILD)/tests/replay_$$t tests/fuzz/corpus/$$t || exit 1; done

unit-build: $(UNIT_BUILD)
threaded-build: $(THREADED:%=$(BUILD)/%)
portable-build: $(ON_ARM64:%=$(BUILD)/%) $(FUZZ_TARGETS:%=$(BUILD)/tests/replay_%)
fuzz-build: $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz_%)

bench: all build/traffic build/bench_hot build/bench_json ## measure against the peers and write bench/RESULTS.md
	@python3 bench/run.py

bench-builds: all build/traffic build/bench_hot build/bench_json $(ARM64_ROOT) ## count a line's instructions without hardening, and on arm64, into the same file
	@$(MAKE) BUILD=build/plain HARDENED= build/plain/bench_hot
	@$(MAKE) FLAVOUR=arm64 build/arm64/bench_hot build/arm64/bench_json
	@python3 bench/builds.py

bench-formats: all build/traffic build/bench_hot ## count a line's instructions by compiled formats, into the same file
	@python3 bench/formats.py

bench-regex: all build/traffic ## measure the regex step against mawk, into the same file
	@python3 bench/regex.py

bench-schemas: all build/bench_schemas ## count a message's instructions in Avro and Protobuf, into the same file
	@python3 bench/schemas.py

# The build/ of another checkout, and its name in the results.
OLD      ?= ../old/build
OLD_NAME ?=

bench-ab: all build/traffic $(KAFKA_TOOLS) ## compare with another build, OLD=../old/build, pair by pair, into the same file
	@python3 bench/ab.py --old $(OLD) --old-name '$(OLD_NAME)'

bench-kafka: all build/traffic $(KAFKA_TOOLS) ## measure the daemon with a real Kafka broker, into the same file
	@python3 bench/kafka/run.py

bench-web: all build/traffic $(BUILD)/mongo_feed ## measure what is asked over HTTP while it counts, into the same file
	@python3 bench/web/run.py

bench-figures: all $(FIGURES) ## measure updates over a day by the shape of the document, into the same file and a chart
	@python3 bench/mongo/figures.py

bench-mongo: all $(MONGO_TOOLS) ## measure the store in MongoDB with two servers, into the same file
	@python3 bench/mongo/run.py

bench-fuzz: ## inputs that each fuzz target tries in a second, into the same file
	@$(MAKE) FLAVOUR=asan CC=$(CLANG) fuzz-build
	@python3 bench/fuzz.py

bench-hostile: all build/traffic ## a daemon under hostile load for ten minutes: health, ingest, memory, into the same file
	@python3 bench/hostile.py

bench-seals: $(SEALS) ## measure how many seals a second the ledger in MongoDB takes, by writers and by documents, into the same file
	@python3 bench/mongo/seals.py

bench-install: all ## time from installing the Debian package to the first chart of a busy Apache, into the same file: needs root
	@python3 bench/install.py

bench-jobs: all $(PRELOADED) ## measure the cost of rolling up and expiry, and check that they lose nothing, into the same file
	@python3 bench/jobs.py

bench-prom: all ## judge PromQL by the engine of Prometheus: 60,000 random expressions, and COMPLIANCE=promql-test-queries.yml
	@TALLYD_ROUNDS=30000 TALLYD_COMPLIANCE=$(COMPLIANCE) tests/system/test_prom_judge.py
	@TALLYD_COMPLIANCE=$(COMPLIANCE) tests/system/test_prom_remote.py

bench-copy: all ## copy a store of 100,000 series to MongoDB and back, into the same file
	@python3 bench/there_and_back.py

bench-fields: all build/traffic build/bench_derived ## measure what derived fields cost an event, into the same file
	@python3 bench/fields.py

bench-parsers: all ## compare with independent parsers, and with the logs in LOGS=folder if that is given, into the same file
	@python3 bench/parsers.py $(if $(LOGS),--logs $(LOGS))

bench-judges: all build/bench_sketch ## judge histograms and distinct counts by ClickHouse, DataSketches, DDSketch and postgresql-hll, into the same file
	@python3 bench/judges.py

bench-sketches: all build/traffic build/bench_hot ## measure what histograms and distinct counts cost, into the same file
	@python3 bench/sketches.py

bench-sketch-sizes: all ## measure the bytes of histograms and distinct counts in both stores, into the same file
	@python3 bench/sketch_sizes.py

bench-sizing: all ## check the arithmetic of docs/SIZING.md by a hundredth of it, into the same file
	@python3 bench/sizing.py

bench-follow: all ## follow 1,000 logs with one daemon, into the same file
	@python3 bench/follow.py

bench-backfill: all build/traffic ## backfill a report by a daemon that counts live lines, into the same file
	@python3 bench/backfill.py

bench-open: all ## measure the largest of 100,000 pages in the open hour and day in MongoDB, into the same file; OLD=path/to/build compares the rate
	@python3 bench/open.py $(if $(OLD),--old=$(OLD))

bench-past: all ## measure a seal in MongoDB beside 10,000 files that have ended, into the same file
	@python3 bench/past.py

bench-prealloc: all $(BUILD)/bench_prealloc ## which documents are made ahead, when, and what for, into the same file
	@python3 bench/prealloc.py

# ---- the code's own rules

format: ## rewrite the C sources in the project's layout
	@clang-format-14 -i $(ALL_C) $(ALL_H)

format-check: ## are they in it?
	@tests/run.py $(RUN_FORMAT)

lint: compile_commands.json ## clang-tidy, shellcheck, and what checks manual pages and units
	@tests/run.py $(RUN_TIDY) $(RUN_LINT)

deps-check: ## do includes go one way only, in no circle, and does each header compile alone?
	@tests/lint/layers.py $(FOLDERS)

size-check: ## are functions <= 70 and files <= 600 lines long?
	@tests/lint/sizes.py $(STAGES) bench tests

errors-check: ## does the compiler refuse to ignore the failure of any function?
	@tests/lint/checked.py $(STAGES)

docs: all ## write docs/CONFIG.md and tallyd.yaml(5)
	@build/tallyd check --document >docs/CONFIG.md
	@python3 docs/man5.py <docs/CONFIG.md >docs/tallyd.yaml.5

screenshot: all build/traffic ## take docs/page.png anew; needs chromium
	@docs/screenshot.py

docs-check: all ## are they what `make docs` would write, and do the pages name every option?
	@tests/lint/docs.sh

compile_commands.json: Makefile $(BUILD)/packages.cflags $(BUILD)/harden.cflags $(ALL_C) ## for editors and clang-tidy
	@python3 tests/lint/compile_commands.py $(COMPILE) -- $(ALL_C) >$@

# ---- installation

docdir    ?= $(PREFIX)/share/doc/tallyd
unitdir   ?= $(PREFIX)/lib/systemd/system
INSTALLED  = bin/tallyd share/man/man8/tallyd.8 share/man/man5/tallyd.yaml.5 share/bash-completion/completions/tallyd
# The files of docs/ that go into $(docdir).
DOCUMENTS := openapi.yaml page.png $(patsubst docs/%,%,$(wildcard docs/*.md docs/examples/*.yaml docs/examples/*/*.yml docs/grafana/*/*.json docs/grafana/*/*/*.yaml))
# README.md beside them: its links lead there, and those to the files of a clone are plain words.
README     = sed 's|](docs/|](|g; s,\[\([^]]*\)\](\(bench/[^)]*\|C[A-Z]*\.md\)),\1,g' README.md
DROP_INS  := credentials.conf network.conf root.conf
# The unit has one configuration, the template one for each instance.
UNIT          = sed 's|@PREFIX@|$(PREFIX)|; s|@OF@||; s|@CONFIG@|/etc/tallyd.yaml|; s|@STATE@|tallyd|; \
                s|@INSTANCE@|%H|' \
                systemd/tallyd.service.in
UNIT_TEMPLATE = sed 's|@PREFIX@|$(PREFIX)|; s|@OF@| (%i)|; s|@CONFIG@|/etc/tallyd/%i.yaml|; s|@STATE@|tallyd-%i|; \
                s|@INSTANCE@|%H-%i|' \
                systemd/tallyd.service.in

install: all ## install into DESTDIR= PREFIX=/usr/local
	install -D -m 755 $(BUILD)/tallyd $(DESTDIR)$(PREFIX)/bin/tallyd
	install -D -m 644 docs/tallyd.8 $(DESTDIR)$(PREFIX)/share/man/man8/tallyd.8
	install -D -m 644 docs/tallyd.yaml.5 $(DESTDIR)$(PREFIX)/share/man/man5/tallyd.yaml.5
	install -D -m 644 docs/completions/tallyd $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tallyd
	for f in $(DOCUMENTS); do install -D -m 644 docs/$$f $(DESTDIR)$(docdir)/$$f || exit 1; done
	$(README) >$(DESTDIR)$(docdir)/README.md
	for f in $(DROP_INS); do install -D -m 644 systemd/$$f $(DESTDIR)$(docdir)/examples/$$f || exit 1; done
	install -d $(DESTDIR)$(unitdir)
	$(UNIT) >$(DESTDIR)$(unitdir)/tallyd.service
	$(UNIT_TEMPLATE) >$(DESTDIR)$(unitdir)/tallyd@.service

uninstall: ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)$(PREFIX)/%) $(DOCUMENTS:%=$(DESTDIR)$(docdir)/%) \
	    $(DESTDIR)$(docdir)/README.md $(DROP_INS:%=$(DESTDIR)$(docdir)/examples/%) \
	    $(DESTDIR)$(unitdir)/tallyd.service $(DESTDIR)$(unitdir)/tallyd@.service

# `make deb ARCH=arm64` cross-builds into build/deb-arm64. Its libraries are in a folder, so dpkg does not know of them.
ARCH  ?=
DEB   := build/deb$(ARCH:%=-%)
CROSS := $(if $(ARCH),--host-arch=$(ARCH) --no-check-builddeps)

deb: deps $(if $(ARCH),$(ARM64_ROOT)) ## install what is missing, build the Debian packages in build/deb; ARCH=arm64 cross-builds
	@rm -rf $(DEB) && mkdir -p $(DEB)/tallyd
	@tar -c --exclude=./build --exclude=./.git --exclude=./.cache . | tar -x -C $(DEB)/tallyd
	@cd $(DEB)/tallyd && ARM64_ROOT=$(ARM64_ROOT) dpkg-buildpackage -us -uc -b $(CROSS)
	@rm -rf $(DEB)/tallyd
	@ls $(DEB)/*.deb

# It needs the libraries that tallyd loads at run time: dpkg-shlibdeps makes the package's Recommends of it.
$(BUILD)/loaded.so: Makefile $(SYSROOT)
	@mkdir -p $(@D)
	@$(COMPILER) -shared -o $@ -Wl,--no-as-needed $$($(PKG_CONFIG) --libs $(LOADED))

clean: ## remove what was built
	rm -rf build compile_commands.json

help: ## list the targets
	@sed -n 's/^\([a-z][a-z_.-]*\):[^=].*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 30

# Every target with a line of help, and some without.
.PHONY: $(shell sed -n 's/^\([a-z][a-z_.-]*\):[^=].*\#\# .*/\1/p' Makefile) arm64 unit-build threaded-build portable-build fuzz-build
.SECONDARY:
.DELETE_ON_ERROR:

-include $(wildcard $(BUILD)/obj/*/*.d $(BUILD)/obj/*/*/*.d $(BUILD)/obj/*/*/*/*.d)
