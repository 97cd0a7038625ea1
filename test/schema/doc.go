// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package schema tests that the JSON Schema of the receiver's configuration accepts
// the examples and rejects mistakes.
package schema
