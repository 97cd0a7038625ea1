// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/lab/must"
)

// Several goroutines record until the session is closed. Each recorded packet has a complete
// row, in the order of timestamps, and totals and metrics include it.
func TestConcurrentRecordsAreCompleteUntilClose(t *testing.T) {
	packet := func(id int64) Packet {
		return Packet{
			ID: id, Layer: int(id % 7), Operation: []string{"embedding", "lm_head"}[id%2], Device: []string{CPU, IGPU}[id%2],
			Duration: time.Duration(id) * time.Microsecond, Err: textError(strings.Repeat(fmt.Sprintf("%d, ", id), 100)),
		}
	}
	for range 10 {
		s, reader := openMeasured(t, withClock(time.Now))
		var recording sync.WaitGroup
		var ids, recorded atomic.Int64
		for range 8 {
			recording.Go(func() {
				for {
					err := s.Record(t.Context(), packet(ids.Add(1)))
					if errors.Is(err, os.ErrClosed) {
						return
					}
					if err != nil {
						t.Error(err)
					}
					recorded.Add(1)
					s.AddGeneratedTokens(t.Context(), 1)
				}
			})
		}
		for s.Summary().TotalPackets < 500 {
			runtime.Gosched()
		}
		for range 2 {
			recording.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		recording.Wait()
		rows := rowsOf(t, read(t, s.sum.CSVLog))
		if !slices.IsSortedFunc(rows, func(a, b Row) int { return a.Time.Compare(b.Time) }) {
			t.Error("the rows are not in the order of their timestamps")
		}
		seen := make(map[int64]bool)
		for _, r := range rows {
			p := packet(r.PacketID)
			want := Row{r.Time, p.Device, r.Worker, p.Duration, p.ID, p.Layer, p.Operation, false, 0, p.Err.Error()}
			if r != want {
				t.Fatalf("row %+v, want %+v", r, want)
			}
			seen[r.PacketID] = true
		}
		n := recorded.Load()
		equal(t, []int64{n, n, n, n}, []int64{int64(len(rows)), int64(len(seen)), s.Summary().FailedPackets, packetsCounted(t, reader)})
	}
}

func TestRecordDoesNotAllocateAndUsesConstantMemory(t *testing.T) {
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	s := openTest(t, t.TempDir(), withClock(time.Now), WithMeterProvider(sdk))
	var all []Packet
	for i, r := range rowsOf(t, read(t, upstreamPath("session_2025-11-17_00-04-29.csv"))) {
		p := packetOf(r)
		p.Expert, p.DeviceTarget = fmt.Sprint(i%8), CPU
		all = append(all, p)
	}
	next := 0
	one := func() {
		must.OK(t, s.Record(t.Context(), all[next%len(all)]))
		next++
	}
	for range all { // later packets find their points
		one()
	}
	if got := testing.AllocsPerRun(2000, one); got > 0 {
		t.Errorf("%v allocations per packet", got)
	}
	before := heap()
	const many = 100_000
	for range many {
		one()
	}
	if grown := int64(heap()) - int64(before); grown > 256<<10 {
		t.Errorf("%d packets left %d bytes", many, grown)
	}
	runtime.KeepAlive(s)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
