# What a developer runs, and what .ci/run runs. Needs Go; race needs a C
# compiler too, bench needs wrk, nginx and taskset.

GO ?= go
# How long each fuzz target runs and how many at a time, and how long the tests of a
# package may take.
FUZZTIME ?= 10s
FUZZJOBS ?= 2
TIMEOUT ?= 10m
# More flags for go test, with the race detector and without.
TESTFLAGS ?=
RACEFLAGS ?=
# More flags for the lab, as in: make bench ARGS='--rounds 20 --seconds 1'
ARGS ?=

# The systems that are compiled for and never run on here.
TARGETS = darwin/amd64 darwin/arm64 windows/amd64 linux/arm64
# Modules beside the root one. lab/caddy is only one import: tidy checks it, the others would compile all of Caddy.
MODULES = $(patsubst %/go.mod,%,$(wildcard lab/go.mod lab/arena/go.mod examples/go.mod test/browser/go.mod middleware/tracing/go.mod eventstream/natstopic/go.mod cmd/chert/internal/acme/acmetest/go.mod internal/proxyproto/oracletest/go.mod packaging/go.mod))

.PHONY: all build binary static test layer-test next-go arm64-test race vet staticcheck fmt tidy fuzz sim lab-test examples-test acme-test proxyproto-test tracing-test nats-test browser-test suites packages packages-test vulncheck api cross bench bench-idle figures ci

all: build vet test

build: binary
	$(GO) build ./...

# Without cgo it is static and needs no C library; -s -w leaves out what only debuggers
# need. docs/command.md says what that changes.
BIN = bin
binary:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(BIN)/ ./cmd/chert

# That it is static. Without cgo most packages are compiled once more, hence by itself.
static: binary
	CHERT_BINARY=$(abspath $(BIN))/chert $(GO) test -count=1 -run '^TestStatic$$' ./cmd/chert

test:
	$(GO) test -timeout $(TIMEOUT) $(TESTFLAGS) ./...

race:
	$(GO) test -race -timeout $(TIMEOUT) $(RACEFLAGS) ./...

vet:
	$(GO) vet ./...
	@set -e; for m in $(MODULES); do echo "$(GO) -C $$m vet ./..."; $(GO) -C $$m vet ./...; done

# The version is the one in go.mod; the other modules borrow it from there. It
# lives for seconds, and would spend a quarter of them on collecting garbage; at
# 400 it takes 2 GB.
staticcheck: export GOGC = 200
staticcheck:
	$(GO) tool staticcheck ./...
	@set -e; for m in $(MODULES); do \
		echo "$(GO) -C $$m tool -modfile=$(CURDIR)/go.mod staticcheck ./..."; \
		$(GO) -C $$m tool -modfile=$(CURDIR)/go.mod staticcheck ./...; \
	done

fmt:
	@bad=$$(gofmt -l .) || exit 1; \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -w on:"; echo "$$bad"; exit 1; fi

# Fails if go mod tidy would change something.
tidy:
	$(GO) mod tidy -diff
	@set -e; for m in $(MODULES) $(wildcard lab/caddy); do echo "$(GO) -C $$m mod tidy -diff"; $(GO) -C $$m mod tidy -diff; done

# go test takes one fuzz target at a time. They are looked for in the source: go
# test -list would build the tests of every package for it. Much of a short run is
# linking and the baseline, on one processor, so FUZZJOBS run at a time.
FUZZ = GO='$(GO)' FUZZTIME=$(FUZZTIME)
fuzz:
	@files=$$($(GO) list -f '{{range .TestGoFiles}}{{$$.ImportPath}} {{$$.Dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$$.ImportPath}} {{$$.Dir}}/{{.}}{{"\n"}}{{end}}' ./...) || exit 1; \
	echo "$$files" | while read -r pkg file; do \
		[ -z "$$file" ] || sed -n "s|^func \(Fuzz[A-Za-z0-9_]*\)(.*|$$pkg \1|p" "$$file"; \
	done | $(FUZZ) xargs -n 2 -P $(FUZZJOBS) .ci/fuzz .

# What depends on the system and on the processor, for linux/arm64 by qemu-user. The tests that are left out start their
# own program again, or one they have built, which the kernel does not know how to run.
QEMU_PACKAGES = . ./internal/http1 ./internal/http2 ./internal/http3 ./internal/pack ./internal/sys ./internal/poll ./internal/loop ./internal/conn ./internal/tlsio ./internal/accept ./websocket ./eventstream ./router ./static
arm64-test:
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -count=1 -vet=off -short -timeout 15m -exec qemu-aarch64 -skip '^Test(Yield|NoDescriptors|SlowReaders|HugeFile|ManyFiles|DescriptorsExhausted|PermissionDenied|FromAnotherModule)$$' $(QEMU_PACKAGES)

# What a connection with a layer must do as one without: over a layer of the tests' own, and over TLS. The tests of
# faults that are left out look at the socket: resets, descriptors, refusals before TLS, and what the relay of the layer
# takes itself.
LAYER_TESTS = ^Test(Diff|Answers|KeepAlive|Expect|Placement)
NOT_TLS = IdleConnsAreSmall|PlacementShutdown|MaxConns|OutOfDescriptors|WriteStall|LargeBuffers|HijackedConns
layer-test:
	CHERT_LAYER=1 $(GO) test -count=1 -timeout $(TIMEOUT) -run '$(LAYER_TESTS)|^TestFaults(Smuggling|Head|ByteAtATime)' ./test/netdiff ./test/behave ./test/faults
	CHERT_LAYER=tls $(GO) test -count=1 -timeout $(TIMEOUT) -run '$(LAYER_TESTS)' ./test/netdiff ./test/behave
	CHERT_LAYER=tls $(GO) test -count=1 -short -timeout $(TIMEOUT) -skip '$(NOT_TLS)' ./test/faults

