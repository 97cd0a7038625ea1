// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Stores have this clock. /proc/uptime differs in containers of LXC, and after the machine was suspended.
func TestUptimeIsTheMonotonicClock(t *testing.T) {
	now := func() time.Duration {
		var ts unix.Timespec
		must.OK(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts))
		return time.Duration(ts.Nano())
	}
	before := now()
	got, err := Uptime()
	must.OK(t, err)
	if after := now(); got < before || got > after {
		t.Errorf("got %v, want between %v and %v", got, before, after)
	}
}
