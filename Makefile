# The front door. Each target installs what it misses (tools/setup.sh); a second run is offline.
#   make          build/sconce            make test      the quick complete set, one device
#   make demo     a story                 make test-all  every device, library and masked feature
#   make lint     format, warnings, rules make fuzz SECONDS=60
#   make soak MINUTES=20   endurance, under the sanitizers
#   make tsan     tests with several threads, under ThreadSanitizer
#   make dawn     the second WebGPU library (then SCONCE_WEBGPU=dawn)
#   make executorch  Sconce as a delegate of ExecuTorch's own runtime; make executorch-test runs it
#   make wheel    build/wheels, for pip on this machine; make wheels for five systems
#   make install PREFIX=/usr/local        make deb       a Debian package, build/sconce_*.deb
#   make web      the npm package         make web-test  in Node, Chromium and Firefox
#   make web-demo a page that chats, which `make web` puts into build/web/demo, on localhost
#   make windows macos linux  packages to unpack anywhere, made on Linux, in build/packages
#   make windows-test   the tests under wine
#   make aarch64-test   Linux on ARM, under qemu
SETUP = sh tools/setup.sh
SECONDS ?= 60
PREFIX ?= /usr/local
# A collection of real files beside the checkout, where there is one; without it its tests skip.
SHARED ?= $(patsubst %/fixtures/INDEX.tsv,%,$(wildcard ../shared/fixtures/INDEX.tsv))
TEST = $(if $(SHARED),SCONCE_SHARED="$(abspath $(SHARED))") python3 tools/test.py

# A Python that has the package executorch.
ET_PYTHON ?= build/executorch/venv/bin/python
ET = build/executorch

.PHONY: all installed deb program demo test test-all lint fuzz dawn executorch executorch-test install clean release asan web web-test web-demo
.PHONY: wheel wheels soak tsan tsan-build
.PHONY: windows windows-test macos macos-arm64 macos-x86_64 linux linux-x86_64 aarch64 linux-aarch64 aarch64-test

all: release

release asan:
	@$(SETUP) build
	@cmake --preset $@ >build/$@-configure.log || { cat build/$@-configure.log; exit 1; }
	@cmake --build --preset $@

# All that is installed, and nothing more.
installed:
	@$(SETUP) build
	@cmake --preset release >build/release-configure.log || { cat build/release-configure.log; exit 1; }
	@cmake --build --preset release --target sconce sconce_shared sconce_static sconce_dev_shared sconce_dev_static \
	  sconce_write_shared sconce_write_static pages

deb: installed
	@cd build/release && cpack -G DEB -B "$(CURDIR)/build" >deb.log || { cat deb.log; exit 1; }
	@ls build/sconce_*.deb

program:
	@$(SETUP) build
	@cmake --preset release >build/release-configure.log || { cat build/release-configure.log; exit 1; }
	@cmake --build --preset release --target sconce

demo: program
	@$(SETUP) run
	@build/sconce devices
	@build/sconce generate -m models/stories15M/stories15M-4w.pte -p "Once upon a time" -n 150 --seed 15

test: release asan $(if $(filter --sampled,$(SAMPLED)),tsan-build)
	@$(SETUP) run terminal python
	@$(TEST) $(SAMPLED)

test-all: dawn release asan
	@$(SETUP) run terminal swift lint python
	@$(TEST) --all

lint: release
	@$(SETUP) lint
	@python3 tools/lint.py

fuzz:
	@$(SETUP) build lint run
	@cmake --preset fuzz >build/fuzz-configure.log || { cat build/fuzz-configure.log; exit 1; }
	@cmake --build --preset fuzz
	@sh tools/fuzz.sh $(SECONDS) $(TARGETS)

# Sessions that are told, cancelled, saved, rewound and lose their device, for so long.
MINUTES ?= 20
soak: asan
	@$(SETUP) run
	@cmake --build --preset asan --target sconce_soak
	@cd build/asan && ASAN_OPTIONS=quarantine_size_mb=4 ./sconce_soak "$(CURDIR)/models/stories15M/stories15M-4w.pte" \
	  "$(CURDIR)/tests/data/goldens/toy.pte" $(MINUTES)

# Without the checks behind a whole run: only some tests are in it.
tsan: tsan-build
	@$(SETUP) run
	@build/tsan/sconce_tests --filter /

tsan-build:
	@$(SETUP) build
	@cmake --preset tsan >build/tsan-configure.log || { cat build/tsan-configure.log; exit 1; }
	@cmake --build --preset tsan --target sconce_tests

# Beside what is built already too: it is linked there when CMake configures.
dawn:
	@$(SETUP) build dawn
	@for preset in release asan; do \
	  [ ! -e build/$$preset/CMakeCache.txt ] || cmake --preset $$preset >build/$$preset-configure.log || exit 1; done

executorch: release
	@$(if $(filter $(ET)/%,$(ET_PYTHON)),$(SETUP) executorch)
	@mkdir -p $(ET)
	@cmake --install build/release --prefix $(ET)/sconce >$(ET)/install.log
	@cmake -S extras/executorch -B $(ET)/backend -G Ninja -DCMAKE_PREFIX_PATH="$(abspath $(ET))/sconce;$$($(ET_PYTHON) -c \
	  'import importlib.util as u; print(u.find_spec("executorch").submodule_search_locations[0])')" >$(ET)/configure.log \
	  || { cat $(ET)/configure.log; exit 1; }
	@cmake --build $(ET)/backend

executorch-test: executorch
	@$(SETUP) run
	@$(if $(SHARED),SCONCE_SHARED="$(abspath $(SHARED))") PYTHONPATH=$(ET)/backend $(ET_PYTHON) \
	  extras/executorch/tests/test_runtime.py $(ET_TESTS)

web:
	@$(SETUP) build web
	@cmake --preset web >build/web-configure.log || { cat build/web-configure.log; exit 1; }
	@cmake --build --preset web
	@python3 web/assemble.py build/web/sconce.wasm build/web/package
	@python3 web/assemble.py --demo build/web/package build/web/demo

web-test: web program
	@$(SETUP) swift browsers bundlers
	@cmake --build --preset release --target sconce_big
	@node web/test/all.mjs

web-demo: web
	@python3 web/demo/serve.py build/web/demo

# With what `make` built here, for this machine and newer ones; the others ask for as little as can be.
wheel: release
	@cmake --build --preset release --target sconce_plain
	@python3 tools/wheels.py --from build

wheels: linux windows macos
	@python3 tools/wheels.py

# docs/platforms.md says what of these was run where.
macos: macos-arm64 macos-x86_64
linux: linux-x86_64 linux-aarch64
aarch64: linux-aarch64

windows macos-arm64 macos-x86_64 linux-x86_64 linux-aarch64:
	@$(SETUP) build $@
	@cmake --preset $@ >build/$@-configure.log || { cat build/$@-configure.log; exit 1; }
	@cmake --build --preset $@
	@python3 tools/package.py $@

windows-test: release windows
	@$(SETUP) run wine
	@SCONCE_WINDOWS=all $(TEST) --filter test_windows/

aarch64-test: release linux-aarch64
	@$(SETUP) run arm
	@SCONCE_ARM=all $(TEST) --filter test_arm/

install: installed
	@cmake --install build/release --prefix "$(PREFIX)"

clean:
	rm -rf build/release build/asan build/debug build/fuzz $(ET)/sconce $(ET)/backend build/sconce* build/libsconce*
