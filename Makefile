# make run    everything from a fresh clone to a server with demo data
# make test   everything that says whether the program is right (at most 5 minutes)
# make help   the rest

GOBIN := $(CURDIR)/bin

GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.8.0

# Flags of released programs, also in Dockerfile and .ci/release: no MessagePack codec of gin, no symbol table, no paths of
# the build machine. Build information, and with it the version, remains.
BUILD_FLAGS := -tags nomsgpack -trimpath -ldflags "-s -w"

# npm ci leaves this file; it is newer than the lock once the library is there.
ENGINE := node_modules/.package-lock.json

.PHONY: run build engine test test-long race lint assets assets-check dashboard-check format format-check tidy-check vet vulnerabilities fuzz bench benchmarks release help

# On a terminal Ctrl-C goes to the demo alone, in a job of its own, so that it ends in its own time and make with it.
run: build ## build, make the demo store if need be, and serve it
	@if [ -t 0 ]; then bash -c 'set -m; $(GOBIN)/lifthouse demo & fg >/dev/null'; else exec $(GOBIN)/lifthouse demo; fi

build: engine ## bin/lifthouse and bin/loadgen
	@mkdir -p $(GOBIN)
	go build $(BUILD_FLAGS) -o $(GOBIN) ./cmd/lifthouse ./cmd/loadgen

engine: $(ENGINE) ## the embedded ClickHouse library and the dashboard's tools, from npm

$(ENGINE): package-lock.json
	npm ci --loglevel=error
	@touch $(ENGINE)

# Stores of the short tests lie in memory where there is room: on a disk half of their time is its. The long tests use the disk.
IN_MEMORY := $(shell [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && \
	[ "$$(df --output=avail /dev/shm | tail -1)" -gt 8000000 ] && echo TMPDIR=/dev/shm)

test: engine ## all tests of the first tier
	$(IN_MEMORY) go test ./...

test-long: engine ## soak, crash and calibration
	LIFTHOUSE_LONG=1 go test -timeout 40m ./...

race: engine ## the short tests under the race detector
	$(IN_MEMORY) go test -race -short ./...

assets: engine ## build the dashboard's script and style from api/dashboard/web
	@bash .ci/assets api/dashboard/assets

assets-check: engine ## check that the committed assets are up to date
	@built=$$(mktemp -d) && bash .ci/assets "$$built" && for f in app.js app.css; do \
		cmp "$$built/$$f" "api/dashboard/assets/$$f" || { echo "$$f is out of date: run make assets and commit the result"; exit 1; }; done && rm -r "$$built"

vet:
	go vet ./...

dashboard-check: engine ## check types, lint and test the dashboard's sources
	@bash .ci/dashboard

lint: $(GOBIN)/golangci-lint assets-check dashboard-check ## run all linters
	$(GOBIN)/golangci-lint run ./...
	@bash .ci/words

format: $(GOBIN)/golangci-lint ## format in place
	$(GOBIN)/golangci-lint fmt ./...

format-check: $(GOBIN)/golangci-lint
	$(GOBIN)/golangci-lint fmt --diff ./...

vulnerabilities: engine $(GOBIN)/govulncheck ## known ones in what the programs use, where the databases can be reached
	@bash .ci/vulnerabilities $(GOBIN)/govulncheck

tidy-check: ## go.mod and go.sum say what the code needs
	go mod tidy -diff

fuzz: engine ## each fuzz target for a few seconds times FACTOR
	@bash .ci/fuzz $(FACTOR)

bench: engine ## benchmarks of statistics, engine and requests
	go test -run '^$$' -bench . -benchmem ./...

benchmarks: build ## BENCHMARKS.md and docs/benchmarks, from the standard data set times SCALE, on an idle machine
	@SCALE=$(SCALE) bash .ci/benchmarks

release: ## dist/: archives for linux and macOS with the engine library, and their checksums; VERSION names it
	@VERSION=$(VERSION) PLATFORMS="$(PLATFORMS)" bash .ci/release

$(GOBIN)/golangci-lint:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOBIN)/govulncheck:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

help: ## this
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16
