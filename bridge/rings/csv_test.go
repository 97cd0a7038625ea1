// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package rings_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/bridge/rings"
	"github.com/nixl-otel/nixl-otel/bridge/sink"
	"github.com/nixl-otel/nixl-otel/internal/ringtest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// The rows equal those of NIXL's CSV exporter: the category is an integer, and the time
// is the event's time if the ring has timestamps.
func TestCSVHasTheEventsOfARealAgent(t *testing.T) {
	for _, mode := range []ringbuf.Mode{ringbuf.Consume, ringbuf.Observe} {
		for _, name := range []string{
			"real-agent/0.6.0_posix_25xfer", "real-agent/v1.1.0_posix_25xfer", "real-agent/v1.4.0_posix_200xfer",
		} {
			t.Run(name+" "+mode.String(), func(t *testing.T) {
				c := ringtest.Find(t, name)
				path := filepath.Join(t.TempDir(), "events.csv")
				t.Setenv("NIXL_TELEMETRY_CSV_FILE", path)
				file, err := sink.OpenCSVFromEnv()
				if err != nil {
					t.Fatal(err)
				}
				stopped := rings.WithClock(func() time.Time { return start }) // for the times of rows; Close still drains
				p := newWorld(t, rings.WithDirectories(filepath.Dir(ringtest.Copy(t, c))), rings.WithMode(mode), rings.WithSinks(file), stopped)
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				if err := file.Close(); err != nil {
					t.Fatal(err)
				}
				want := []string{"timestamp_us,category,event_name,value"}
				for _, e := range c.Pending {
					s := wanted(c, e)
					want = append(want, fmt.Sprintf("%d,%d,%s,%d", s.Time.UnixMicro(), s.Category, s.Name, s.Value))
				}
				got, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, strings.Split(strings.TrimSpace(string(got)), "\n")); d != "" {
					t.Errorf("rows (-want +got):\n%s", d)
				}
			})
		}
	}
}
