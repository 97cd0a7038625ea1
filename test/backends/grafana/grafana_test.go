// Package grafana checks the dashboards against the types of Grafana's own kit
// for dashboards: Grafana itself can't be had as a Go module.
package grafana

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func TestDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins() // the kinds of panels
	paths, err := filepath.Glob("../../../dashboards/grafana/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d dashboards, error %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var d dashboard.Dashboard
			if err := d.UnmarshalJSONStrict(text); err != nil {
				t.Fatal(err)
			}
			if err := d.Validate(); err != nil {
				t.Error(err)
			}
			noOverlap(t, d.Panels)
		})
	}
}

// noOverlap fails the test where two panels share a place or an id.
func noOverlap(t *testing.T, panels []dashboard.PanelOrRowPanel) {
	t.Helper()
	places, ids := make(map[[2]uint32]uint32), make(map[uint32]bool)
	place := func(id uint32, at dashboard.GridPos) {
		if ids[id] {
			t.Errorf("two panels %d", id)
		}
		ids[id] = true
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other, taken := places[[2]uint32{x, y}]; taken || x >= 24 {
					t.Fatalf("panel %d is where panel %d is, or outside", id, other)
				}
				places[[2]uint32{x, y}] = id
			}
		}
	}
	for _, p := range panels {
		switch {
		case p.RowPanel != nil:
			place(p.RowPanel.Id, *p.RowPanel.GridPos)
		case p.Panel != nil:
			place(*p.Panel.Id, *p.Panel.GridPos)
		}
	}
}
