// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package recording_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/internal/must"
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
	rec, err := recording.NewRecorder(recording.RecorderConfig{Dir: dir, Out: &out})
	if err == nil {
		err = rec.Close()
	}
	must.OK(tb, err)
	return out.Bytes()
}

const (
	headSize = 8 // of a file and of a frame
	sizeAt   = 0
	sumAt    = 4
)

// frames returns the uncompressed frames of a recording.
func frames(tb testing.TB, file []byte) (all [][]byte) {
	tb.Helper()
	dec, err := zstd.NewReader(nil)
	must.OK(tb, err)
	defer dec.Close()
	for at := headSize; at < len(file); {
		size := int(binary.LittleEndian.Uint32(file[at:]))
		raw, err := dec.DecodeAll(file[at+headSize:at+headSize+size], nil)
		must.OK(tb, err)
		all = append(all, raw)
		at += headSize + size
	}
	return all
}

// wrap returns a file with one frame, so that a fuzzer gets past the checksum.
func wrap(raw []byte) []byte {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err)
	}
	defer enc.Close()
	data := enc.EncodeAll(raw, nil)
	head := make([]byte, headSize)
	binary.LittleEndian.PutUint32(head[sizeAt:], uint32(len(data)))
	binary.LittleEndian.PutUint32(head[sumAt:], crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return append(append([]byte("NIXLREC\x01"), head...), data...)
}

// checkRecords reads arbitrary data and checks the properties of records that a player
// relies on.
func checkRecords(t *testing.T, file []byte) {
	r, err := recording.NewReader(bytes.NewReader(file))
	if err != nil {
		if !errors.Is(err, recording.ErrFormat) && !errors.Is(err, recording.ErrVersion) {
			t.Fatal(err)
		}
		return
	}
	defer r.Close()
	rings := 0
	var last time.Duration
	for {
		var rec recording.Record
		err := r.Next(&rec)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, recording.ErrTruncated) && !errors.Is(err, recording.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if rec.At < last {
			t.Fatalf("time decreased from %v to %v", last, rec.At)
		}
		last = rec.At
		if rec.Op == recording.OpOpen && rec.Ring == rings {
			rings++
		}
		switch rec.Op {
		case recording.OpOpen, recording.OpEvents, recording.OpMissed, recording.OpEnded:
			if rec.Ring >= rings || !filepath.IsLocal(rec.Name) {
				t.Fatalf("%+v with %d rings", rec, rings)
			}
		}
		for i := range rec.Events {
			if rec.Events[i].Named != rec.Layout.Named() {
				t.Fatalf("%+v in layout %v", rec.Events[i], rec.Layout)
			}
		}
	}
}

func FuzzFile(f *testing.F) {
	file := realRecording(f)
	f.Add(file)
	f.Add(file[:len(file)/2])
	f.Add([]byte("NIXLREC\x02"))
	f.Fuzz(checkRecords)
}

func FuzzRecords(f *testing.F) {
	for _, raw := range frames(f, realRecording(f)) {
		f.Add(raw)
	}
	f.Add(bytes.Join(frames(f, realRecording(f)), nil))
	f.Fuzz(func(t *testing.T, raw []byte) { checkRecords(t, wrap(raw)) })
}
