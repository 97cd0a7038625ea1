// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !cgo || !linux || !(amd64 || arm64)

package gpu

// newSource returns a Source without GPUs, because NVML can't be used.
func newSource() Source { return none{} }

type none struct{}

func (none) Samples() []Sample { return nil }
func (none) Close() error      { return nil }
