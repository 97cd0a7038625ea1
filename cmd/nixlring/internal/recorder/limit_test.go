// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A long recording of agents with random names must stay readable.
func TestRecordingHasNoMoreAgentsThanItsReaderAccepts(t *testing.T) {
	const more = 3
	var file bytes.Buffer
	z, err := Compress(&file)
	must.OK(t, err)
	r := &Recorder{cfg: RecorderConfig{Now: time.Now}, ids: make(map[string]int), failed: make(chan struct{})}
	r.out, err = recording.NewWriter(z, recording.Header{Start: time.Now()})
	must.OK(t, err)
	for i := range recording.MaxAgents + more {
		a := engine.Agent{Name: strconv.Itoa(i), Path: "/run/nixl/" + strconv.Itoa(i)}
		r.opened(a, ringbuf.V4, 64)
		r.missed(a, errors.New("gap"))
		r.closed(a, errors.New("exited"))
	}
	must.OK(t, r.out.Close())
	if s := r.Stats(); s.Rings != recording.MaxAgents || s.Omitted != more {
		t.Errorf("%+v", s)
	}
	in, err := Read(&file)
	must.OK(t, err)
	defer in.Close()
	var rec recording.Record
	for err == nil {
		err = in.Next(&rec)
	}
	if !errors.Is(err, io.EOF) || rec.Agent != recording.MaxAgents-1 {
		t.Errorf("agent %d, %v", rec.Agent, err)
	}
}
