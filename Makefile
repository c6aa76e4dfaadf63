# make run    build the programs and serve demo data
# make test   run the short tests
# make help   list all targets

GOBIN := $(CURDIR)/bin

GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.8.0
HELM_VERSION := v3.22.0
ACTIONLINT_VERSION := v1.7.12
GORELEASER_VERSION := v2.15.1
CYCLONEDX_VERSION := v1.10.0

# Build flags of released programs, also used in Dockerfile and .goreleaser.yaml. They leave out gin's MessagePack codec, the
# symbol table and the paths of the build machine. They keep the build information, which has the version.
# Gin without MessagePack, which nothing uses: less to compile and to link.
TAGS := -tags nomsgpack
BUILD_FLAGS := $(TAGS) -trimpath -ldflags "-s -w"

# npm ci creates this file. It is newer than the lock file once the packages are installed.
ENGINE := node_modules/.package-lock.json

.PHONY: run build opinion engine test test-long smoke race lint assets assets-check screenshot dashboard-check format format-check tidy-check vet vulnerabilities fuzz bench benchmarks release release-snapshot store-archive helm-check workflow-check help

# On a terminal, the demo runs as its own job: Ctrl-C interrupts the demo only, and make exits after it.
run: build ## build, create the demo store if there is none, and serve it
	@if [ -t 0 ]; then bash -c 'set -m; $(GOBIN)/lifthouse demo & fg >/dev/null'; else exec $(GOBIN)/lifthouse demo; fi

build: engine opinion ## build bin/lifthouse and bin/loadgen
	@mkdir -p $(GOBIN)
	go build $(BUILD_FLAGS) -o $(GOBIN) ./cmd/lifthouse ./cmd/loadgen

opinion: ## build the program of the page /opinion; the folder api/dashboard/opinion can be published anywhere
	@bash .ci/opinion

engine: $(ENGINE) ## install the ClickHouse library and the dashboard's tools with npm

$(ENGINE): package-lock.json
	npm ci --loglevel=error
	@touch $(ENGINE)

# The short tests create their stores in memory if there is room: on a disk, they take twice as long. The long tests use
# the disk.
IN_MEMORY := $(shell [ -w /dev/shm ] && ! grep -q ' /dev/shm .*noexec' /proc/mounts && \
	[ "$$(df --output=avail /dev/shm | tail -1)" -gt 8000000 ] && echo TMPDIR=/dev/shm)

# The target vet runs go vet, and no debugger needs the programs of the tests: linking takes half the time without its tables.
test: engine ## run the short tests of the program
	$(IN_MEMORY) go test $(TAGS) -timeout 30m -vet=off -ldflags=-w ./api/... ./cmd/internal/... ./cmd/lifthouse ./engine/... ./schema/... ./stats

test-long: engine ## run all tests, including soak, crash, chaos, browser and calibration tests
	LIFTHOUSE_LONG=1 go test $(TAGS) -timeout 90m ./...

# What runs before every change beside the short tests: those of the built program and of loadgen, and a part of the long
# tier: a backup, damaged facts, a cluster, the tutorial and the page.
SMOKE := TestABackupAnswersAsTheStoreDid|TestDamagedFactsAreRebuilt|TestAClusterAnswersAsAnEmbeddedStore|TestDocsBlocksRun|TestTheDashboardFromSignInToStop

smoke: engine ## run a few tests of the long tier, and the short tests of the built program and of loadgen
	LIFTHOUSE_LONG=1 go test $(TAGS) -timeout 30m -vet=off ./cmd/lifthouse/e2e -run '^($(SMOKE))$$'
	$(IN_MEMORY) go test $(TAGS) -timeout 30m -vet=off ./cmd/lifthouse/e2e ./cmd/loadgen ./loadgen/...
	GOOS=js GOARCH=wasm go test -exec "$$(go env GOROOT)/lib/wasm/go_js_wasm_exec" ./stats -run '^TestChances' # as the page /opinion

# The packages with goroutines, without their longest tests that have only one, or that verify facts again and again. Of
# the tests of whole processes, one runs all operations. Of the tests of generated events, one generates them on several
# cores.
ONE_GOROUTINE := TestDecisions|TestLooks.*|TestScorecardEqualsReports|TestReportEqualsTheFold|TestReportsThatDescribe|TestEachParameterWithEachWrongValue|TestMetricEqualsTheFold|TestSplitEqualsTheFold|TestAliases|TestWrongFactsAreFound
CONCURRENT := ./api/... ./cmd/internal/... ./engine ./engine/embedded/... ./engine/facts ./engine/source ./loadgen/bench ./schema/...

race: engine ## run the short tests of packages with goroutines with the race detector, and with the invariants of facts
	$(IN_MEMORY) go test $(TAGS),invariants -timeout 30m -race -skip '^($(ONE_GOROUTINE))$$' $(CONCURRENT)
	$(IN_MEMORY) go test $(TAGS),invariants -timeout 30m -race -run 'TestAllOperationsOfAStartedProgram|TestEventsShowsWhatArrivesThroughTheSocket' ./cmd/lifthouse/e2e
	$(IN_MEMORY) go test $(TAGS),invariants -timeout 30m -race -run TestSameSeedSameBytes ./loadgen/population

