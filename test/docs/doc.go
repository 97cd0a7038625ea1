// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package docs tests the documents of the repository: their links resolve, and the
// metrics, log lines and commands that they name exist.
package docs
