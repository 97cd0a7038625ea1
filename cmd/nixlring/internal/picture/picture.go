// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture draws a session of split inference as one HTML page, which needs neither
// scripts nor the network.
package picture

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/web"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

//go:embed page.html
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"ms":    func(v float64) string { return units.Duration(v / 1e3) },
	"took":  func(d time.Duration) string { return units.Duration(d.Seconds()) },
	"share": share, "percent": percent, "list": newGroups, "text": units.Printable, "succeeded": func(g session.Group) int64 { return g.Count - g.FailedCount },
}).Parse(source))

// Sizes of the drawings, in their own units.
const (
	timelineWidth, timelineHeight = 1400, 320
	layersHeight                  = 160
	colors                        = 6  // of the page; devices beyond them share one
	shownWorkers                  = 12 // the others are folded
)

// palette has the page's names of colors, by decreasing time of the device.
var palette = [colors]string{"series5", "series2", "series4", "series3", "series6", "series1"}

// drawing is what the template shows.
type drawing struct {
	Style              template.CSS
	Report             *session.Report
	Name               string
	Summary            *session.Summary // that of the session itself, if there is one
	Devices            []device
	Failed             string // the path of failed packets
	Width, Height      int
	LayersHeight       int
	LongestLayer       float64 // in ms
	Durations, Times   []tick
	Layers             []column
	LayerTicks         []tick
	Workers, Remaining []session.Group
	Busy               float64 // time of all packets, in ms
}

// groups are the rows of a table.
type groups struct {
	Groups []session.Group
	Busy   float64
}

func newGroups(all []session.Group, busy float64) groups { return groups{all, busy} }

// device is a device's color and its packets in the timeline.
type device struct {
	Name, Color, Path string
	session.Group
}

// tick is a label of an axis.
type tick struct {
	At   int
	Text string
}

// column is a layer's time by device.
type column struct {
	Title string
	Parts []part
}

type part struct {
	Color               string
	X, Y, Width, Height string
}

// Write draws the session of a report.
func Write(w io.Writer, r *session.Report) error {
	d, err := draw(r)
	if err != nil {
		return err
	}
	return page.Execute(w, d)
}

func draw(r *session.Report) (*drawing, error) {
	d := &drawing{Style: template.CSS(web.Style()), Report: r, Name: r.Summary.SessionName, Summary: r.Written, Width: timelineWidth, Height: timelineHeight, LayersHeight: layersHeight} //nolint:gosec // the style is this program's
	if d.Summary == nil {
		d.Summary = &r.Summary
	}
	for i, g := range r.Devices {
		color := "faint"
		if i < colors {
			color = palette[i]
		}
		d.Devices = append(d.Devices, device{Name: g.Name, Color: color, Group: g})
		d.Busy += g.TotalTimeMS
	}
	d.Workers = r.Workers[:min(len(r.Workers), shownWorkers)]
	d.Remaining = r.Workers[len(d.Workers):]
	if r.Summary.TotalPackets == 0 {
		return d, nil
	}
	return d, d.rows(r)
}

// dot is a place in the timeline. Packets at the same place are drawn once, so that the size of the page
// doesn't depend on their number.
type dot struct{ x, y int }

