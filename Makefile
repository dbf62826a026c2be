# Everything that one does with this project; `make` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The steps share the machine with a conformance suite and benchmarks that look at the clock.
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

TARGET := $(or $(CARGO_TARGET_DIR),target)
export LINERATE_BIN := $(abspath $(TARGET)/release/linerate)
export CHROMIUM_BIN := $(or $(CHROMIUM_BIN),$(shell command -v chromium),/usr/bin/chromium)
# Only the test of centrifuge-go needs it; Debian's is too old.
GO := $(or $(shell command -v go),$(wildcard /usr/local/go/bin/go))
DRIVER := $(abspath $(TARGET)/release/examples/autobahn_client)

# What continuous integration runs, in this order. The pages come before all Rust: the binary embeds them.
TEST_STEPS := setup web lint fuzz-check deny docs build unit web-test browser-test sdk-test packaging-test conformance h2spec http3 interop bench-test

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build ## start the server on 127.0.0.1:8080; ARGS="…" are passed on to `linerate serve`
	exec $(LINERATE_BIN) serve $(ARGS)

.PHONY: test
test: ## all checks and tests, as continuous integration runs them
	@scripts/steps $(TEST_STEPS)

.PHONY: setup
setup: ## install what a fresh machine lacks (as root), or say what it is
	@scripts/setup

.PHONY: build
build: web ## the release binary, target/release/linerate
	cargo build --locked --release -p linerate-cli

.PHONY: fmt
fmt: web/node_modules/.stamp ## format Rust and TypeScript in place
	cargo fmt --all
	cd web && npm run --silent format

.PHONY: lint
lint: web ## formatting, clippy, types of the pages, syntax of the scripts; warnings are errors
	cargo fmt --all --check
	cargo fmt --manifest-path bench/contenders/Cargo.toml --all --check
	cargo fmt --manifest-path bench/contenders/raw-tcp/Cargo.toml --check
	cargo fmt --manifest-path conformance/interop/peers/rust/Cargo.toml --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path mutants/Cargo.toml --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	scripts/features
	cd web && npm run --silent check
	cd sdk-tests && ../web/node_modules/.bin/prettier --config ../web/.prettierrc.json --check .
	for script in $$(grep -rlE '^#!/usr/bin/env bash' scripts .ci bench conformance); do bash -n "$$script"; done
	python3 -B -m unittest discover -q -s conformance/tests
	python3 -B -m unittest discover -q -s mutants/tests
	python3 -B -m unittest discover -q -s scripts/tests -p 'test_figures.py'
	scripts/check-figures
	scripts/check-english

.PHONY: docs
docs: web ## the Rust documentation; a broken link is an error
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --exclude linerate-microbench --no-deps --all-features

# In release, since some tests are thorough and the release build of the dependencies is there anyway: linerate-web stays
# out, since it has features of theirs changed and all of them built again. Examples have no tests, and `lint` has
# compiled them. The crates that do arithmetic on lengths once more with overflow checks and debug assertions.
UNIT := --workspace --exclude linerate-microbench --exclude linerate-web --all-features
.PHONY: unit
unit: web sdks ## the tests of all crates
	scripts/steady-tests --locked --release $(UNIT) --tests
	cargo test --locked --release --no-fail-fast $(UNIT) --doc
	cargo test --locked -p linerate-simd -p linerate-proto -p linerate-tls -p linerate-web --lib --tests

# Rebuilt when one of its sources or lockfile changed, or when the result is gone.
.PHONY: web
web: .cache/web.stamp ## the pages, web/dist

WEB_SOURCES := $(shell find web -type d \( -name node_modules -o -name dist -o -name tests -o -name '.*' \) -prune \
	-o -type f -print)

.cache/web.stamp: web/node_modules/.stamp $(WEB_SOURCES) $(if $(wildcard web/dist/index.html),,FORCE)
	cd web && npm run --silent build
	@mkdir -p .cache && touch $@

web/node_modules/.stamp: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

.PHONY: FORCE
FORCE:

.PHONY: web-test
web-test: web/node_modules/.stamp ## the tests of the pages that need no browser
	cd web && npm test --silent

.PHONY: browser-test
browser-test: build wasm ## the tests of the pages and of linerate-web in Chromium, against the release binary
	cd web && npm run --silent test:browser

# The program has to be of the version of the crate; it is small enough to be built without optimization.
WASM_BINDGEN_VERSION := $(shell sed -n 's/^wasm-bindgen = "=\(.*\)"/\1/p' Cargo.toml)
WASM_BINDGEN := .cache/wasm-bindgen/$(WASM_BINDGEN_VERSION)/bin/wasm-bindgen

