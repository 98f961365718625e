# What a developer runs, and what .ci/run runs. Needs Go; race needs a C
# compiler too, bench needs wrk, nginx and taskset.

GO ?= go
# How long each fuzz target runs, and how long the tests of a package may take.
FUZZTIME ?= 10s
TIMEOUT ?= 5m
# More flags for the lab, as in: make bench ARGS='--rounds 20 --seconds 1'
ARGS ?=

# The systems that are compiled for and never run on here.
TARGETS = darwin/amd64 darwin/arm64 windows/amd64 linux/arm64
# Modules beside the root one. lab/caddy is but one import: tidy looks at it, the others would compile all of Caddy.
MODULES = $(patsubst %/go.mod,%,$(wildcard lab/go.mod examples/go.mod browser/go.mod))

.PHONY: all build test race vet staticcheck fmt tidy fuzz lab-test examples-test browser-test suites cross bench bench-idle ci

all: build vet test

build:
	$(GO) build ./...
	$(GO) build -o bin/ ./cmd/chert

test:
	$(GO) test -timeout $(TIMEOUT) ./...

race:
	$(GO) test -race -timeout $(TIMEOUT) ./...

vet:
	$(GO) vet ./...
	@set -e; for m in $(MODULES); do echo "$(GO) -C $$m vet ./..."; $(GO) -C $$m vet ./...; done

# The version is the one in go.mod; the other modules borrow it from there.
staticcheck:
	$(GO) tool staticcheck ./...
	@set -e; for m in $(MODULES); do \
		echo "$(GO) -C $$m tool -modfile=../go.mod staticcheck ./..."; \
		$(GO) -C $$m tool -modfile=../go.mod staticcheck ./...; \
	done

fmt:
	@bad=$$(gofmt -l .) || exit 1; \
	if [ -n "$$bad" ]; then echo "not formatted, run gofmt -w on:"; echo "$$bad"; exit 1; fi

# Fails if go mod tidy would change something.
tidy:
	$(GO) mod tidy -diff
	@set -e; for m in $(MODULES) $(wildcard lab/caddy); do echo "$(GO) -C $$m mod tidy -diff"; $(GO) -C $$m mod tidy -diff; done

# go test takes one fuzz target at a time. -list prints the names of a
# package's targets and then a line "ok <package>".
fuzz:
	@list=$$($(GO) test -list '^Fuzz' ./...) || { echo "$$list"; exit 1; }; \
	echo "$$list" | awk '/^Fuzz/ { name[n++] = $$1 } $$1 == "ok" { for (i = 0; i < n; i++) print $$2, name[i]; n = 0 }' | \
	while read -r pkg name; do \
		echo "$$name in $$pkg"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$pkg" </dev/null || exit 1; \
	done

lab-test:
	$(GO) -C lab test -timeout $(TIMEOUT) ./...

examples-test:
	@if [ -f examples/go.mod ]; then $(GO) -C examples test -timeout $(TIMEOUT) ./...; fi

# Pages in headless Chromium; CHERT_SCREENSHOTS=DIR leaves pictures of them.
browser-test:
	$(GO) -C browser test -timeout $(TIMEOUT) ./...

# The tests of other modules and of Go's net/http, run on chert.
suites:
	$(GO) run ./suites

cross:
	@set -e; for t in $(TARGETS); do \
		echo "build and vet for $$t"; \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build ./...; \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet ./...; \
	done

bench:
	cd lab && $(GO) run . run hello $(ARGS)

bench-idle:
	cd lab && $(GO) run . run idle $(ARGS)

ci:
	.ci/run
