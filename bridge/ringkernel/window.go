// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel

import (
	"sync"
	"time"
)

// window limits how often kernels read the clock, which takes longer than everything else
// that Kernel.Received does. A kernel only reads it for its first message in a window.
//
// The first message in a window starts a timer that ends it, so nothing runs while there
// are no messages. If a kernel receives at most one message per window, the time of each
// message is exact.
type window struct {
	mu      sync.Mutex
	kernels []*Kernel // that have read the clock
	timer   *time.Timer
}

// windowTime is the length of a window, and so the maximum error of the time of the last
// message.
const windowTime = 10 * time.Millisecond

func (w *window) init() {
	w.timer = time.AfterFunc(time.Hour, w.end)
	w.timer.Stop()
}

// open lets a kernel receive messages without reading the clock until the window ends.
func (w *window) open(k *Kernel) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !k.received.unflag() {
		return // another goroutine was first
	}
	if len(w.kernels) == 0 {
		w.timer.Reset(windowTime)
	}
	w.kernels = append(w.kernels, k)
}

func (w *window) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kernels {
		k.received.flag()
	}
	clear(w.kernels) // they may be unregistered
	w.kernels = w.kernels[:0]
}
