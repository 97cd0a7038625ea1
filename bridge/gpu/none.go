// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux || !(amd64 || arm64)

package gpu

// newSource returns no source, because NVML can't be used.
func newSource() source { return nil }
