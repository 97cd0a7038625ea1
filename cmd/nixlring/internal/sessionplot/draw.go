package sessionplot

import (
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const barHeight = 0.68 // of a row

// names are the tick labels of rows, from the top down.
func names(list []string) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for i, name := range list {
		ticks = append(ticks, plot.Tick{Value: row(i, len(list)), Label: short(name)})
	}
	return ticks
}

// row is where row i of n is: the first is the topmost.
func row(i, n int) float64 { return float64(n - 1 - i) }

// short keeps a name from taking the whole plot.
func short(name string) string {
	const most = 32
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// deviceLegend says which color is which device.
func (d *data) deviceLegend() (list []entry) {
	for _, device := range d.devices() {
		list = append(list, entry{name: short(device), color: deviceColor(d.devices(), device)})
	}
	return list
}

// operationsFigure is the time of each operation, by device.
func (d *data) operationsFigure() *figure {
	list := d.byTime(maxOperations)
	u := unitFor(list[0].time())
	p := newPlot("total time of successful packets ("+u.name+")", "")
	bars := &rects{}
	labels := &texts{style: labelStyle(p), right: 4}
	var ticks []string
	for i, o := range list {
		y, at := row(i, len(list)), 0.0
		for _, device := range d.devices() {
			t := u.of(o.byDevice[device])
			bars.add(at, y-barHeight/2, at+t, y+barHeight/2, deviceColor(d.devices(), device))
			at += t
		}
		labels.list = append(labels.list, textAt{at, y, o.label()})
		ticks = append(ticks, o.name)
	}
	p.Add(verticalGrid(), bars, labels)
	p.Y.Tick.Marker = names(ticks)
	p.X.Tick.Marker = evenTicks{}
	p.Y.Min, p.Y.Max = -0.6, float64(len(list))-0.4
	p.X.Min, p.X.Max = 0, max(p.X.Max*1.45, 1e-3) // room for the labels
	return &figure{title: "Time per operation", legend: d.deviceLegend(), plot: p, height: rowsHeight(len(list))}
}

// rowsHeight is the height of a figure with a number of rows.
func rowsHeight(rows int) vg.Length { return vg.Length(rows)*0.85*vg.Centimeter + 4*vg.Centimeter }

// label is what stands beside an operation's bar.
func (o *operation) label() string {
	done := o.packets - o.failed
	text := duration(o.time())
	if done > 0 {
		text += fmt.Sprintf("  (%d × %s)", done, duration(o.time()/time.Duration(done)))
	}
	if o.failed > 0 {
		text += fmt.Sprintf(", %d failed", o.failed)
	}
	return text
}

// layersFigure is the time of each layer, by operation.
func (d *data) layersFigure() *figure {
	operations := d.layerOperations()
	u := unitFor(d.longestLayer())
	p := newPlot("layer", "total time of successful packets ("+u.name+")")
	bars := &rects{}
	for _, layer := range slices.Sorted(maps.Keys(d.layers)) {
		at := 0.0
		for i, name := range operations {
			t := u.of(d.layers[layer][name])
			if name == others {
				t = u.of(d.rest(layer, operations))
			}
			bars.add(float64(layer)-0.4, at, float64(layer)+0.4, at+t, stackColor(i, name))
			at += t
		}
	}
	p.Add(horizontalGrid(), bars)
	f := &figure{title: "Time per layer", plot: p, height: 12 * vg.Centimeter}
	for i, name := range operations {
		f.legend = append(f.legend, entry{name: short(name), color: stackColor(i, name)})
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = evenTicks{whole: true, most: 20}, evenTicks{}
	if len(d.layers) == 0 {
		p.X.Min, p.X.Max = 0, 1
	}
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.05, 1e-3)
	return f
}

// stackColor is the color of an operation that is stacked on others.
func stackColor(i int, name string) color.Color {
	if name == others {
		return palette[len(palette)-1]
	}
	return palette[i%len(palette)]
}

func (d *data) longestLayer() (longest time.Duration) {
	for _, l := range d.layers {
		var sum time.Duration
		for _, t := range l {
			sum += t
		}
		longest = max(longest, sum)
	}
	return longest
}

// layerOperations are the operations that are told apart in layers, the
// longest first.
func (d *data) layerOperations() (list []string) {
	for _, o := range d.byTime(len(d.operations)) {
		for _, l := range d.layers {
			if l[o.name] > 0 {
				list = append(list, o.name)
				break
			}
		}
	}
	if len(list) > maxStacked {
		list = append(list[:maxStacked-1], others)
	}
	return list
}

// rest is the time of a layer's operations that aren't told apart.
func (d *data) rest(layer int, operations []string) (sum time.Duration) {
	for name, t := range d.layers[layer] {
		if name == others || !slices.Contains(operations, name) {
			sum += t
		}
	}
	return sum
}

// timelineFigure is when each operation ran, and where.
func (d *data) timelineFigure(lanes []*lane) *figure {
	u := unitFor(d.end.Sub(d.start))
	p := newPlot("time since the session's first packet ("+u.name+"); the stronger the color, the busier", "")
	piece := u.of(d.piece())
	bars, marks, lines := &rects{}, &texts{style: failureStyle(p)}, &rects{}
	var ticks []string
	for i, l := range lanes {
		y := row(i, len(lanes))
		lines.add(0, y-barHeight/2, piece*pieces, y+barHeight/2, faded(gridColor, 0.35))
		for n := range l.busy {
			x := float64(n) * piece
			if device := longest(l.device[n]); device != "" {
				// The weakest color is to be seen well, too.
				c := faded(deviceColor(d.devices(), device), 0.4+0.6*min(l.busy[n], 1))
				bars.list = append(bars.list, rect{x, y - barHeight/2, x + piece, y + barHeight/2, c, 0.8})
			}
			if l.failed[n] {
				marks.list = append(marks.list, textAt{x, y, failureMark})
			}
		}
		ticks = append(ticks, l.name)
	}
	p.Add(lines, bars, marks)
	legend := d.deviceLegend()
	if d.failed > 0 {
		legend = append(legend, entry{name: "failed packet", color: failureColor, mark: failureMark})
	}
	p.Y.Tick.Marker = names(ticks)
	p.X.Tick.Marker = evenTicks{most: 10}
	p.Y.Min, p.Y.Max = -0.6, float64(len(lanes))-0.4
	p.X.Min, p.X.Max = 0, piece*pieces
	return &figure{title: "Timeline", legend: legend, plot: p, height: rowsHeight(len(lanes))}
}

const failureMark = "×"

// longest is the device that had most of a piece.
func longest(devices map[string]time.Duration) (device string) {
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		if device == "" || devices[name] > devices[device] {
			device = name
		}
	}
	return device
}

