// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recorder_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recorder"
	"github.com/nixl-otel/nixl-otel/internal/must"
	"github.com/nixl-otel/nixl-otel/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
)

// realRecording returns a recording of rings written by NIXL.
func realRecording(tb testing.TB) []byte {
	tb.Helper()
	dir := tb.TempDir()
	for _, name := range []string{"0.6.0/mixed_cap16", "v1.1.0/unknown_enum_cap8", "v1.4.0/alltypes_cap64"} {
		ringtest.CopyTo(tb, ringtest.Find(tb, name), filepath.Join(dir, filepath.Base(name)))
	}
	var out bytes.Buffer
	rec, err := recorder.NewRecorder(recorder.RecorderConfig{Dir: dir, Out: &out})
	if err == nil {
		err = rec.Close()
	}
	must.OK(tb, err)
	return out.Bytes()
}

func FuzzFile(f *testing.F) {
	file := realRecording(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Fuzz(func(t *testing.T, file []byte) {
		_, err := records(t, file)
		for _, known := range []error{io.EOF, recording.ErrFormat, recording.ErrVersion, recording.ErrTruncated, recording.ErrDamaged} {
			if errors.Is(err, known) {
				return
			}
		}
		t.Fatal(err)
	})
}
