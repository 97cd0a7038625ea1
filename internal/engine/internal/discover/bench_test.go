// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// BenchmarkIdleRings measures the periodic work for a directory of 1,000 idle agents.
// The reference makes only the necessary system calls: one lstat and two leases per
// ring.
func BenchmarkIdleRings(b *testing.B) {
	const agents = 1000
	dir := b.TempDir()
	var names []string
	for i := range agents {
		w, err := ringbuf.Create(filepath.Join(dir, fmt.Sprint("agent-", i)), ringbuf.V4, 64)
		must.OK(b, err)
		defer w.Close()
		names = append(names, filepath.Base(w.Path()))
	}
	var rings []*ringbuf.Reader
	found, err := Configured([]string{dir}, "", DefaultIdentifyBy).Find(time.Now())
	must.OK(b, err)
	var d *Directory
	d = newDirectory(Config{Include: []string{"*"}, Now: time.Now}, found[dir], func(m drain.Message) {
		if m, ok := m.(drain.Offer); ok {
			rings = append(rings, m.Reader)
			d.Answer(m.Agent, m.Reader, nil)
		}
	}, notice.New(func(notice.Notice) {}, time.Now))
	d.refresh()
	b.Run("refresh", func(b *testing.B) {
		for b.Loop() {
			d.refresh()
		}
	})
	b.Run("reference", func(b *testing.B) {
		for b.Loop() {
			f, err := files.OpenDir(dir, ".")
			must.OK(b, err)
			for i, r := range rings {
				_, errInfo := f.Lstat(names[i])
				if _, err := r.Attended(); err != nil || errInfo != nil {
					b.Fatal(err, errInfo)
				}
			}
			_ = f.Close()
		}
	})
	for _, r := range rings {
		_ = r.Close()
	}
}
