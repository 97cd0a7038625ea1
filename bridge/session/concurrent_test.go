// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/nixl-otel/nixl-otel/internal/must"
)

// With several goroutines, each row is complete, is written once, and is in the order
// of timestamps. Totals and metrics include all packets.
func TestConcurrentRecordsAreComplete(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	s := openTest(t, t.TempDir(), WithClock(time.Now),
		WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	const goroutines, each, total = 16, 500, 16 * 500
	packet := func(id int) Packet {
		return Packet{
			ID: int64(id), Layer: id / each, Operation: layerOperations[id%5].operation, Device: []string{CPU, IGPU}[id%2],
			Duration: time.Duration(id) * time.Microsecond, Err: textError(strings.Repeat(fmt.Sprintf("%d, ", id), 100)),
		}
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				if err := s.Record(t.Context(), packet(g*each+i)); err != nil {
					t.Error(err)
				}
				s.AddGeneratedTokens(t.Context(), 1)
				_ = s.Summary()
			}
		})
	}
	wg.Wait()
	closeTest(t, s)
	rows := rowsOf(t, read(t, s.files.csv))
	if !slices.IsSortedFunc(rows, func(a, b Row) int { return a.Time.Compare(b.Time) }) {
		t.Error("the rows are not in the order of their timestamps")
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.PacketID, b.PacketID) })
	equal(t, total, len(rows))
	for i, r := range rows {
		want := packet(i)
		equal(t, Row{Time: r.Time, Device: want.Device, Worker: r.Worker, Duration: want.Duration, PacketID: want.ID, Layer: want.Layer, Operation: want.Operation, Error: want.Err.Error()}, r)
	}
	sum := s.Summary()
	equal(t, []int64{total, total, total}, []int64{sum.FailedPackets, sum.TokensGenerated, packetsCounted(t, reader)})
}

// Packets recorded before Close are in the file. Later ones are rejected.
func TestCloseDuringConcurrentRecordsLosesNoRow(t *testing.T) {
	for range 20 {
		s := openTest(t, t.TempDir(), WithClock(time.Now))
		var wg sync.WaitGroup
		var mu sync.Mutex
		var recorded int
		for range 4 {
			wg.Go(func() {
				for {
					err := s.Record(t.Context(), Packet{Operation: "embedding", Device: CPU})
					if errors.Is(err, os.ErrClosed) {
						return
					}
					mu.Lock()
					recorded++
					mu.Unlock()
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		for s.Summary().TotalPackets < 50 {
			runtime.Gosched()
		}
		for range 2 {
			wg.Go(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if rows := rowsOf(t, read(t, s.files.csv)); len(rows) != recorded {
			t.Fatalf("%d rows, %d packets were recorded", len(rows), recorded)
		}
	}
}

func TestRecordDoesNotAllocateAndUsesConstantMemory(t *testing.T) {
	s, one := recorder(t)
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

// recorder returns a session and a function that records one packet. It first
// records one packet of each kind, so that later ones find their routes.
func recorder(t *testing.T) (s *Session, one func()) {
	t.Helper()
	sdk := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	s = openTest(t, t.TempDir(), WithClock(time.Now), WithMeterProvider(sdk))
	all := detailed()
	next := 0
	one = func() {
		must.OK(t, s.Record(t.Context(), all[next%len(all)]))
		next++
	}
	for range all {
		one()
	}
	return s, one
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
