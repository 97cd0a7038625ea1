// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package atomic replaces sync/atomic in ringbuf when the simulation is built with the
// overlay of internal/lab/mutate. Agents can then make steps between any two accesses of a
// reader to the header.
package atomic

import "sync/atomic"

// Before is called before each access. The simulation, which then has one goroutine, sets it.
var Before = func() {}

// BeforeSwap is called instead before each compare-and-swap.
var BeforeSwap = func() {}

// LoadUint64 is like the function in sync/atomic.
func LoadUint64(addr *uint64) uint64 {
	Before()
	return atomic.LoadUint64(addr)
}

// LoadInt32 is like the function in sync/atomic.
func LoadInt32(addr *int32) int32 {
	Before()
	return atomic.LoadInt32(addr)
}

// CompareAndSwapUint64 is like the function in sync/atomic.
func CompareAndSwapUint64(addr *uint64, from, to uint64) bool {
	BeforeSwap()
	return atomic.CompareAndSwapUint64(addr, from, to)
}
