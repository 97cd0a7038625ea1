// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package nixlshmreceiver

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/nixl-otel/nixl-otel/internal/flight"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/receiver/nixlshmreceiver/internal/metadata"
)

// newFlightRecorder returns a recorder that is started after the engine.
func (r *ringReceiver) newFlightRecorder(host, version string) *flight.Recorder {
	r.telemetry.startRecordings()
	return flight.New(flight.Config{
		Limits: r.cfg.FlightRecorder.limits(), Directory: r.cfg.FlightRecorder.Directory,
		Tool: metadata.Type.String() + " " + version, Host: host, Compress: compress, Now: r.now,
		Report: func(n notice.Notice) { r.rings.Report(n) }, Wrote: r.telemetry.recorded,
	})
}

func compress(out io.Writer) (recording.Compressor, error) {
	return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(recording.Window))
}

// lastRecording limits how long a recording may take at shutdown.
const lastRecording = 2 * time.Second

func (r *ringReceiver) stopFlightRecorder(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lastRecording)
	defer cancel()
	return r.flight.Stop(ctx)
}

// startRecordings makes the series start at 0, because rate() misses their first value.
func (t *telemetry) startRecordings() {
	for _, kind := range []recording.CauseKind{recording.SlowTransfer, recording.Failure, recording.FullRing} {
		t.countRecording(kind, 0)
	}
	for _, reason := range []string{reasonDirectory, reasonSize, reasonWrite} {
		t.countFailure(reason, 0)
	}
}

// The reasons why a recording can't be written.
const (
	reasonDirectory = "directory"
	reasonSize      = "size"
	reasonWrite     = "write"
)

// recorded counts a recording, or that it couldn't be written.
func (t *telemetry) recorded(kind recording.CauseKind, err error) {
	switch {
	case err == nil:
		t.countRecording(kind, 1)
	case errors.Is(err, flight.ErrDirectory):
		t.countFailure(reasonDirectory, 1)
	case errors.Is(err, flight.ErrTooLarge):
		t.countFailure(reasonSize, 1)
	default:
		t.countFailure(reasonWrite, 1)
	}
}

func (t *telemetry) countRecording(kind recording.CauseKind, n int64) {
	t.ReceiverNixlShmRecordings.Add(context.Background(), n, metric.WithAttributes(attribute.String("cause", string(kind))))
}

func (t *telemetry) countFailure(reason string, n int64) {
	t.ReceiverNixlShmRecordingFailures.Add(context.Background(), n, metric.WithAttributes(attribute.String("reason", reason)))
}
