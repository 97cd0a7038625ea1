// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package parity

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/agent"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ringOnly is the prefix of the metrics that only a ring has.
const ringOnly = "nixl.telemetry.ring."

// The test exports one stream of operations through a ring and the receiver, and
// through the bridge and the SDK's exporter. Only the resource and the ring's
// health may differ.
func TestBridgeExportsTheSameMetricsAsTheReceiver(t *testing.T) {
	for name, c := range map[string]struct {
		layout ringbuf.Layout
		ops    []operation
	}{
		"no operation": {ringbuf.V4, nil},
		"one transfer": {ringbuf.V4, []operation{transfer(agent.Transmit, 4096, 15_000, 120_000)}},
		"only memory":  {ringbuf.V4, []operation{registered(10), deregistered(3)}},
		"a busy agent": {ringbuf.V4, append(stream(1, 2000), dropped(48_380), dropped(1))},
		"layout v3":    {ringbuf.V3, stream(2, 500)},
		"layout v2":    {ringbuf.V2, stream(3, 500)},
		"layout v1":    {ringbuf.V1, stream(5, 500)},
	} {
		t.Run(name, func(t *testing.T) {
			ring := normalize(t, throughRing(t, c.layout, c.ops), ringOnly)
			equal(t, ring, normalize(t, throughBridge(t, c.ops)))
		})
	}
}
