// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"os"
	"runtime"
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
	const goroutines, each = 16, 500
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			device := []string{CPU, IGPU}[g%2]
			for i := range each {
				p := Packet{
					ID: int64(g*each + i), Layer: g, Operation: layerOperations[i%5].operation, Device: device,
					Duration: time.Duration(g) * time.Microsecond, Memory: int64(g) << 20,
				}
				if i%10 == 0 {
					p.Err = textError(strings.Repeat(fmt.Sprintf("%d, ", g), 100))
				}
				if err := s.Record(t.Context(), p); err != nil {
					t.Error(err)
					return
				}
				switch i % 50 {
				case 0:
					s.AddGeneratedTokens(t.Context(), 1)
				case 1:
					_ = s.Summary()
				}
			}
		})
	}
	wg.Wait()
	closeTest(t, s)

	rows := rowsOf(t, read(t, s.files.csv))
	seen := make(map[int64]bool)
	for i, r := range rows {
		g := int(r.PacketID) / each
		wantErr := ""
		if r.PacketID%10 == 0 {
			wantErr = strings.Repeat(fmt.Sprintf("%d, ", g), 100)
		}
		if seen[r.PacketID] || r.Layer != g || r.Error != wantErr || r.Duration != time.Duration(g)*time.Microsecond {
			t.Fatalf("row %d is %+v", i, r)
		}
		seen[r.PacketID] = true
		if i > 0 && r.Time.Before(rows[i-1].Time) {
			t.Errorf("row %d is older than the one before", i)
		}
	}
	const total = goroutines * each
	sum := s.Summary()
	if len(rows) != total || sum.TotalPackets != total || sum.FailedPackets != total/10 ||
		sum.CPUPackets != sum.IGPUPackets || sum.TokensGenerated != goroutines*each/50 {
		t.Errorf("%d rows; %+v", len(rows), sum)
	}
	if got := packetsCounted(t, reader); got != total {
		t.Errorf("metrics have %d packets", got)
	}
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
