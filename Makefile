# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0

# `make` lists the targets. They need Go, make and git, and a C compiler for -race.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Variables of the command line that scripts and tests read.
export DIR SIMULATE SCENARIO PORT AGENTS CONTAINER_LIVES HOSTILE CHAOS_SEED BENCH_SECONDS

COLLECTOR := dist/otelcol-nixl
# From builder-full.yaml: for clusters, gateways and Kafka.
FULL      := dist/full/otelcol-nixl-full
LINT      := tool -modfile="$(abspath internal/tools/go.mod)" golangci-lint
RELEASER  := go tool -modfile=internal/tools/go.mod goreleaser

# The modules with our own code.
CODE      := . bridge/gpu receiver/nixlshmreceiver cmd/nixlring internal/dashboards examples test
# Those whose own goroutines share memory.
RACES     := . bridge/gpu receiver/nixlshmreceiver cmd/nixlring
MODULES   := $(CODE) internal/tools test/backends
# The tests of the built Collectors have their own targets.
packages   = $$(go -C $$m list ./... | grep -Ev "/test/(chaos|chart|dashboards|e2e)$(1)")
# $(call each,MODULES,COMMAND) runs COMMAND for each module $$m, and fails at the end if one failed.
each       = failed=; for m in $(1); do echo "$@ $$m"; $(2) || failed=1; done; [[ -z $$failed ]]
# The other systems on which programs must compile, although NIXL has no rings there.
SYSTEMS   := linux/arm64 linux/386 darwin/arm64 windows/amd64

##@ Use

.PHONY: build
build: ## Build the Collector, dist/otelcol-nixl
	@scripts/build-collector.sh

.PHONY: build-full
build-full: ## Build the Collector for clusters, dist/full/otelcol-nixl-full
	@scripts/build-collector.sh builder-full.yaml

.PHONY: nixlring
nixlring: ## Build the tool for operators, bin/nixlring
	@mkdir -p bin # go builds there, so that it can replace a program that is running
	@GOTMPDIR="$(abspath bin)" CGO_ENABLED=0 go build -C cmd/nixlring -trimpath -buildvcs=false -ldflags="-s -w -X main.version=$$(scripts/version.sh)" -o "$(abspath bin/nixlring)" .

.PHONY: run
run: build nixlring ## Run the Collector on a directory: make run [DIR=...] [SIMULATE=4] [SCENARIO=...] [PORT=9464]
	@scripts/run.sh run

.PHONY: demo
demo: nixlring ## Show simulated agents in a browser: make demo [SCENARIO=straggler] [PORT=...] [AGENTS=8]
	@scripts/run.sh demo

##@ Test

.PHONY: unit
unit: ## Run the tests of all modules, without the race detector and the built Collector
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target $(addprefix test-module/,$(CODE))

# Many tests only wait, so the tests of several modules run at the same time. The tests of the built Collector
# follow, because its simulated agents drop events if they don't get enough CPU time.
.PHONY: test
test: ## Run all tests, including those of the built Collector
	@$(MAKE) --no-print-directory unit e2e

test-module/%:
	@m=$*; echo "test $$m"; go -C $$m test -count=1 $(call packages) # the cache ignores files outside a module

# Packages and tests without goroutines that run for long: the race detector would only slow them down. With it, a
# sync.Pool allocates.
SERIAL := internal/diagnose|internal/tally
PURE   := ^Test(Simulation|ReadingDoesNotAllocate|WorkForAContainer)
.PHONY: test-race
test-race: ## Run the tests, where goroutines share memory under the race detector and in random order, and portable ones on an emulated arm64
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target $(addprefix test-race/,$(RACES)) \
	  $(addprefix test-module/,$(filter-out $(RACES),$(CODE))) test-simulation test-arm64

.PHONY: test-simulation
test-simulation:
	@go test -race ./internal/engine/internal/drain -run '^TestSimulation' -sim.seeds=300
	@go test -count=1 ./ringbuf ./internal/engine/internal/drain -run '$(PURE)'
	@go test -count=1 $$(go list ./... | grep -E "/($(SERIAL))$$")

# QEMU doesn't emulate leases, locks and mounts as needed, nor the addresses of faults.
.PHONY: test-arm64
test-arm64:
	@command -v qemu-aarch64-static >/dev/null || { echo "qemu-aarch64-static isn't installed: the tests on arm64 are skipped"; exit 0; }; \
	export GOARCH=arm64 CGO_ENABLED=0; \
	go test -count=1 -short -exec qemu-aarch64-static -skip 'Attended|Below|Fault|Full|Hole|Lock|Permission|ReadOnly|Shr[iu]nk|Sparse' \
	  ./semconv ./internal/tally ./ringbuf && \
	go test -count=1 -exec qemu-aarch64-static -run '^TestSimulation$$' ./internal/engine/internal/drain -sim.seeds=300

