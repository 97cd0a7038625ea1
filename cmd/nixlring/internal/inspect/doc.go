// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package inspect finds out all that can be known of one ring from outside,
// and what an operator should do about it. It looks only.
package inspect
