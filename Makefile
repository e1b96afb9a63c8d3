# Everything is built from this folder with Go alone.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
# Nothing of the machine that builds gets into the binary: same commit, same bytes.
BUILD    = CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= -X main.version=$(VERSION)'
# The event loops block without telling the race detector's scheduler.
LOOPS    = armrepro/bench/load armrepro/upstream

.PHONY: help run test build image peers test-vm clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

run: ## measure the built-in gateway in both scenarios, 27 s of load
	$(BUILD) -o dist/armrepro .
	dist/armrepro run --gateway builtin --duration 5s --warmup 1s

test: ## vet and test everything, under the race detector too
	go vet ./...
	GOARCH=arm64 go vet ./...
	go test ./...
	go test -race -short $$(go list ./... | grep -v -x $(patsubst %,-e %,$(LOOPS)))

build: dist/armrepro-linux-arm64 dist/armrepro-linux-amd64 ## build both binaries into dist/

dist/armrepro-linux-%: FORCE
	GOOS=linux GOARCH=$* $(BUILD) -o $@ .

FORCE:

image: build ## build the container image from dist/
	docker build --build-arg TARGETARCH=$$(go env GOARCH) -t armrepro .

peers: ## compare with wrk and nginx, which have to be installed
	go run ./bench/peers

test-vm: dist/armrepro-linux-arm64 ## boot the arm64 binary in virtual machines, with what apt fetches
	go run ./bench/machine/vmtest --armrepro $<

clean: ## remove what was built
	rm -rf dist