test-race/%:
	@m=$*; echo "test-race $$m"; go -C $$m test -race -shuffle=on -skip '$(PURE)' $(call packages,|/($(SERIAL))$$)

# Package time itself is replaced, so this compiles everything once more.
.PHONY: clock-test
clock-test: ## Run the tests with a clock that is 40 days ahead: make clock-test [DAYS=40] [IN="cmd/nixlring bridge/gpu"]
	@overlay=$$(scripts/clock-overlay.sh $(or $(DAYS),40)); \
	$(call each,$(or $(IN),$(CODE)),go -C $$m test -count=1 -overlay "$$overlay" $(call packages))

.PHONY: e2e
e2e: build ## Run only the tests of the built Collector
	OTELCOL_NIXL="$(abspath $(COLLECTOR))" go -C test test -count=1 -p 1 -parallel 4 ./e2e/... ./chaos/...

# The simulation runs neither the loop, nor the saver's goroutine, nor files on a disk.
.PHONY: sim
sim: ## Simulate agents, stores and crashes: make sim [SEEDS=100000] [FIRST=1] [SEED=...]; how often branches run: make sim BRANCHES=1
	@mkdir -p bin/sim && go run ./internal/lab/mutate -overlay bin/sim
ifdef BRANCHES
	@go test -overlay bin/sim/overlay.json -count=1 -timeout 0 -covermode=count -coverprofile=bin/sim/branches \
	  -coverpkg=./ringbuf,./internal/engine/internal/checkpoint,./internal/engine/internal/drain \
	  ./internal/engine/internal/drain -run '^TestSimulation' -sim.races -sim.seeds=$(or $(SEEDS),1000) >/dev/null
	@sed -n 's#^[^:]*/nixl-otel/\(.*\) [0-9]* \([0-9]*\)$$#\2 \1#p' bin/sim/branches | grep -Ev '/(loop|saver|holes|mapping_linux|open)\.go' | \
	  sort -n | awk '{printf "%10d %s\n", $$1, $$2}'
else
	go test -overlay bin/sim/overlay.json -count=1 -timeout 0 ./internal/engine/internal/drain -run '^TestSimulation$$' -v -sim.races \
	  -sim.seeds=$(or $(SEEDS),100000) -sim.first=$(or $(FIRST),1) -sim.seed=$(or $(SEED),0)
endif

# The root directory must not change while this runs.
.PHONY: mutate
mutate: ## Apply bugs to the core, and report what finds them: make mutate [SEEDS=20000] [EVERY=1] [ONLY=...]
	go run ./internal/lab/mutate -seeds=$(or $(SEEDS),20000) -every=$(or $(EVERY),1) -only="$(ONLY)"

.PHONY: chaos
chaos: build ## Let everything fail at random while agents write: make chaos [CHAOS_DURATION=3m] [CHAOS_SEED=...]
	OTELCOL_NIXL="$(abspath $(COLLECTOR))" CHAOS_DURATION=$(or $(CHAOS_DURATION),3m) go -C test test -count=1 -v -timeout 0 ./chaos

.PHONY: FORCE
bin/victoria-%: FORCE # backends for logs and metrics
	@CGO_ENABLED=0 GOWORK=off go build -C test/backends -trimpath -buildvcs=false -ldflags='-s -w' -o "$(abspath $@)" \
	  github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-$*
bin/prom%: FORCE # prometheus and promtool
	@CGO_ENABLED=0 GOWORK=off go build -C test/backends -trimpath -buildvcs=false -tags=remove_all_sd -ldflags='-s -w' \
	  -o "$(abspath $@)" github.com/prometheus/prometheus/cmd/prom$*

.PHONY: container-test
container-test: build ## Test the discovery of agents in real containers; needs root, podman and runc [CONTAINER_LIVES=200 HOSTILE=10m]
	NIXL_CONTAINER_TEST=1 OTELCOL_NIXL="$(abspath $(COLLECTOR))" go -C test test -count=1 $(if $(HOSTILE),-timeout=1h) ./containers/...

