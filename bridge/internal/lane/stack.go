// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package lane

import "unsafe"

// Index returns the lane of the current goroutine, less than [Count]. It can change
// between calls if the stack moves or grows by 2 KiB or more, and several goroutines can
// have the same lane, so access to a lane must be safe for concurrent use.
func Index() uint32 {
	// Multiplying by 2^32 divided by the golden ratio spreads adjacent stacks over the
	// upper bits.
	const spread = 0x9E3779B1
	return uint32(stackAddress()>>smallestStack) * spread >> (32 - bits)
}

// The smallest stack of a goroutine has 1<<smallestStack bytes and is aligned to its
// size.
const smallestStack = 11

// stackAddress returns an address on the current goroutine's stack. The address only
// distinguishes goroutines and is never converted back to a pointer. This is the only use
// of unsafe outside package ringbuf, because Go has no cheaper way to identify a goroutine.
func stackAddress() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}
