// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestReasonOfPermissionAndUnknownErrors(t *testing.T) {
	for want, err := range map[string]error{
		"permission": fmt.Errorf("open ring: %w", &files.PermissionError{Owner: 1, UID: 2}), "error": errors.New("input/output error"),
	} {
		if got, _ := refusal(err); got.Reason != want {
			t.Errorf("reason of %v is %s, want %s", err, got.Reason, want)
		}
	}
}

// A file that isn't ready for a long time is tried rarely, and reported once, but not the file of an agent that
// was open and restarts.
func TestRestartedRingIsTriedAgainSoon(t *testing.T) {
	x := newFixture(t)
	x.owner.mute = true
	restart := func() { ringtest.Edit(t, x.path("agent"), func(h *ringtest.Header) { h.Version = 0 }) }
	x.ring("agent", ringbuf.V4, 8)
	restart()
	d := x.directory(nil)
	for range 10 {
		d.poll()
		x.advance(maxRetry)
	}
	x.ring("agent", ringbuf.V4, 8)
	d.poll()
	m := x.owner.ring(x.path("agent"))
	restart()
	d.Reopen(m.Agent, m.Reader)
	d.runCalls()
	x.advance(time.Minute)
	d.poll()
	if n := len(x.noticesOf(notice.RingRefused)); n != 2 {
		t.Errorf("reported %d times, want 2", n)
	}
	x.ring("agent", ringbuf.V4, 8)
	x.advance(2 * pollInterval)
	d.poll()
	if again := x.owner.ring(x.path("agent")); again.Reader == m.Reader {
		t.Error("the ring isn't opened again")
	} else {
		d.Close(again.Reader)
	}
}

// The owner still reads the ring that the file has replaced.
func TestRingThatTheOwnerIsTooBusyForIsOfferedAgain(t *testing.T) {
	x := newFixture(t)
	x.owner.mute, x.owner.refuses = true, drain.ErrBusy
	x.ring("agent", ringbuf.V4, 8)
	d := x.directory(nil)
	d.poll()
	x.advance(2 * pollInterval)
	d.poll()
	x.advance(2 * pollInterval)
	x.owner.refuses = nil
	d.poll()
	if n := count[drain.Offer](x.owner); n != 3 || d.open.Load() != 1 || len(x.noticesOf(notice.RingRefused)) > 0 {
		t.Errorf("the ring was offered %d times; %d rings are open; notices are %v", n, d.open.Load(), x.noticesOf(notice.RingRefused))
	}
	d.Close(x.owner.ring(x.path("agent")).Reader)
}

func TestNoticeDependsOnTheReason(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		kind         notice.Kind
		level        slog.Level
	}{
		{"agent", "invalid", notice.RingRefused, slog.LevelWarn},
		{"agent", "budget", notice.BudgetReached, slog.LevelWarn},
		{"agent", "limit", notice.RingLimit, slog.LevelError},
		{storetest.Real, "invalid", notice.MPStoreRefused, slog.LevelWarn},
		{storetest.Real, "budget", notice.BudgetReached, slog.LevelWarn},
		{storetest.Real, "limit", notice.RingLimit, slog.LevelError},
	} {
		r := &record{Agent: drain.Agent{Name: tc.name}}
		if n := r.refusalNotice(Refusal{Reason: tc.reason}); n.Kind != tc.kind || n.Level != tc.level {
			t.Errorf("%s, %s: %+v", tc.name, tc.reason, n)
		}
	}
}
