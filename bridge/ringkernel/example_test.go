// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringkernel_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// This kernel doubles numbers. Its metrics go to the global MeterProvider.
func Example() {
	ctx := context.Background()
	rt := ringkernel.NewRuntime()
	defer rt.Close()

	k := rt.Register("double")
	in, out := make(chan int, 3), make(chan int, 3)
	k.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(in), cap(in) })
	for i := range 3 {
		in <- i
		k.Received(ctx)
	}
	close(in)
	for n := range in {
		start := time.Now()
		n *= 2
		k.Processed(ctx, time.Since(start))
		out <- n
		k.Sent(ctx)
	}

	t, _ := rt.Telemetry("double")
	fmt.Println(t.MessagesReceived, t.MessagesProcessed, t.MessagesSent, t.InputCapacity)
	// Output:
	// 3 3 3 3
}
