// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package lane

import "unsafe"

// Index is the lane of the goroutine that runs, less than [Count]. It is the
// same from call to call, but for a stack that moves or a call that is more
// than 2 KiB deeper: a hint, that is, and never an owner's title.
func Index() uint32 {
	// 2^32 over the golden ratio, odd: it takes neighbours, as stacks that were
	// made one after another are, far apart in the upper bits.
	const spread = 0x9E3779B1
	return uint32(stackAddress()>>smallestStack) * spread >> (32 - bits)
}

// The smallest stack that the runtime gives a goroutine has 1<<11 bytes, and
// starts at a multiple of that.
const smallestStack = 11

// stackAddress is an address on the stack of the goroutine that runs. It only
// tells goroutines apart, and is never made a pointer again: the one use of
// unsafe outside ringbuf, as Go has no cheaper name for a goroutine.
func stackAddress() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}
