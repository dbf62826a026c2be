# All tasks of this project; `make` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Steps do not run in parallel: the conformance suite and the benchmarks depend on time.
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

TARGET := $(or $(CARGO_TARGET_DIR),target)
export LINERATE_BIN := $(abspath $(TARGET)/release/linerate)
export CHROMIUM_BIN := $(or $(CHROMIUM_BIN),$(shell command -v chromium),/usr/bin/chromium)
# Only h2spec and the tests of centrifuge-go need Go; Debian's version is too old.
GO := $(or $(shell command -v go),$(wildcard /usr/local/go/bin/go))

# Tests run programs that are compiled fast, with debug assertions and overflow checks. What people
# run, and what measures, is built for release.
PROFILE := dev
PROGRAMS = $(abspath $(TARGET)/$(PROFILE:dev=debug))
PROGRAM_TESTS := browser-test sdk-test packaging-test conformance h2spec http3 interop bench-test
$(PROGRAM_TESTS): export LINERATE_BIN = $(PROGRAMS)/linerate

# What tests compile. All of them, and the programs that they run, are built with the same features,
# so that nothing is compiled twice. linerate-web is excluded, because it changes features of the
# dependencies.
UNIT := --workspace --exclude linerate-web --all-features

# The steps of continuous integration, in order. The pages precede all Rust except the engine that
# they contain: the binary embeds them.
TEST_STEPS := setup web lint docs unit web-test
ALL_STEPS := features platforms msrv slow-test fuzz-check deny $(PROGRAM_TESTS)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: run
run: build ## start the server on 127.0.0.1:8080; ARGS="…" are passed to `linerate serve`
	exec $(LINERATE_BIN) serve $(ARGS)

.PHONY: test
test: ## run the checks and the tests of all crates and pages
	@scripts/steps $(TEST_STEPS)

.PHONY: test-all
test-all: ## run the rest: slow tests, browsers, SDKs, packages, conformance, fuzz targets, dependencies
	@scripts/steps $(ALL_STEPS)

.PHONY: check
check: web ## check only what differs from HEAD: formatting, lints and unit tests; SINCE=main
	scripts/check-changed $(SINCE)

.PHONY: program
program: web ## build the binary that tests run, target/debug/linerate
	cargo build --locked --profile $(PROFILE) $(UNIT) --bin linerate

.PHONY: setup
setup: ## install missing dependencies (as root), or list them
	@scripts/setup

.PHONY: build
build: web ## build the release binary, target/release/linerate
	cargo build --locked --release -p linerate-cli

.PHONY: fmt
fmt: web/node_modules/.stamp ## format Rust and TypeScript in place
	cargo fmt --all
	cd web && npm run --silent format

.PHONY: lint
lint: web ## check formatting, clippy, types of the pages, syntax of the scripts; warnings are errors
	cargo fmt --all --check
	cargo fmt --manifest-path bench/contenders/Cargo.toml --all --check
	cargo fmt --manifest-path bench/contenders/raw-tcp/Cargo.toml --check
	cargo fmt --manifest-path conformance/interop/peers/rust/Cargo.toml --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo fmt --manifest-path mutants/Cargo.toml --all --check
	cargo clippy --locked --workspace --all-targets --all-features -- -D warnings
	cd web && npm run --silent check
	cd sdk-tests && ../web/node_modules/.bin/prettier --config ../web/.prettierrc.json --check .
	cd examples && ../web/node_modules/.bin/prettier --config ../web/.prettierrc.json --check .
	for script in $$(grep -rlE '^#!/usr/bin/env bash' scripts .ci bench conformance); do bash -n "$$script"; done
	python3 -B -m unittest discover -q -s conformance/tests
	python3 -B -m unittest discover -q -s mutants/tests
	python3 -B -m unittest discover -q -s scripts/tests -p 'test_figures.py'
	python3 -B -m unittest discover -q -s scripts/tests -p 'test_clauses.py'
	python3 -B -m unittest discover -q -s scripts/tests -p 'test_cost_model.py'
	scripts/check-clauses
	scripts/check-figures
	scripts/cost-model
	scripts/check-english
	scripts/import-graph

