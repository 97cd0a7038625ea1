// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect collects the details of one ring and gives advice to operators. It never
// changes the ring.
package inspect
