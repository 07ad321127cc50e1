# The one door. Each target stands for one command; the work is in CMakePresets.json and tools/.
PREFIX ?= /usr/local
DESTDIR ?=
PRESET ?= dev
JOBS ?= 2
quick := $(if $(filter-out 0,$(QUICK)),--quick)

.DEFAULT_GOAL := help
.PHONY: help deps deps-run build run tour test bench bench-watched bench-manifest crashlab crashlab-long install uninstall format check lint cross packages \
	coverage fuzz soak storm races bare clean

help:
	@echo 'make deps       install what is missing to build and test (Debian, apt-get)'
	@echo 'make build      build with the dev preset; PRESET=release|asan|tsan|... for another'
	@echo 'make run        a service to look into: starts it, says where its console is'
	@echo 'make tour       a narrated tour of the library, a few seconds'
	@echo 'make test       the tests: plain, ASan+UBSan, TSan, clang, install; make check has the long ones too'
	@echo 'make bench      run the benchmarks; QUICK=1 for a short run'
	@echo 'make bench-watched   what looking costs: 100,000 actors with jzx top and without; QUICK=1'
	@echo 'make bench-manifest  the manifest beside raw LMDB and SQLite; QUICK=1, NAME=...'
	@echo 'make crashlab   crashes and failing disks under the manifest; crashlab-long: 400,000 states'
	@echo 'make install    install the release build; PREFIX=/usr/local DESTDIR=, STRIP=0 keeps debug information'
	@echo 'make uninstall  remove what make install put there; PREFIX=/usr/local DESTDIR='
	@echo 'make format     format the sources in place'
	@echo 'make check      everything: lint, cross, packages, and make test with all seeds and dispatchers'
	@echo 'make lint       clang-tidy and shellcheck'
	@echo 'make cross      libjzx and its unit tests for AArch64'
	@echo 'make packages   Debian packages, checked, and tried in a bare Debian; as root'
	@echo 'make coverage   which lines the tests execute'
	@echo 'make fuzz       a minute with each fuzzer'
	@echo 'make soak       supervision against its model for some minutes, SEEDS=500000; all mutants of the models'
	@echo 'make storm      a minute each of everything at once on all dispatchers, under ASan and TSan'
	@echo 'make races      every test on every dispatcher under TSan: make test leaves some out'
	@echo 'make bare       make run and make test in a Debian with nothing in it, as root; ARGS=--help'
	@echo 'make clean      remove build/'

deps:
	@tools/deps run test

deps-run:
	@tools/deps run

build: deps-run
	@tools/build $(PRESET)

# What it is told: ARGS='--load 300 --stuck'; build/release/jzx-node --help says what there is.
run: deps-run
	@tools/build release jzx-node jzx-command
	@exec build/release/jzx-node $(ARGS)

tour: deps-run
	@tools/build release jzx-tour
	@build/release/jzx-tour

test: deps
	@JOBS=$(JOBS) tools/check

bench: deps-run
	@tools/build release jzx-bench
	@build/release/jzx-bench all $(quick) --out build/bench.jsonl

bench-watched: deps-run
	@tools/build release jzx-bench-watched
	@build/release/jzx-bench-watched $(quick)

bench-manifest: deps
	@tools/build release jzx-bench-manifest
	@build/release/jzx-bench-manifest $(quick) $(or $(NAME),all)

crashlab: deps
	@tools/build dev crashlab
	@build/dev/tests/crashlab/crashlab

crashlab-long: deps
	@tools/build release crashlab
	@build/release/tests/crashlab/crashlab --long

install: deps-run
	@tools/build release libraries
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' $(if $(filter 0,$(STRIP)),,--strip)
	@tools/uninstall --keep-list build/release/install_manifest.txt '$(PREFIX)' '$(DESTDIR)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi

uninstall:
	@tools/uninstall '$(PREFIX)' '$(DESTDIR)'
	@if [ -z '$(DESTDIR)' ] && [ "$$(id -u)" -eq 0 ]; then ldconfig; fi

format:
	@tools/format

# Lint first: it is over in minutes. Goes on after a failure, and says at the end what failed; 77 is "not on this machine".
check: deps
	@tools/deps check
	@failed=; for part in lint cross packages 'check all'; do \
		status=0; JOBS=$(JOBS) tools/$$part || status=$$?; \
		[ $$status -eq 0 ] || [ $$status -eq 77 ] || failed="$$failed tools/$$part"; \
	done; \
	[ -z "$$failed" ] || { echo "make check: failed:$$failed"; exit 1; }; \
	echo 'make check: all passed'

lint:
	@tools/deps run check
	@JOBS=$(JOBS) tools/lint

cross:
	@tools/deps run check
	@JOBS=$(JOBS) tools/cross

packages:
	@tools/deps run check
	@JOBS=$(JOBS) tools/packages

coverage: deps
	@tools/build coverage
	@ctest --preset coverage -j$(JOBS)
	@tools/coverage build/coverage

storm: deps
	@tools/build asan
	@tools/build tsan
	@JZX_STORM_SECONDS=$${SECONDS_EACH:-60} build/asan/tests/loop/system_storm_test
	@JZX_STORM_SECONDS=$${SECONDS_EACH:-60} TSAN_OPTIONS=halt_on_error=1 setarch -R build/tsan/tests/loop/system_storm_test

races: deps
	@tools/build tsan
	@TSAN_OPTIONS=halt_on_error=1 setarch -R ctest --test-dir build/tsan -j$(JOBS) --output-on-failure

soak: deps
	@tools/build dev
	@JZX_MODEL_SEEDS=$(or $(SEEDS),500000) build/dev/tests/supervision/sup_model
	@tests/models/run.sh --all

fuzz: deps
	@tools/build fuzz
	@ctest --preset fuzz -j$(JOBS)

bare:
	@tools/bare-machine $(ARGS)

clean:
	@rm -rf build
