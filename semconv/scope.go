// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package semconv

// ScopeName is the name of the instrumentation scope of the metrics in [NIXL].
// It is the same whether the Collector receiver, bridge/agent or bridge/rings
// reports an agent, so that an agent has the same series either way.
const ScopeName = "github.com/nixl-otel/nixl-otel"

// Version is the version of the catalog, and of the scope [ScopeName]. Each
// release has its own version; builds between two releases share one. Prometheus
// adds the version to each series as otel_scope_version.
const Version = "0.1.0"