.PHONY: features
features: ## lint the libraries without features, and with each feature alone
	scripts/features

.PHONY: platforms
platforms: web ## check what compiles for macOS and Windows, and test the kernels and the protocol on AArch64, under qemu; ARGS=--all
	scripts/platforms $(ARGS)

.PHONY: msrv
msrv: ## check the libraries with the oldest supported Rust
	scripts/msrv

.PHONY: docs
docs: web ## build the Rust documentation; a broken link, or a public item that is not listed, is an error
	$(DOCUMENT)
	$(PUBLIC_API) check crates $(TARGET)/doc

.PHONY: public-api
public-api: web ## write the lists of public items, crates/*/public-api.txt; `make docs` compares them
	$(DOCUMENT)
	$(PUBLIC_API) write crates $(TARGET)/doc

# The same as HTML and, for the crates whose public items are listed, as JSON.
DOCUMENT = RUSTDOC=$(abspath scripts/rustdoc) RUSTDOCFLAGS='-D warnings' \
	cargo doc --locked --workspace --no-deps --all-features
PUBLIC_API = cargo run --locked --quiet -p linerate-public-api --

# Most tests of programs wait for something, so several run on each processor. `--tests` does not
# build the examples, which a test runs.
.PHONY: unit
unit: web sdks kafka ## test all crates
	cargo build --locked $(UNIT) --examples
	RUST_TEST_THREADS=$$(($$(nproc) * 2)) cargo test --locked --no-fail-fast $(UNIT) --tests
	cargo test --locked --no-fail-fast $(UNIT) --doc
	cargo test --locked -p linerate-web --lib --tests

# Tests that keep a processor busy for long, or that others must not slow down. With debug
# assertions, tests of the hub and of simulated nodes take a part of their steps, here all of them.
.PHONY: slow-test
slow-test: web sdks kafka ## run the tests that need the machine for themselves
	cargo test --locked $(UNIT) --test it -- --ignored --test-threads 1 readers_that_stop ten_million
	LINERATE_SEEDS=1000 cargo test --locked $(UNIT) --lib -- without_being_told
	cargo test --locked --release -p linerate-hub --test it
	cargo build --locked --profile $(PROFILE) $(UNIT) --bin linerate --bin linerate-stress
	$(PROGRAMS)/linerate-stress million --linerate $(PROGRAMS)/linerate --subscribers 300 --channels 30 --nodes 3 --rate 50

# Rebuilt if a source or the lockfile has changed, or if the result is missing.
.PHONY: web
web: .cache/web.stamp ## build the pages and the book, web/dist

WEB_SOURCES := $(shell find web -type d \( -name node_modules -o -name dist -o -name tests -o -name '.*' \) -prune \
	-o -type f -print)
