// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package byid records the telemetry of ring kernels by kernel ID. It is for code
// that can't keep a *[ringkernel.Kernel], such as a port of PyDotCompute's
// TelemetryCollector.
//
// Each function looks up the kernel and calls the corresponding method of its
// [ringkernel.Kernel]. Keeping the *Kernel is faster. If no kernel has the ID, the
// error wraps [ErrNotRegistered]. With a nil Runtime, the functions do nothing.
package byid

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// ErrNotRegistered means that no kernel has the ID.
var ErrNotRegistered = errors.New("no ring kernel has this ID; register it first")

// RecordReceive calls [ringkernel.Kernel.Received] on the kernel with the ID.
func RecordReceive(ctx context.Context, rt *ringkernel.Runtime, id string) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Received(ctx) })
}

// RecordSend calls [ringkernel.Kernel.Sent] on the kernel with the ID.
func RecordSend(ctx context.Context, rt *ringkernel.Runtime, id string) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Sent(ctx) })
}

// RecordMessage calls [ringkernel.Kernel.Processed] on the kernel with the ID.
func RecordMessage(ctx context.Context, rt *ringkernel.Runtime, id string, latency time.Duration) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Processed(ctx, latency) })
}

// RecordDrop calls [ringkernel.Kernel.Dropped] on the kernel with the ID.
func RecordDrop(ctx context.Context, rt *ringkernel.Runtime, id string, q ringkernel.Queue) error {
	return with(rt, id, func(k *ringkernel.Kernel) { k.Dropped(ctx, q) })
}

// RecordError calls [ringkernel.Kernel.Error] on the kernel with the ID.
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
