// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect collects the details of one ring or store, and gives advice to operators.
// It never changes the file.
package inspect