assets: engine ## build the dashboard's script and style, and the tag of pages
	@bash .ci/assets .

screenshot: build ## take the README's picture of the page
	@bash .ci/screenshot

assets-check: engine ## check that the committed assets are up to date
	@built=$$(mktemp -d) && bash .ci/assets "$$built" && \
		for f in $$(cd "$$built" && find . -type f); do cmp "$$built/$$f" "$$f" || { echo "$$f is out of date: run make assets and commit the result"; exit 1; }; done && rm -r "$$built"

vet: ## run go vet
	go vet ./...

dashboard-check: engine ## check types, lint and test the dashboard's sources
	@bash .ci/dashboard

lint: $(GOBIN)/golangci-lint assets-check dashboard-check ## run all linters
	$(GOBIN)/golangci-lint run ./...
	@bash .ci/words

format: $(GOBIN)/golangci-lint ## format the Go files
	$(GOBIN)/golangci-lint fmt ./...

format-check: $(GOBIN)/golangci-lint ## check that the Go files are formatted
	$(GOBIN)/golangci-lint fmt --diff ./...

vulnerabilities: engine $(GOBIN)/govulncheck ## look up known vulnerabilities, if the databases can be reached
	@bash .ci/vulnerabilities $(GOBIN)/govulncheck

tidy-check: ## check that go.mod and go.sum match the imports
	go mod tidy -diff

fuzz: engine ## run each fuzz target for about five seconds times FACTOR
	@bash .ci/fuzz $(FACTOR)

bench: engine ## run the Go benchmarks
	go test $(TAGS) -run '^$$' -bench . -benchmem ./...

benchmarks: build ## write BENCHMARKS.md and docs/benchmarks from the standard data set times SCALE; needs an idle machine
	@SCALE=$(SCALE) bash .ci/benchmarks

# Goreleaser finds cyclonedx-gomod on the PATH. It also needs the address of a remote, which a checkout may not have.
GORELEASER := PATH="$(GOBIN):$$PATH" $(if $(shell git remote),,GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=.) \
	$(GOBIN)/goreleaser release --clean

release: $(GOBIN)/goreleaser $(GOBIN)/cyclonedx-gomod ## build the release of the tag of this commit in dist/
	@tag=$$(git describe --tags --exact-match) || { echo "add a tag to this commit, or run make release-snapshot"; exit 1; }; \
	case $$tag in *-*) ;; *) [ -e "cmd/lifthouse/testdata/stores/$$tag" ] || \
		{ echo "cmd/lifthouse/testdata/stores has no store of $$tag: run make store-archive VERSION=$$tag, commit it, and move the tag"; exit 1; } ;; esac
	$(GORELEASER) --skip=publish
	@cp install.sh dist/homebrew/Formula/lifthouse.rb dist/

# Goreleaser has no option that limits a release to some platforms.
SYSTEMS = $(shell go env GOOS)
PROCESSORS = $(shell go env GOARCH)

release-snapshot: $(GOBIN)/goreleaser $(GOBIN)/cyclonedx-gomod ## build a release of this commit for this platform in dist/; others: SYSTEMS=linux,darwin PROCESSORS=amd64,arm64
	@mkdir -p bin/release
	@sed -e 's/&systems .*/\&systems [$(SYSTEMS)]/' -e 's/&processors .*/\&processors [$(PROCESSORS)]/' .goreleaser.yaml >bin/release/snapshot.yaml
	$(GORELEASER) --snapshot --config bin/release/snapshot.yaml
	@cp install.sh dist/homebrew/Formula/lifthouse.rb dist/

store-archive: engine ## archive a small store and its reports as those of release VERSION, for the tests of upgrades
	@[ -n "$(VERSION)" ] || { echo "VERSION is missing: make store-archive VERSION=v1.0.0"; exit 2; }
	go test $(TAGS) -count=1 ./cmd/lifthouse/e2e -run '^TestStoresOfReleases' -record-store $(VERSION)

helm-check: $(GOBIN)/helm ## lint the Helm chart, and check the manifests that it renders
	cd deploy/helm/check && go mod tidy -diff && go vet ./... && HELM=$(GOBIN)/helm go test -count=1 ./...

workflow-check: $(GOBIN)/actionlint ## check the workflows of GitHub
	$(GOBIN)/actionlint

$(GOBIN)/golangci-lint:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

$(GOBIN)/govulncheck:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)

$(GOBIN)/helm:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

$(GOBIN)/goreleaser:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)

$(GOBIN)/cyclonedx-gomod:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX_VERSION)

$(GOBIN)/actionlint:
	@mkdir -p $(GOBIN)
	GOBIN=$(GOBIN) go install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 20