.PHONY: wasm
wasm: $(WASM_BINDGEN) ## the example of linerate-web for browsers, into .cache/wasm
	cargo build --locked -p linerate-web --target wasm32-unknown-unknown --example browser
	$(WASM_BINDGEN) --target web --no-typescript --out-dir .cache/wasm \
		$(TARGET)/wasm32-unknown-unknown/debug/examples/browser.wasm

$(WASM_BINDGEN):
	cargo install wasm-bindgen-cli --version $(WASM_BINDGEN_VERSION) --debug --no-default-features \
		--root .cache/wasm-bindgen/$(WASM_BINDGEN_VERSION)

.PHONY: sdks
sdks: sdk-tests/node_modules/.stamp .cache/sdk-python/.stamp ## install the published SDKs that tests subscribe with

.PHONY: sdk-test
sdk-test: build sdks ## published SDKs of Centrifugo against the release binary
	cd sdk-tests && npm test --silent
	.cache/sdk-python/bin/python -B -m unittest discover -s sdk-tests/python
ifeq ($(GO),)
	@scripts/skip 'sdk-test: Go, for centrifuge-go, is not installed'
else
	cd sdk-tests/go && test -z "$$($(GO)fmt -l .)" && $(GO) vet ./... && $(GO) test -count=1 ./...
endif

sdk-tests/node_modules/.stamp: sdk-tests/package.json sdk-tests/package-lock.json
	cd sdk-tests && npm ci --no-audit --no-fund
	@touch $@

.cache/sdk-python/.stamp: sdk-tests/python/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.PHONY: packaging-test
packaging-test: build ## what packaging/ holds, with Prometheus, systemd and the release binary
	python3 -B -m unittest discover -s packaging/tests

.PHONY: conformance
conformance: build ## the Autobahn suite: server and client, ws:// and wss://, server over HTTP/2; compression once a role
	cargo build --locked --release -p linerate --example autobahn_client
	conformance/run --quick --bin $(LINERATE_BIN) --driver $(DRIVER)

.PHONY: h2spec
h2spec: build ## h2spec against what speaks HTTP/2, strictly
ifeq ($(GO),)
	@scripts/skip 'h2spec: Go is not installed'
else
	conformance/h2spec $(LINERATE_BIN)
endif

.PHONY: http3
http3: build ## WebSockets over HTTP/3 against aioquic, in both roles
	conformance/http3/run $(LINERATE_BIN)

INTEROP := $(abspath $(TARGET)/release/examples/interop) .cache/interop

.PHONY: interop-peers
interop-peers:
	cargo build --locked --release -p linerate --example interop
	conformance/interop/install

.PHONY: interop
interop: interop-peers ## random messages to and from other libraries, compared byte for byte; SEED=N for others
	$(INTEROP) --seed $(or $(SEED),1)

.PHONY: soak
soak: interop-peers simulation ## the same with 15 million frames for each library (FRAMES=), 100 million in a night, an hour and a half each at most (SECONDS_MAX=5400); and the simulation
	$(INTEROP) --frames $(or $(FRAMES),15000000) --seconds $(or $(SECONDS_MAX),5400) $(if $(SEED),--seed $(SEED))

.PHONY: simulation
simulation: ## nodes, brokers and clients that fail by seeds, SEEDS=100000 of them (half a minute)
	LINERATE_SEEDS=$(or $(SEEDS),100000) scripts/matching-tests linerate-gateway without_being_told

.PHONY: coverage
coverage: ## which lines of linerate-proto and linerate-hub their tests run
	scripts/coverage

.PHONY: miri
miri: ## the tests of linerate-simd and linerate-hub under Miri, which finds undefined behaviour (half an hour)
	scripts/miri

.PHONY: exhaustive
exhaustive: ## UTF-8 validation of every sequence of up to four bytes, at every split (minutes)
	LINERATE_EXHAUSTIVE=1 scripts/matching-tests linerate-simd u07

.PHONY: bench
bench: ## all benchmarks, also those against other libraries; leave the machine alone meanwhile
	cargo bench --locked --workspace --all-features --bench '*'

.PHONY: stress
stress: build ## what abusive clients do to our servers and to the others (ten minutes; ARGS="--only ROW"); leave the machine alone meanwhile
	cargo build --locked --release -p linerate-stress
	$(abspath $(TARGET)/release/linerate-stress) $(ARGS)

.PHONY: chaos
chaos: web sdks ## whether subscribers miss anything while brokers, nodes, networks and clocks break (as root, ten minutes; ARGS="WORD"); into bench/record
	scripts/chaos $(ARGS)

.PHONY: patience
patience: web ## whether our servers end connections that are left in the middle of something (two minutes at most)
	cargo test --locked --release -p linerate-cli --test it check::deadlines -- --include-ignored

