package ringkernel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nixl-otel/nixl-otel/bridge/internal/metrictest"
	"github.com/nixl-otel/nixl-otel/bridge/ringkernel"
)

// Each call updates what is its own and nothing else, by handle and by id.
func TestRecords(t *testing.T) {
	err := errors.New("no")
	later := start.Add(time.Second)
	for _, tt := range []struct {
		name     string
		byHandle func(*ringkernel.Kernel)
		byID     func(*ringkernel.Runtime, string)
		want     ringkernel.Telemetry
	}{
		{
			"receive",
			(*ringkernel.Kernel).Received,
			(*ringkernel.Runtime).RecordReceive,
			ringkernel.Telemetry{MessagesReceived: 1, LastMessageTime: later},
		},
		{
			"send",
			(*ringkernel.Kernel).Sent,
			(*ringkernel.Runtime).RecordSend,
			ringkernel.Telemetry{MessagesSent: 1},
		},
		{
			"process",
			func(k *ringkernel.Kernel) { k.Processed(7) },
			func(r *ringkernel.Runtime, id string) { r.RecordProcess(id, 7) },
			ringkernel.Telemetry{MessagesProcessed: 1, TotalLatency: 7, MinLatency: 7, MaxLatency: 7},
		},
		{
			"drop",
			(*ringkernel.Kernel).Dropped,
			(*ringkernel.Runtime).RecordDrop,
			ringkernel.Telemetry{MessagesDropped: 1},
		},
		{
			"error",
			func(k *ringkernel.Kernel) { k.Error(err) },
			func(r *ringkernel.Runtime, id string) { r.RecordError(id, err) },
			ringkernel.Telemetry{Errors: 1, LastError: err},
		},
		{
			"no error",
			func(k *ringkernel.Kernel) { k.Error(nil) },
			func(r *ringkernel.Runtime, id string) { r.RecordError(id, nil) },
			ringkernel.Telemetry{},
		},
		{
			"state",
			func(k *ringkernel.Kernel) { k.SetState(ringkernel.StateLaunched) },
			func(r *ringkernel.Runtime, id string) { r.SetState(id, ringkernel.StateLaunched) },
			ringkernel.Telemetry{State: ringkernel.StateLaunched},
		},
		{
			"queue size",
			func(k *ringkernel.Kernel) { k.SetQueueSize(ringkernel.OutputQueue, 4) },
			func(r *ringkernel.Runtime, id string) { r.SetQueueSize(id, ringkernel.OutputQueue, 4) },
			ringkernel.Telemetry{Output: ringkernel.QueueTelemetry{Size: 4}},
		},
		{
			"queue capacity",
			func(k *ringkernel.Kernel) { k.SetQueueCapacity(ringkernel.InputQueue, 9) },
			func(r *ringkernel.Runtime, id string) { r.SetQueueCapacity(id, ringkernel.InputQueue, 9) },
			ringkernel.Telemetry{Input: ringkernel.QueueTelemetry{Capacity: 9}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			handle := w.Register("handle")
			w.Register("id")
			w.clock.Advance(time.Second)
			tt.byHandle(handle)
			tt.byID(w.Runtime, "id")
			for _, id := range []string{"handle", "id"} {
				tt.want.KernelID, tt.want.StartTime, tt.want.Time = id, start, later
				if d := cmp.Diff(tt.want, w.telemetry(t, id), cmpopts.EquateErrors()); d != "" {
					t.Errorf("by %s (-want +got):\n%s", id, d)
				}
			}
		})
	}
}

func TestZeroIsARealMinimum(t *testing.T) {
	for _, tt := range []struct {
		name      string
		latencies []time.Duration
		min, max  time.Duration
		total     time.Duration
	}{
		{"zero first", []time.Duration{0, 5, 3}, 0, 5, 8},
		{"zero last", []time.Duration{5, 3, 0}, 0, 5, 8},
		{"zero alone", []time.Duration{0}, 0, 0, 0},
		{"without zero", []time.Duration{5, 3}, 3, 5, 8},
		{"negative is zero", []time.Duration{5, -3}, 0, 5, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			k := w.Register("k")
			for _, d := range tt.latencies {
				k.Processed(d)
			}
			s := w.telemetry(t, "k")
			if s.MinLatency != tt.min || s.MaxLatency != tt.max || s.TotalLatency != tt.total {
				t.Errorf("min %d, max %d, total %d; want %d, %d, %d",
					s.MinLatency, s.MaxLatency, s.TotalLatency, tt.min, tt.max, tt.total)
			}
			if n := int64(len(tt.latencies)); s.MessagesProcessed != n {
				t.Errorf("processed %d, want %d", s.MessagesProcessed, n)
			}
		})
	}
}

