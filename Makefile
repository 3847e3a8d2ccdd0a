# The front door. Each target installs what it misses (tools/setup.sh); a second run is offline.
#   make          build/sconce            make test      the quick complete set, one device
#   make demo     a story                 make test-all  every device, library and masked feature
#   make lint     format, warnings, rules make fuzz SECONDS=60
#   make dawn     the second WebGPU library (then SCONCE_WEBGPU=dawn)
#   make install PREFIX=/usr/local
SETUP = sh tools/setup.sh
SECONDS ?= 60
PREFIX ?= /usr/local
# A collection of real files beside the checkout, where there is one; without it its tests skip.
SHARED ?= $(patsubst %/fixtures/INDEX.tsv,%,$(wildcard ../shared/fixtures/INDEX.tsv))
TEST = $(if $(SHARED),SCONCE_SHARED="$(abspath $(SHARED))") python3 tools/test.py

.PHONY: all program demo test test-all lint fuzz dawn install clean release asan

all: release

release asan:
	@$(SETUP) build
	@cmake --preset $@ >build/$@-configure.log || { cat build/$@-configure.log; exit 1; }
	@cmake --build --preset $@

program:
	@$(SETUP) build
	@cmake --preset release >build/release-configure.log || { cat build/release-configure.log; exit 1; }
	@cmake --build --preset release --target sconce

demo: program
	@$(SETUP) run
	@build/sconce devices
	@build/sconce generate -m models/stories15M/stories15M-4w.pte -p "Once upon a time" -n 150 --seed 15

test: release asan
	@$(SETUP) run
	@$(TEST) $(SAMPLED)

test-all: dawn release asan
	@$(SETUP) run swift lint
	@$(TEST) --all

lint: release
	@$(SETUP) lint
	@python3 tools/lint.py

fuzz:
	@$(SETUP) build lint
	@cmake --preset fuzz >build/fuzz-configure.log || { cat build/fuzz-configure.log; exit 1; }
	@cmake --build --preset fuzz
	@sh tools/fuzz.sh $(SECONDS) $(TARGETS)

dawn:
	@$(SETUP) build dawn

install: release
	@cmake --install build/release --prefix "$(PREFIX)"

clean:
	rm -rf build/release build/asan build/debug build/fuzz build/sconce* build/libsconce*
