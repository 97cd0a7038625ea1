// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// mdatagen knows no distributions but OpenTelemetry's own.
//go:generate sed -i.bak "s#^| Distributions .*#| Distributions | otelcol-nixl, made by [builder-config.yaml](../../builder-config.yaml) |#" README.md
//go:generate rm README.md.bak