.PHONY: contenders
contenders: ## the servers that `linerate bench` compares, into .cache/contenders; ONLY="NAME…" for some of them
	scripts/contenders $(ONLY)

.PHONY: check-peers
check-peers: contenders build ## check all of them against the standard, and write docs/CONFORMANCE.md (minutes)
	scripts/check-peers

.PHONY: bench-all
bench-all: contenders build ## compare all servers in all scenarios (half an hour); leave the machine alone meanwhile
	$(LINERATE_BIN) bench --effort standard $(ARGS)

.PHONY: bench-quick
bench-quick: contenders build ## compare all servers in a few cells of each scenario (ten minutes)
	$(LINERATE_BIN) bench --effort quick $(ARGS)

.PHONY: story
story: build ## from Redis to filtered subscribers, beside Centrifuge and Socket.IO; leave the machine alone meanwhile
	scripts/story-peers
	$(LINERATE_BIN) bench story --record .cache/story/record.jsonl $(ARGS)

.PHONY: figures
figures: contenders build ## take the records that README.md and docs/ quote (two hours; ONLY="NAME…", scripts/figures --list); leave the machine alone meanwhile
	scripts/figures $(ONLY)

# Not for its figures: every kind of load, against the programs that share our crates, must get right answers.
.PHONY: bench-test
bench-test: build ## one short round of the benchmark, with raw-tcp and our own two servers
	scripts/contenders linerate linerate-reactor raw-tcp
	@mkdir -p .cache/bench-test && rm -f .cache/bench-test/*
	$(LINERATE_BIN) bench --rounds 1 --measured-ms 20 --record .cache/bench-test/record.jsonl \
	  --contender linerate --contender linerate-reactor --contender raw-tcp
	! grep '"outcome":"failed"' .cache/bench-test/record.jsonl

.PHONY: bench-control
bench-control: build ## prove that the benchmark sees a microsecond a message, and no difference where there is none
	cargo build --locked --release -p linerate-cli --features bench-control --target-dir .cache/bench-control
	scripts/bench-control $(LINERATE_BIN)

CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := .cache/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

.PHONY: deny
deny: $(CARGO_DENY) ## licences, versions and sources of the dependencies, and advisories about them
	$(CARGO_DENY) --all-features --locked check licenses bans sources
	scripts/advisories $(abspath $(CARGO_DENY))
	CARGO_DENY=$(abspath $(CARGO_DENY)) python3 -B -m unittest discover -q -s scripts/tests -p 'test_advisories.py'

# Without optimisation it is built in half the time, and checks in a second all the same.
$(CARGO_DENY):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --debug --quiet --locked --version $(CARGO_DENY_VERSION) --root $(@D:/bin=) --no-track

# Modules `fuzzing` and the targets are compiled by nothing else in `make test`. Other flags of the compiler need artifacts
# of their own, a minute's work for two cores when there are none. libFuzzer itself is not needed to check.
.PHONY: fuzz-check
fuzz-check: web ## compile the fuzz targets, without building or running them
	CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a RUSTFLAGS='--cfg fuzzing -D warnings' cargo check --locked \
		--manifest-path fuzz/Cargo.toml --target-dir $(abspath $(TARGET))/fuzz-check

CARGO_FUZZ_VERSION := 0.13.1
CARGO_FUZZ := .cache/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz

.PHONY: fuzz
fuzz: $(CARGO_FUZZ) ## fuzz each target a minute (SECONDS_EACH=60), from where it was left; ONLY="TARGET…", SANITIZER=address
	PATH="$(abspath $(dir $(CARGO_FUZZ))):$$PATH" scripts/fuzz run --seconds $(or $(SECONDS_EACH),60) \
		--sanitizer $(or $(SANITIZER),none) $(ONLY)
	scripts/fuzz counts

$(CARGO_FUZZ):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-fuzz --debug --quiet --locked --version $(CARGO_FUZZ_VERSION) --root $(@D:/bin=) --no-track

CARGO_MUTANTS_VERSION := 27.1.0
CARGO_MUTANTS := .cache/tools/cargo-mutants-$(CARGO_MUTANTS_VERSION)/bin/cargo-mutants

.PHONY: mutants
mutants: $(CARGO_MUTANTS) ## which changes of linerate-proto and linerate-hub no test notices (half an hour; ARGS="--file GLOB", "--help")
	PATH="$(abspath $(dir $(CARGO_MUTANTS))):$$PATH" mutants/run $(ARGS)

$(CARGO_MUTANTS):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-mutants --debug --quiet --locked --version $(CARGO_MUTANTS_VERSION) --root $(@D:/bin=) --no-track

.PHONY: clean
clean: ## remove everything that was built or installed into the project
	cargo clean
	rm -rf .cache web/dist web/node_modules web/.build sdk-tests/node_modules conformance/results
