# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0

# The full Collector and nixlring, static, and nothing else. Build it with `docker build --tag otelcol-nixl .`
# The build runs on the builder's own architecture and cross-compiles.
FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
# The output of scripts/version.sh: the repository isn't copied.
ARG VERSION
ARG TARGETOS TARGETARCH
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS=$TARGETOS GOARCH=$TARGETARCH make build-full nixlring && mkdir /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/dist/full/otelcol-nixl-full /usr/bin/otelcol-nixl
COPY --from=build /src/bin/nixlring /usr/bin/
COPY --from=build /src/examples/collector/agent.yaml /etc/otelcol-nixl/config.yaml
# A volume that is mounted here starts with this owner.
COPY --from=build --chown=65532:65532 /state /var/lib/otelcol-nixl
USER 65532:65532
ENTRYPOINT ["/usr/bin/otelcol-nixl"]
CMD ["--config=/etc/otelcol-nixl/config.yaml"]
