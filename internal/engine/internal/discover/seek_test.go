// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

func TestSearchesFollowEachOtherWhileAProcessIsSought(t *testing.T) {
	for name, tc := range map[string]struct {
		until time.Duration // when the process is found
		want  int           // searches in 24 seconds, one every 5 seconds otherwise
	}{
		"known at once":     {0, 5},
		"found by the next": {time.Second, 6},
		"found after 3 s":   {3 * time.Second, 8},
		"never":             {time.Hour, 25},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newFixture(t)
				x.ring("ring", ringbuf.V4, 8)
				began, searches := time.Now(), 0
				at := Location{
					Path: x.dir, Holder: drain.Holder{Place: x.dir, Shared: true},
					OpenDir: func(name string) (*files.Dir, error) { return files.OpenDir(x.dir, name) },
					Identify: func(a drain.Agent, _ files.ID, _ time.Time) attributed {
						if a.Attribution = drain.Known; time.Since(began) < tc.until {
							a.Attribution = drain.Sought
						}
						return attributed{Agent: a}
					},
				}
				reporter := notice.New(x.report, time.Now)
				w := NewWatcher(Config{
					Finder: Finder{Source: "processes", Name: "/proc", Interval: DefaultInterval, Find: func(time.Time) (map[string]Location, error) {
						searches++
						return map[string]Location{"": at}, nil
					}},
					Include: []string{"*"}, Now: time.Now,
				}, x.owner.send, reporter)
				w.Start()
				time.Sleep(24*time.Second + time.Millisecond) // synctest
				synctest.Wait()
				if searches != tc.want {
					t.Errorf("%d searches, want %d", searches, tc.want)
				}
				x.owner.stop()
				must.OK(t, w.Stop(t.Context()))
				reporter.Close()
			})
		})
	}
}