# Inputs that fail are stored in testdata/fuzz of the package: commit them, so that `go test` runs them.
.PHONY: fuzz
fuzz: ## Fuzz all code that reads external data: make fuzz [FUZZTIME=30s] [PKG=./ringbuf]
	@failed=; for m in $(CODE); do for d in $$(go -C $$m list -f '{{.Dir}}' $(or $(PKG),./...)); do \
	  for t in $$(cat $$d/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p'); do echo "fuzz $$t of $$d"; \
	    TMPDIR=/dev/shm go test -C $$d -run='^$$' -fuzz="^$$t\$$" -fuzztime=$(or $(FUZZTIME),30s) -fuzzminimizetime=10x . || failed=1; \
	done; done; done; [[ -z $$failed ]]

.PHONY: dashboards-test
dashboards-test: build nixlring bin/victoria-metrics bin/prometheus bin/promtool ## Test queries, alerts and sums on real backends, and the page of nixlring web
	@CHROMIUM=$$(command -v chromium || command -v chromium-browser || command -v google-chrome) || echo "no Chromium: the page isn't tested"; \
	  export CHROMIUM OTELCOL_NIXL="$(abspath $(COLLECTOR))" NIXLRING="$(abspath bin/nixlring)" VICTORIA_METRICS="$(abspath bin/victoria-metrics)" \
	  PROMETHEUS="$(abspath bin/prometheus)" PROMTOOL="$(abspath bin/promtool)"; \
	  go -C test test -count=1 -p 2 -parallel 4 -timeout 20m ./dashboards ./web

.PHONY: bench
bench: build ## Run all benchmarks and compare them with their goals: make bench [BENCH_SECONDS=60] [ARGS="-docs FILE" or -short]
	@OTELCOL_NIXL="$(abspath $(COLLECTOR))" go -C test/bench run ./report $(ARGS)

.PHONY: validate
validate: build build-full bin/victoria-logs ## Check the sample configurations and the chart, and test gateways, load balancing and a logs backend
	@for f in $$(ls examples/collector/*.yaml | grep -v nixl-exporter-names); do echo "validate $$f"; $(COLLECTOR) validate --config="$$f"; done
	@for f in examples/collector/*.yaml examples/collector/scale/*.yaml; do \
	  echo "validate $$f, full"; $(FULL) validate --config="$$f"; done
	OTELCOL_NIXL_FULL="$(abspath $(FULL))" go -C test test -count=1 ./chart
	OTELCOL_NIXL="$(abspath $(COLLECTOR))" OTELCOL_NIXL_FULL="$(abspath $(FULL))" VICTORIA_LOGS="$(abspath bin/victoria-logs)" \
	  go -C test test -count=1 -run '^TestScale' ./e2e

.PHONY: kube-test
kube-test: build-full ## Test the chart in the cluster of KUBECONFIG, a cluster only for this test; needs helm, kubectl
	@scripts/kube-test.sh

.PHONY: release-rehearsal
release-rehearsal: ## Make a release in a scratch repository, install and use all of it: make release-rehearsal [VERSION=0.1.0]; needs root
	@nice scripts/rehearse-release.sh $(or $(VERSION),$$(sed -n 's/^const Version = "\(.*\)"$$/\1/p' semconv/scope.go))

##@ Change

.PHONY: generate
generate: ## Update the generated files and go.mod files, and format the code; with CHECK=1, fail if that changes anything
	@before=$$(git status --porcelain; git diff); \
	$(call each,$(CODE),go -C $$m generate ./...); \
	$(call each,$(MODULES),go -C $$m mod tidy); \
	$(call each,$(CODE),go -C $$m $(LINT) fmt ./...); \
	[[ -z "$(CHECK)" || $$before == "$$(git status --porcelain; git diff)" ]] || \
	  { git diff --stat; echo "generated files were stale: commit what make generate has changed" >&2; exit 1; }

.PHONY: lint
lint: ## Lint the code, the language of all files, the workflows and releases, and type-check for other systems
	@$(MAKE) --no-print-directory >/dev/null # the list of targets
	@scripts/check-english.sh
	@$(call each,$(CODE),go -C $$m $(LINT) run ./...)
	@go tool -modfile=internal/tools/go.mod actionlint
	@$(RELEASER) check
# The receiver has no code of its own for a system. The modules that are never released aren't checked.
	@export CGO_ENABLED=0; for s in $(SYSTEMS); do echo "$$s"; export GOOS=$${s%/*} GOARCH=$${s#*/}; \
	  $(call each,. bridge/gpu cmd/nixlring,go -C $$m vet ./...); done; \
	  echo windows/386; GOOS=windows GOARCH=386 go -C receiver/nixlshmreceiver vet ./...

# $(call steps,STEP...) runs targets, each as one argument, and prints how long each took.
steps = for step in $(1); do echo "=== $$step"; start=$$SECONDS; $(MAKE) --no-print-directory $$step; echo "=== $$step took $$((SECONDS - start)) s"; done

# test-race includes the unit tests.
.PHONY: ci
ci: ## Run all checks that a change must pass
	@$(call steps,"generate CHECK=1" lint ci-rest)

.PHONY: ci-fast
ci-fast: ## Run those that take minutes
	@$(call steps,"generate CHECK=1" lint unit)

# The last targets wait more than they compute.
.PHONY: ci-rest
ci-rest: ## Run those that take longer
	@$(call steps,test-race "clock-test IN=cmd/nixlring" "mutate SEEDS=1000 EVERY=25" "bench ARGS=-short" "--jobs=2 --output-sync=target dashboards-test validate e2e")

.PHONY: help
help:
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@ / {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