# What touches the runtime, the kernel and crypto/tls, with the next version of Go, which the
# module proxy has as a toolchain; and tlsio as with versions that nobody has looked at.
NEXT_GO ?= go1.27.0
next-go:
	GOTOOLCHAIN=$(NEXT_GO) $(GO) build ./...
	GOTOOLCHAIN=$(NEXT_GO) $(GO) test -short -timeout $(TIMEOUT) . ./internal/tlsio ./internal/poll ./internal/sys ./internal/loop ./internal/conn ./internal/bridge/...
	$(GO) test -short -tags chert_copytls -timeout $(TIMEOUT) ./internal/tlsio

# The server on a simulated kernel: fixed seeds, which a change must not break, then for SIMFOR new ones, of the clock.
# What fails is printed with its seed, the last events of its connection, and the command that replays it.
SIMFOR ?= 1m
sim:
	$(GO) -C lab run . sim -seed 1000000 -seeds 25 -for 10m
	$(GO) -C lab run . sim -for $(SIMFOR)

# The experiments measure for some minutes, even in their short form.
lab-test:
	$(GO) -C lab test -timeout 12m ./...
	$(GO) -C lab/arena test -timeout $(TIMEOUT) ./...

# Certificates by ACME, against pebble in the tests' own process: nothing leaves the machine.
acme-test:
	$(GO) -C cmd/chert/internal/acme/acmetest test -timeout $(TIMEOUT) ./...

# Headers of the PROXY protocol, against go-proxyproto.
proxyproto-test:
	$(GO) -C internal/proxyproto/oracletest test -timeout $(TIMEOUT) ./...
	$(FUZZ) .ci/fuzz internal/proxyproto/oracletest . FuzzOracle

# Topics through NATS, with nats-server in the tests' own process.
nats-test:
	$(GO) -C eventstream/natstopic test -timeout $(TIMEOUT) ./...
	$(GO) -C eventstream/natstopic test -race -timeout $(TIMEOUT) ./...

# Spans of requests, against OpenTelemetry's SDK and a receiver of OTLP in the tests' own process.
tracing-test:
	$(GO) -C middleware/tracing test -timeout $(TIMEOUT) ./...
	$(GO) -C middleware/tracing test -race -timeout $(TIMEOUT) ./...
	$(FUZZ) .ci/fuzz middleware/tracing . FuzzParent

examples-test:
	@if [ -f examples/go.mod ]; then $(GO) -C examples test -timeout $(TIMEOUT) ./...; fi

# Pages in headless Chromium; CHERT_SCREENSHOTS=DIR leaves pictures of them.
browser-test:
	$(GO) -C test/browser test -timeout $(TIMEOUT) ./...

# All of a release, in dist/, as in: make packages ARGS='-version v0.1.0'. It takes minutes, as each binary is built twice.
packages:
	$(GO) run -C packaging . build $(ARGS)

# The packages, installed, upgraded and removed in a copy of this system, as root; the unit; the image without Docker.
packages-test:
	$(GO) -C packaging test -timeout 12m ./...

# Known vulnerabilities in what chert can reach. Without the database there is a line about it, and no failure: a build of a
# release fails then, unless ARGS has -offline.
vulncheck:
	$(GO) run -C packaging . vulncheck -offline $(ARGS)

# What has changed for programs since the latest release. ARGS='-version v0.2.0' says what it will be.
api:
	$(GO) run -C packaging . api $(ARGS)

# The tests of other modules and of Go's net/http, run on chert.
suites:
	$(GO) run ./suites

# Nothing of it is run, so the compiler need not optimize: that is most of its
# time. Nor need it collect garbage often.
cross: export GOGC = 400
cross:
	@set -e; for t in $(TARGETS); do \
		echo "build and vet for $$t"; \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build -gcflags='all=-N -l' ./...; \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet -gcflags='all=-N -l' ./...; \
	done

bench:
	cd lab && $(GO) run . run hello $(ARGS)

bench-idle:
	cd lab && $(GO) run . run idle $(ARGS)

# Everything that README.md has figures of: half an hour on a machine that does nothing else.
figures:
	cd lab && $(GO) run . run plain64 --vs nethttp,fasthttp,nginx $(ARGS)
	cd lab && $(GO) run . run plain4096 --vs nethttp,nginx $(ARGS)
	cd lab && $(GO) run . run tlshello --vs nethttp,nginx $(ARGS)
	cd lab && $(GO) run . run h2hello --vs nethttp,nginx $(ARGS)
	cd lab && $(GO) run . run file1k --vs nethttpfiles,nginx,caddy $(ARGS)
	cd lab && $(GO) run . run idle
	cd lab && $(GO) run . run wsidle
	cd lab && $(GO) run . run wsidle --tls
	$(GO) run ./suites go chi gin gorilla coder h2spec

ci:
	.ci/run