// rows draws what the report doesn't have: the timeline, and the time of layers by device.
func (d *drawing) rows(r *session.Report) error {
	index := make(map[string]int)
	for i, dev := range d.Devices {
		index[dev.Name] = i
	}
	of := func(row *session.Row) int {
		if i, ok := index[row.Device]; ok {
			return i
		}
		return len(d.Devices) - 1 // beyond the report's devices, which the last one combines
	}
	shortest, longest := time.Duration(math.MaxInt64), time.Duration(0)
	layers := make(map[int][]time.Duration)
	for _, g := range r.Layers {
		if n, err := strconv.Atoi(g.Name); err == nil {
			layers[n] = make([]time.Duration, len(d.Devices))
		}
	}
	err := session.Rows(r.Path, func(row *session.Row) {
		took := clamp(row.Duration)
		shortest, longest = min(shortest, took), max(longest, took)
		if times := layers[row.Layer]; times != nil && row.Success {
			times[of(row)] += row.Duration
		}
	})
	if err != nil {
		return err
	}
	low, high := math.Floor(math.Log10(shortest.Seconds())), math.Ceil(math.Log10(longest.Seconds()))
	high = max(high, low+1)
	start, length := r.Summary.StartTime, max(r.Summary.TotalTimeS, 1e-6)
	dots, failed := make([]map[dot]bool, len(d.Devices)), make(map[dot]bool)
	for i := range dots {
		dots[i] = make(map[dot]bool)
	}
	err = session.Rows(r.Path, func(row *session.Row) {
		at := dot{
			x: int(math.Round(timelineWidth * bounded((float64(row.Time.UnixMicro())/1e6-start)/length))),
			y: int(math.Round(timelineHeight * (1 - bounded((math.Log10(clamp(row.Duration).Seconds())-low)/(high-low))))),
		}
		if row.Success {
			dots[of(row)][at] = true
		} else {
			failed[at] = true
		}
	})
	if err != nil {
		return err
	}
	for i := range d.Devices {
		d.Devices[i].Path = path(dots[i], "M%d %dh0")
	}
	d.Failed = path(failed, "M%d %dm-4-4l8 8m0-8l-8 8")
	for decade := low; decade <= high; decade++ {
		d.Durations = append(d.Durations, tick{int(timelineHeight * (high - decade) / (high - low)), units.Bare(units.Duration(math.Pow(10, decade)))})
	}
	d.Times = []tick{{0, "0"}}
	for i := 1; i <= 5; i++ {
		d.Times = append(d.Times, tick{timelineWidth * i / 5, units.Duration(length * float64(i) / 5)})
	}
	d.columns(r, layers)
	return nil
}

// clamp returns a duration that has a logarithm. The CSV has microseconds.
func clamp(took time.Duration) time.Duration { return max(took, time.Microsecond) }

// bounded returns v within 0 and 1. A session that is still running has packets that the report lacks.
func bounded(v float64) float64 { return min(max(v, 0), 1) }

// path returns the path of an SVG that draws a form at each dot.
func path(dots map[dot]bool, form string) string {
	var b strings.Builder
	for _, at := range slices.SortedFunc(maps.Keys(dots), func(a, b dot) int { return (a.x-b.x)*(timelineHeight+1) + a.y - b.y }) {
		fmt.Fprintf(&b, form, at.x, at.y)
	}
	return b.String()
}

// columns draws the time of each layer.
func (d *drawing) columns(r *session.Report, layers map[int][]time.Duration) {
	for _, g := range r.Layers {
		d.LongestLayer = max(d.LongestLayer, g.TotalTimeMS)
	}
	width := float64(timelineWidth) / float64(max(len(r.Layers), 1))
	every := (len(r.Layers)-1)/16 + 1
	for i, g := range r.Layers {
		c := column{Title: fmt.Sprintf("layer %s: %s in %d packets, %s on average, %d failed",
			g.Name, units.Duration(g.TotalTimeMS/1e3), g.Count-g.FailedCount, units.Duration(g.AvgTimeMS/1e3), g.FailedCount)}
		n, _ := strconv.Atoi(g.Name)
		bottom := float64(layersHeight)
		for j, took := range layers[n] {
			height := layersHeight * took.Seconds() * 1e3 / max(d.LongestLayer, 1e-9)
			bottom -= height
			if height > 0 {
				c.Parts = append(c.Parts, part{d.Devices[j].Color, decimal((float64(i) + 0.1) * width), decimal(bottom), decimal(0.8 * width), decimal(height)})
			}
		}
		d.Layers = append(d.Layers, c)
		if i%every == 0 {
			d.LayerTicks = append(d.LayerTicks, tick{int((float64(i) + 0.5) * width), g.Name})
		}
	}
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func percent(share float64) string { return fmt.Sprintf("%.1f%%", 100*share) }

func share(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return part / of
}
