# Needs no network: `make build` puts the binaries into dist/ first.
FROM scratch
ARG TARGETARCH=arm64
COPY dist/armrepro-linux-${TARGETARCH} /armrepro
# A private folder for throw-away data: scratch has no /tmp.
WORKDIR /tmp
ENTRYPOINT ["/armrepro"]