// Minimum and maximum are of all goroutines.
func TestLatenciesOfManyGoroutines(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	done := make(chan struct{})
	for i := range 50 {
		go func() {
			k.Processed(time.Duration(100 + i))
			done <- struct{}{}
		}()
	}
	for range 50 {
		<-done
	}
	if s := w.telemetry(t, "k"); s.MinLatency != 100 || s.MaxLatency != 149 || s.MessagesProcessed != 50 {
		t.Errorf("min %d, max %d of %d, want 100, 149 of 50", s.MinLatency, s.MaxLatency, s.MessagesProcessed)
	}
}

func TestUnknownIDDoesNothing(t *testing.T) {
	w := newWorld(t)
	w.RecordReceive("x")
	w.RecordSend("x")
	w.RecordProcess("x", 1)
	w.RecordDrop("x")
	w.RecordError("x", errors.New("no"))
	w.SetState("x", ringkernel.StateActive)
	w.SetQueueSize("x", ringkernel.InputQueue, 1)
	w.SetQueueCapacity("x", ringkernel.InputQueue, 1)
	w.Reset("x")
	if all := w.All(); len(all) != 0 {
		t.Errorf("All() = %v, want nothing", all)
	}
	if v := metrictest.Values(w.collect(t)); len(v) != 0 {
		t.Errorf("reported %v, want nothing", v)
	}
}

// Values outside an enumeration change nothing.
func TestValuesOutOfRange(t *testing.T) {
	w := newWorld(t)
	k := w.Register("k")
	k.SetState(ringkernel.StateActive)
	k.SetState(ringkernel.State(99))
	k.SetQueueSize(ringkernel.Queue(99), 1)
	k.SetQueueCapacity(ringkernel.Queue(99), 1)
	k.ObserveQueue(ringkernel.Queue(99), func() (int, int) { return 1, 1 })
	k.SetQueueSize(ringkernel.InputQueue, -1)
	k.SetQueueCapacity(ringkernel.InputQueue, -1)
	want := ringkernel.Telemetry{KernelID: "k", State: ringkernel.StateActive, StartTime: start, Time: start}
	if d := cmp.Diff(want, w.telemetry(t, "k"), cmpopts.EquateErrors()); d != "" {
		t.Errorf("Telemetry (-want +got):\n%s", d)
	}
}

func TestRecordsDoNotAllocate(t *testing.T) {
	latencies := ringkernel.NewLatencyProducer()
	w := newWorld(t, ringkernel.WithLatencyProducer(latencies))
	k := w.Register("k")
	for name, f := range map[string]func(){
		"Received":      k.Received,
		"Sent":          k.Sent,
		"Dropped":       k.Dropped,
		"Processed":     func() { k.Processed(time.Microsecond) },
		"RecordReceive": func() { w.RecordReceive("k") },
		"SetQueueSize":  func() { k.SetQueueSize(ringkernel.InputQueue, 1) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s allocates %v times a call, want 0", name, n)
		}
	}
}

func TestTelemetry(t *testing.T) {
	w := newWorld(t)
	w.Register("a").Sent()
	w.Register("b")
	if _, ok := w.Telemetry("c"); ok {
		t.Error("Telemetry of an unknown id is there")
	}
	all := w.All()
	if len(all) != 2 || all["a"].MessagesSent != 1 || all["b"].KernelID != "b" {
		t.Errorf("All() = %+v, want a, which sent 1, and b", all)
	}
	if d := cmp.Diff(w.telemetry(t, "a"), all["a"], cmpopts.EquateErrors()); d != "" {
		t.Errorf("Telemetry and All differ:\n%s", d)
	}
}

func TestDisabledHasNoTelemetry(t *testing.T) {
	for name, rt := range disabledRuntimes(t) {
		rt.Register("a").Sent()
		if _, ok := rt.Telemetry("a"); ok {
			t.Errorf("%s: Telemetry is there", name)
		}
		if all := rt.All(); len(all) != 0 {
			t.Errorf("%s: All() = %v, want nothing", name, all)
		}
	}
}

// disabledRuntimes are the two ways of having none.
func disabledRuntimes(t *testing.T) map[string]*ringkernel.Runtime {
	t.Helper()
	return map[string]*ringkernel.Runtime{
		"disabled": newRuntime(t, ringkernel.WithEnabled(false)),
		"nil":      nil,
	}
}
