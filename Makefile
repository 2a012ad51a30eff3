# toposcope: `make help` tells what there is.
.DEFAULT_GOAL := help
.PHONY: help run test test-mpich setup lint bench mpich dist deb

CARGO ?= cargo
MPICH_TARGET := target/mpich
ARGS ?=
# of what is packed: FEATURES="--features mpi" for a cluster, with the mpicc of its library
FEATURES ?=

help: ## what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-7s %s\n", $$1, $$2}' Makefile

run: ## the screen on this machine (ARGS="sweep --help" for the rest); needs Rust alone
	$(CARGO) run --locked --release -- $(ARGS)

setup: ## install what the whole test needs: Open MPI, MPICH, libclang, iproute2 (apt or dnf)
	@.ci/setup

# Without MPI the tests that need none still run; `.ci/setup --check` says loudly what was left out.
test: setup deny ## all tests, the MPI and network ones included
	$(CARGO) test --locked
	@if .ci/setup --check; then $(MAKE) --no-print-directory test-mpi; elif [ "$$CI" = true ]; then exit 1; fi

.PHONY: test-mpi
# The network laboratory measures rates: it has the cores to itself, after the rest.
test-mpi: mpich
	TOPOSCOPE_MPICH_BIN="$(CURDIR)/$(MPICH_TARGET)/debug/toposcope" MPICC=$$(.ci/setup --print openmpi) \
	    $(CARGO) test --locked --features mpi -- --skip netlab::
	MPICC=$$(.ci/setup --print openmpi) $(CARGO) test --locked --features mpi --test it netlab:: -- --test-threads=1

# MPICH's jobs are part of `test`; this drives its engine rank by rank, for which the whole test must be built a second time.
test-mpich: setup ## the engine tests with MPICH
	MPICC=$$(.ci/setup --print mpich) $(CARGO) test --locked --features mpi --target-dir $(MPICH_TARGET) --test it engine::

mpich: ## the program built for MPICH, in target/mpich
	MPICC=$$(.ci/setup --print mpich) $(CARGO) build --locked --features mpi --target-dir $(MPICH_TARGET)

lint: ## formatting and clippy, warnings are errors (with MPI where it is installed)
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) clippy --locked --all-targets --no-default-features -- -D warnings
	@if .ci/setup --check; then \
	    MPICC=$$(.ci/setup --print openmpi) $(CARGO) clippy --locked --all-targets --features mpi -- -D warnings; fi
	@$(MAKE) --no-print-directory deny

.PHONY: deny
# Where it is installed: building it takes longer than all the rest.
deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --offline check licenses bans sources; \
	    else echo "cargo-deny is not installed: licences and sources of dependencies were not looked at"; fi

bench: ## what frames, events and the fits of a large world cost
	$(CARGO) bench --locked

dist: ## the program, its man pages and completions in target/release and target/dist (FEATURES="--features mpi")
	$(CARGO) build --locked --release $(FEATURES)
	rm -rf target/dist && mkdir -p target/dist
	target/release/toposcope man --out target/dist/man
	target/release/toposcope completions bash > target/dist/toposcope.bash
	target/release/toposcope completions fish > target/dist/toposcope.fish
	target/release/toposcope completions zsh > target/dist/_toposcope

deb: dist ## a Debian package of it in target/debian; needs cargo-deb (cargo install cargo-deb)
	$(CARGO) deb --no-build --strip