# The pages in docs/, and what else has links that are checked.
MARKDOWN := $(shell find . -type d \( -name node_modules -o -name dist -o -name target -o -name '.?*' \) -prune -o -name '*.md' -print) \
	$(wildcard docs/*/*.png)

# The engine of `linerate logs --html`, which is a part of web/dist/report.html.
REPORT_SOURCES := Cargo.toml Cargo.lock $(shell find $(addprefix crates/linerate-,filter logview report simd) -type f \
	\( -name '*.rs' -o -name Cargo.toml \) -print)

.cache/report.wasm: $(REPORT_SOURCES)
	cargo build --locked -p linerate-report --profile wasm --target wasm32-unknown-unknown
	@mkdir -p .cache && cp $(TARGET)/wasm32-unknown-unknown/wasm/linerate_report.wasm $@

.cache/web.stamp: web/node_modules/.stamp .cache/report.wasm $(WEB_SOURCES) $(MARKDOWN) $(if $(wildcard web/dist/index.html),,FORCE)
	cd web && npm run --silent build
	@mkdir -p .cache && touch $@

.PHONY: book
book: web ## the documentation, web/dist/docs; a broken link is an error. `linerate serve` has it at /docs/

web/node_modules/.stamp: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund
	@touch $@

.PHONY: FORCE
FORCE:

.PHONY: web-test
web-test: web/node_modules/.stamp .cache/report.wasm ## test the pages, without a browser
	cd web && npm test --silent

.PHONY: browser-test
browser-test: program wasm examples/one-channel/node_modules/.stamp ## test the pages, the example and linerate-web in Chromium, against the built binary
	cargo build --locked --profile $(PROFILE) $(UNIT) --example upload_to_disk --example upload_hash
	cd web && npm run --silent test:browser

# The program must have the version of the crate. It is small enough to be built without
# optimization.
WASM_BINDGEN_VERSION := $(shell sed -n 's/^wasm-bindgen = "=\(.*\)"/\1/p' Cargo.toml)
WASM_BINDGEN := .cache/wasm-bindgen/$(WASM_BINDGEN_VERSION)/bin/wasm-bindgen

.PHONY: wasm
wasm: $(WASM_BINDGEN) ## build the example of linerate-web for browsers, in .cache/wasm
	cargo build --locked -p linerate-web --target wasm32-unknown-unknown --example browser
	$(WASM_BINDGEN) --target web --no-typescript --out-dir .cache/wasm \
		$(TARGET)/wasm32-unknown-unknown/debug/examples/browser.wasm

$(WASM_BINDGEN):
	cargo install wasm-bindgen-cli --version $(WASM_BINDGEN_VERSION) --debug --no-default-features \
		--root .cache/wasm-bindgen/$(WASM_BINDGEN_VERSION)

.PHONY: sdks
sdks: sdk-tests/node_modules/.stamp .cache/sdk-python/.stamp ## install the published SDKs for the tests
	scripts/jars socket.io-client sdk-tests/java/pom.xml .cache/sdk-java

.PHONY: sdk-test
sdk-test: program sdks ## test published SDKs against the built binary
	cd sdk-tests && npm test --silent
	.cache/sdk-python/bin/python -B -m unittest discover -s sdk-tests/python
ifeq ($(GO),)
	@scripts/skip 'sdk-test: Go, for centrifuge-go and pusher-http-go, is not installed'
else
	cd sdk-tests/go && test -z "$$($(GO)fmt -l .)" && $(GO) vet ./... && $(GO) test -count=1 ./...
endif

.PHONY: kafka
kafka: ## download the Kafka server for the tests
	scripts/kafka

sdk-tests/node_modules/.stamp: sdk-tests/package.json sdk-tests/package-lock.json
	cd sdk-tests && npm ci --no-audit --no-fund
	@touch $@

examples/one-channel/node_modules/.stamp: examples/one-channel/package.json examples/one-channel/package-lock.json
	cd examples/one-channel && npm ci --no-audit --no-fund
	@touch $@

.cache/sdk-python/.stamp: sdk-tests/python/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.PHONY: packaging-test
packaging-test: program ## test the files in packaging/ with Prometheus, systemd and the built binary
	python3 -B -m unittest discover -s packaging/tests

.PHONY: conformance
conformance: program ## run the Autobahn suite: server and client, ws:// and wss://, server over HTTP/2; compression once per role
	cargo build --locked --profile $(PROFILE) $(UNIT) --example autobahn_client
	conformance/run --quick --bin $(LINERATE_BIN) --driver $(PROGRAMS)/examples/autobahn_client

.PHONY: h2spec
h2spec: program ## run h2spec in strict mode against all servers with HTTP/2
ifeq ($(GO),)
	@scripts/skip 'h2spec: Go is not installed'
else
	conformance/h2spec $(LINERATE_BIN)
endif

.PHONY: http3
http3: program ## test WebSockets over HTTP/3 against aioquic, in both roles
	conformance/http3/run $(LINERATE_BIN)

INTEROP = $(PROGRAMS)/examples/interop .cache/interop

.PHONY: interop-peers
interop-peers:
	cargo build --locked --profile $(PROFILE) $(UNIT) --example interop
	conformance/interop/install

.PHONY: interop
interop: interop-peers ## exchange random messages with other libraries and compare each byte; SEED=N for other messages
	$(INTEROP) --seed $(or $(SEED),1)

.PHONY: soak
soak: PROFILE := release
soak: interop-peers simulation ## the same with 15 million frames per library (FRAMES=), at most an hour and a half each (SECONDS_MAX=5400); then the simulation
	$(INTEROP) --frames $(or $(FRAMES),15000000) --seconds $(or $(SECONDS_MAX),5400) $(if $(SEED),--seed $(SEED))

.PHONY: simulation
simulation: ## simulate nodes, brokers, networks and clients that fail, with SEEDS=100000 seeds from FIRST=0 on (ten minutes on two cores)
	LINERATE_SEEDS=$(or $(SEEDS),100000) LINERATE_FIRST_SEED=$(or $(FIRST),0) scripts/matching-tests linerate-gateway without_being_told

.PHONY: coverage
coverage: ## measure which lines of linerate-proto and linerate-hub their tests cover
	scripts/coverage

.PHONY: miri
miri: ## test linerate-simd and linerate-hub under Miri, which finds undefined behaviour (half an hour)
	scripts/miri

.PHONY: exhaustive
exhaustive: ## test UTF-8 validation with every sequence of up to four bytes, at every split (minutes)
	LINERATE_EXHAUSTIVE=1 scripts/matching-tests linerate-simd u07

.PHONY: bench
bench: ## run all microbenchmarks, also against other libraries; needs an idle machine
	cargo bench --locked --workspace --all-features --bench '*'

.PHONY: stress
stress: web ## measure what abusive clients do to our servers and to others (ten minutes; ARGS="--only ROW"); needs an idle machine
	cargo build --locked --release -p linerate-cli --features kafka
	cargo build --locked --release -p linerate-stress
	$(abspath $(TARGET)/release/linerate-stress) $(ARGS)

.PHONY: million
million: build ## connect a million subscribers to many nodes with one Redis, and prove that nothing is lost untold (15 minutes, 24 GiB; ARGS="--subscribers 100000 --nodes 10"); needs an idle machine
	cargo build --locked --release -p linerate-stress
	$(abspath $(TARGET)/release/linerate-stress) million $(ARGS)

.PHONY: takeovers
takeovers: build ## replace a server with 10,000 clients ten times, and check that no client notices anything (two minutes; ARGS="--tls"); needs an idle machine
	cargo build --locked --release -p linerate-stress
	$(abspath $(TARGET)/release/linerate-stress) takeover $(ARGS)

.PHONY: chaos
chaos: web sdks kafka ## test that subscribers miss nothing unnoticed while brokers, nodes, networks and clocks fail (as root, ten minutes; ARGS="WORD"); writes bench/record
	scripts/chaos $(ARGS)

.PHONY: patience
patience: web ## test that our servers close connections that stall in the middle of something (at most two minutes)
	cargo test --locked --release -p linerate-cli --test it check::deadlines -- --include-ignored

.PHONY: contenders
contenders: ## build the servers that `linerate bench` compares, in .cache/contenders; ONLY="NAME…" for some of them
	scripts/contenders $(ONLY)

.PHONY: check-peers
check-peers: contenders build ## check all contenders against the standard, and write docs/check/results.md (minutes)
	scripts/check-peers

.PHONY: bench-all
bench-all: contenders build ## compare all servers in all scenarios (half an hour); needs an idle machine
	$(LINERATE_BIN) bench --effort standard $(ARGS)

.PHONY: bench-quick
bench-quick: contenders build ## compare all servers in a few cells of each scenario (ten minutes)
	$(LINERATE_BIN) bench --effort quick $(ARGS)

.PHONY: story
story: build ## compare linerate with Centrifuge and Socket.IO, from Redis to filtered subscribers; needs an idle machine
	scripts/story-peers
	$(LINERATE_BIN) bench story --record .cache/story/record.jsonl $(ARGS)

.PHONY: figures
figures: contenders build ## take the records that README.md and docs/ quote (two hours; ONLY="NAME…", scripts/figures --list); needs an idle machine
	scripts/figures $(ONLY)

# Checks answers, not figures: every kind of load against the programs that share our crates.
.PHONY: bench-test
bench-test: program ## run one short round of the benchmark, with raw-tcp and our two servers
	scripts/contenders linerate linerate-reactor raw-tcp
	@mkdir -p .cache/bench-test && rm -f .cache/bench-test/*
	$(LINERATE_BIN) bench --rounds 1 --measured-ms 20 --record .cache/bench-test/record.jsonl \
	  --contender linerate --contender linerate-reactor --contender raw-tcp
	! grep '"outcome":"failed"' .cache/bench-test/record.jsonl

.PHONY: bench-control
bench-control: build ## prove that the benchmark detects a microsecond per message, and no difference without one
	cargo build --locked --release -p linerate-cli --features bench-control --target-dir .cache/bench-control
	scripts/bench-control $(LINERATE_BIN)

CARGO_DENY_VERSION := 0.20.2
CARGO_DENY := .cache/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

.PHONY: deny
deny: $(CARGO_DENY) ## check licences, versions, sources and advisories of the dependencies
	$(CARGO_DENY) --all-features --locked check licenses bans sources
	scripts/advisories $(abspath $(CARGO_DENY))
	CARGO_DENY=$(abspath $(CARGO_DENY)) python3 -B -m unittest discover -q -s scripts/tests -p 'test_advisories.py'

# Without optimization the build takes half the time, and a check still takes only a second.
$(CARGO_DENY):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --debug --quiet --locked --version $(CARGO_DENY_VERSION) --root $(@D:/bin=) --no-track

# Nothing else in `make test` compiles the targets and the modules `fuzzing`. The different compiler
# flags need separate artifacts, which take a minute on two cores from scratch. libFuzzer is not
# needed.
.PHONY: fuzz-check
fuzz-check: web ## check the fuzz targets, without building or running them
	CUSTOM_LIBFUZZER_PATH=/nowhere/libfuzzer.a RUSTFLAGS='--cfg fuzzing -D warnings' cargo check --locked \
		--manifest-path fuzz/Cargo.toml --target-dir $(abspath $(TARGET))/fuzz-check

CARGO_FUZZ_VERSION := 0.13.1
CARGO_FUZZ := .cache/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz

.PHONY: fuzz
fuzz: $(CARGO_FUZZ) ## fuzz each target for a minute (SECONDS_EACH=60), continuing from its corpus; ONLY="TARGET…", SANITIZER=address
	PATH="$(abspath $(dir $(CARGO_FUZZ))):$$PATH" scripts/fuzz run --seconds $(or $(SECONDS_EACH),60) \
		--sanitizer $(or $(SANITIZER),none) $(ONLY)
	scripts/fuzz counts

$(CARGO_FUZZ):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-fuzz --debug --quiet --locked --version $(CARGO_FUZZ_VERSION) --root $(@D:/bin=) --no-track

CARGO_MUTANTS_VERSION := 27.1.0
CARGO_MUTANTS := .cache/tools/cargo-mutants-$(CARGO_MUTANTS_VERSION)/bin/cargo-mutants

.PHONY: mutants
mutants: $(CARGO_MUTANTS) ## find changes of linerate-proto and linerate-hub that no test detects (half an hour; ARGS="--file GLOB", "--help")
	PATH="$(abspath $(dir $(CARGO_MUTANTS))):$$PATH" mutants/run $(ARGS)

$(CARGO_MUTANTS):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-mutants --debug --quiet --locked --version $(CARGO_MUTANTS_VERSION) --root $(@D:/bin=) --no-track

.PHONY: clean
clean: ## remove everything that was built in or installed into the project
	cargo clean
	rm -rf .cache web/dist web/node_modules web/.build sdk-tests/node_modules conformance/results
