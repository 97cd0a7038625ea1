// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package byid records what ring kernels do for code that has their ids and no
// handles, such as a port of PyDotCompute's TelemetryCollector.
//
// Each call looks the kernel up and makes the call of the same meaning on its
// [ringkernel.Kernel], which is faster to keep. An unknown id is an error that
// wraps [ErrNotRegistered]. With a nil Runtime, the calls do nothing.
package byid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// ErrNotRegistered is the error for an id that no kernel has.
var ErrNotRegistered = errors.New("no ring kernel has this id; register it first")

// RecordReceive is [ringkernel.Kernel.Received] of the kernel with an id.
func RecordReceive(ctx context.Context, rt *ringkernel.Runtime, id string) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Received(ctx) })
}

// RecordSend is [ringkernel.Kernel.Sent] of the kernel with an id.
func RecordSend(ctx context.Context, rt *ringkernel.Runtime, id string) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Sent(ctx) })
}

// RecordMessage is [ringkernel.Kernel.Processed] of the kernel with an id.
func RecordMessage(ctx context.Context, rt *ringkernel.Runtime, id string, latency time.Duration) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Processed(ctx, latency) })
}

// RecordDrop is [ringkernel.Kernel.Dropped] of the kernel with an id.
func RecordDrop(ctx context.Context, rt *ringkernel.Runtime, id string, q ringkernel.Queue) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Dropped(ctx, q) })
}

// RecordError is [ringkernel.Kernel.Error] of the kernel with an id.
func RecordError(ctx context.Context, rt *ringkernel.Runtime, id string, err error) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Error(ctx, err) })
}

func with(rt *ringkernel.Runtime, id string, record func(*ringkernel.Kernel)) error {
	if rt == nil {
		return nil
	}
	k := rt.Kernel(id)
	if k == nil {
		return fmt.Errorf("record for %q: %w", id, ErrNotRegistered)
	}
	record(k)
	return nil
}
