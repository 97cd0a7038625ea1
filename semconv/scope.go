// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// ScopeName is the name of the instrumentation scope of all metrics. The Collector
// receiver and all packages under bridge use it, so that an agent has the same series
// whichever of them reports it.
const ScopeName = "github.com/nixl-otel/nixl-otel"

// Version is the version of the catalog and of the scope [ScopeName]. It changes
// with each release, not with each build: Prometheus adds it to each series as
// otel_scope_version.
const Version = "0.1.0"

// SchemaURL is the schema URL of the scope [ScopeName] and of the resources of
// NIXL agents: the version of OpenTelemetry's semantic conventions that they
// follow. Prometheus adds it to each series as otel_scope_schema_url, so changing it
// starts new series.
const SchemaURL = "https://opentelemetry.io/schemas/1.43.0"
