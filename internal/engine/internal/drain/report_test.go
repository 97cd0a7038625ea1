// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// takeTo moves the read position like another consumer.
func (b *harness) takeTo(position uint64) {
	const readPos = 8 // its offset in the header
	binary.LittleEndian.PutUint64(b.mem[readPos:], position)
}

// restart restarts the agent, up to the point where the version is 0.
func (b *harness) restart() {
	b.t.Helper()
	clear(b.mem[offVersion : offVersion+4])
	b.step()
	if !b.reopen {
		b.t.Fatalf("the restart was not detected; notices are %v", b.notices)
	}
}

// reported returns the notices except those that a ring was opened, without advice.
func (b *harness) reported() (lines []string) {
	for _, n := range b.notices {
		if n.Kind == notice.RingOpened {
			continue
		}
		text, _, _ := strings.Cut(n.Text, ";")
		if n.Err != nil {
			text += ": " + n.Err.Error()
		}
		lines = append(lines, fmt.Sprintf("%v %s", n.Level, text))
	}
	return lines
}

func TestOperatorsLearnWhatHappens(t *testing.T) {
	const (
		unsaved = "WARN totals were exported before their checkpoint was stored"
		failed  = "ERROR checkpoints can't be stored: disk full"
	)
	disk := errors.New("disk full")
	for name, c := range map[string]struct {
		mode  ringbuf.Mode
		saves bool
		do    func(b *harness)
		want  []string
	}{
		"restart": {do: (*harness).restart, want: []string{"INFO agent restarted"}},
		"ring that has shrunk": {do: func(b *harness) { b.err = ringbuf.ErrShrunk; b.push(1); b.step() }, want: []string{
			"INFO ring file has shrunk, because its agent restarted or the file was truncated",
		}},
		"fault": {do: func(b *harness) { b.err = disk; b.push(1); b.step() }, want: []string{"WARN ring can't be read: ring: disk full"}},
		"other file": {do: func(b *harness) { b.open(ringbuf.Consume) }, want: []string{
			"INFO another file has replaced the ring",
		}},
		"other path after an exit": {do: func(b *harness) {
			b.step(Gone{ID: agentPath, Reader: b.reader})
			b.steps(3)
			b.openOther()
		}, want: []string{"INFO agent restarted with another ring"}},
		"restart after an exit": {do: func(b *harness) {
			b.push(10)
			b.step()
			b.step(Gone{ID: agentPath, Reader: b.reader})
			b.steps(3)
			b.startAgent(64)
			b.push(5)
			b.open(ringbuf.Consume)
		}, want: []string{"INFO agent restarted"}},
		"other consumer": {do: func(b *harness) { b.push(3); b.takeTo(2); b.step() }, want: []string{
			"WARN another process consumes events of this ring, and events that it consumes first are missing from the totals: " +
				"ring: another process consumed events of this ring (read position moved from 0 to 2)",
		}},
		"unknown events": {saves: true, do: func(b *harness) {
			for range 2 {
				for _, kind := range []ringbuf.Type{21, 21, 22, ringbuf.TypeTxBytes} {
					must.OK(b.t, b.writer.Push(ringbuf.Event{Type: kind, Value: 1}))
				}
				b.steps(2)
			}
		}, want: []string{
			`WARN agent reports events that this version doesn't know ("unknown_event_21"), and which may be important, such as a new kind of error`,
			`WARN agent reports events that this version doesn't know ("unknown_event_22"), and which may be important, such as a new kind of error`,
		}},
		"full ring": {do: func(b *harness) { b.push(63); b.step() }, want: []string{
			"WARN ring was full (63 events), so its agent has most likely lost events",
		}},
		"full ring that nobody consumes": {mode: ringbuf.Observe, do: func(b *harness) { b.push(63); b.step() }, want: []string{
			"WARN ring is full (63 events) and no process consumes them, so its agent drops new events",
		}},
		"observer that was lapped": {mode: ringbuf.Observe, do: func(b *harness) {
			b.push(40)
			b.step()
			b.takeTo(40)
			b.pushValues(60, 2) // up to slot 36
			b.takeTo(36)
			b.pushValues(20, 2)
			b.step()
		}, want: []string{
			"WARN events were overwritten or truncated before they could be read and are missing from the totals: " +
				"ring: events were overwritten before they could be observed",
		}},
		"restart while no process ran": {saves: true, do: func(b *harness) {
			b.push(3)
			b.steps(2)
			b.startAgent(64)
			b.start(ringbuf.Consume, true)
		}, want: []string{"INFO agent restarted since the last checkpoint"}},
		"other consumer while no process ran": {saves: true, do: func(b *harness) {
			b.push(3)
			b.steps(2)
			b.push(3)
			b.takeTo(5)
			b.start(ringbuf.Consume, true)
		}, want: []string{"WARN events were consumed since the last checkpoint and may be missing from the totals"}},
		"damaged page": {saves: true, do: func(b *harness) {
			b.stored[checkpoint.PageOf(agentPath)] = []byte("x")
			b.start(ringbuf.Consume, true)
		}, want: []string{"WARN checkpoints can't be used, so the totals of their agents start from zero, and events may be counted twice: " +
			"storage key agents-" + fmt.Sprintf("%02d", checkpoint.PageOf(agentPath)) +
			": invalid checkpoint: invalid character 'x' looking for beginning of value"}},
		"storage that fails at the start": {saves: true, do: func(b *harness) { b.owner.load(nil, disk, b.now); b.step() }, want: []string{
			"WARN checkpoints can't be used, so the totals of their agents start from zero, and events may be counted twice: load all checkpoints: disk full",
		}},
		"other histograms": {saves: true, do: func(b *harness) { b.storeWithOtherHistograms(agentPath); b.start(ringbuf.Consume, true) }, want: []string{
			"WARN checkpoint can't be used, so the agent's totals start from zero: agent /rings/agent: the totals have another histogram configuration",
		}},
		"other histograms than those of a stream that ended": {saves: true, do: func(b *harness) {
			id := agentPath + checkpoint.Separator + "1"
			b.storeWithOtherHistograms(id)
			b.start(ringbuf.Consume, true)
			if slices.Contains(b.owner.pages.IDs(), id) {
				b.t.Error("the checkpoint is kept")
			}
		}, want: []string{
			"WARN the last totals of an agent can't be used, so events are missing from the metrics: agent /rings/agent: the totals have another histogram configuration",
		}},
		"storage that fails": {saves: true, do: func(b *harness) {
			b.hangs = true
			b.push(3)
			b.steps(2)
			b.step(saved{disk})
			b.collect() // although it isn't stored
			b.step(saved{})
		}, want: []string{failed, "INFO checkpoints can be stored again"}},
		"storage that hangs": {saves: true, do: func(b *harness) {
			b.hangs = true
			b.push(3)
			b.steps(8)
			b.collect()
		}, want: []string{"ERROR checkpoint was not stored within 5s", unsaved}},
		"agent that exited": {do: func(b *harness) {
			b.step(Attended{ID: agentPath, Reader: b.reader, Up: UpNo})
			b.collect()
			b.steps(61)
		}, want: []string{"INFO agent exited and wrote nothing for 1m0s, so it is no longer reported"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newHarness(t)
			b.start(c.mode, c.saves)
			b.step()
			c.do(b)
			if d := cmp.Diff(c.want, b.reported()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			for _, n := range b.notices {
				if strings.Contains(n.Text, "ring") && n.Path == "" {
					t.Errorf("%q names no ring", n.Text)
				}
			}
		})
	}
}

// storeWithOtherHistograms stores totals that were counted with another configuration.
func (b *harness) storeWithOtherHistograms(id string) {
	pages, _ := checkpoint.NewPages(nil)
	pages.Put(&checkpoint.Entry{ID: id, Totals: new(tally.State)})
	page := checkpoint.PageOf(id)
	for _, op := range pages.Ops() {
		if op.Key == checkpoint.Keys()[page] {
			b.stored[page] = op.Value
		}
	}
}

func TestNoticeOfAFullRingNamesSettings(t *testing.T) {
	for capacity, advice := range map[int]string{
		64:                  "set NIXL_TELEMETRY_BUFFER_SIZE=256 for the agent (now 64) or a shorter NIXL_TELEMETRY_RUN_INTERVAL",
		ringbuf.MaxCapacity: "its buffer has the largest size, so set a shorter NIXL_TELEMETRY_RUN_INTERVAL for the agent",
	} {
		b := newHarnessOf(t, capacity)
		b.start(ringbuf.Consume, false)
		want := "ring was full (63 events), so its agent has most likely lost events; " + advice
		if d := cmp.Diff(want, b.owner.fullText(b.agent(), 63)); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
}
