# Copyright The nixl-otel Authors
# SPDX-License-Identifier: Apache-2.0

# The full Collector and nixlring, static, and nothing else. `make image` builds it.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY . .
# What scripts/version.sh says where there is a repository, which isn't copied.
ARG VERSION
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 make build-full nixlring && mkdir /state

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/dist/full/otelcol-nixl-full /usr/bin/otelcol-nixl
COPY --from=build /src/bin/nixlring /usr/bin/
COPY --from=build /src/examples/collector/agent.yaml /etc/otelcol-nixl/config.yaml
# A volume that is mounted here begins with this owner.
COPY --from=build --chown=65532:65532 /state /var/lib/otelcol-nixl
USER 65532:65532
ENTRYPOINT ["/usr/bin/otelcol-nixl"]
CMD ["--config=/etc/otelcol-nixl/config.yaml"]