func failureStyle(p *plot.Plot) draw.TextStyle {
	s := labelStyle(p)
	s.Font, s.Color, s.XAlign = sans(13), failureColor, draw.XCenter
	return s
}

// distributionFigure is how many packets took how long, by device.
func (d *data) distributionFigure() *figure {
	p := newPlot("duration of a successful packet", "packets")
	first, last := d.usedSteps()
	bars := &rects{}
	for i := first; i <= last; i++ {
		at := 0.0
		for _, device := range d.devices() {
			n := float64(d.steps[device][i])
			const gap = 0.04
			bars.add(float64(i)+gap, at, float64(i+1)-gap, at+n, deviceColor(d.devices(), device))
			at += n
		}
	}
	p.Add(horizontalGrid(), bars)
	p.X.Tick.Marker, p.Y.Tick.Marker = durationTicks{}, evenTicks{whole: true}
	p.X.Min = math.Floor(float64(first)/stepsPerDecade) * stepsPerDecade
	p.X.Max = math.Ceil(float64(last+1)/stepsPerDecade) * stepsPerDecade
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max*1.05, 1)
	return &figure{title: "Distribution of durations", legend: d.deviceLegend(), plot: p, height: 12 * vg.Centimeter}
}

// usedSteps are the first and the last step with a packet in it.
func (d *data) usedSteps() (first, last int) {
	first = decades*stepsPerDecade - 1
	for _, steps := range d.steps {
		for i, n := range steps {
			if n > 0 {
				first, last = min(first, i), max(last, i)
			}
		}
	}
	return min(first, last), last
}

func verticalGrid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Horizontal.Color = nil
	g.Vertical.Color = gridColor
	return g
}

func horizontalGrid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color = nil
	g.Horizontal.Color = gridColor
	return g
}

// unit is a unit of time.
type unit struct {
	name string
	one  time.Duration
}

func (u unit) of(d time.Duration) float64 { return float64(d) / float64(u.one) }

// unitFor is a unit in which a time has few digits.
func unitFor(d time.Duration) unit {
	switch {
	case d >= time.Second:
		return unit{"s", time.Second}
	case d >= time.Millisecond:
		return unit{"ms", time.Millisecond}
	default:
		return unit{"µs", time.Microsecond}
	}
}
