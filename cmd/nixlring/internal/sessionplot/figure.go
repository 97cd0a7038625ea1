package sessionplot

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figure is a plot with a heading and a legend above it.
type figure struct {
	title  string
	legend []entry
	plot   *plot.Plot
	height vg.Length
}

// entry is a line of a legend.
type entry struct {
	name  string
	color color.Color
	mark  string // in place of a patch of the color
}

const (
	width  = 24 * vg.Centimeter
	margin = 12 // keeps text from the edge
	head   = 24 // height of the title, and of each line of the legend
)

func (f *figure) draw(canvas vg.CanvasSizer) {
	c := draw.Crop(draw.New(canvas), margin, -margin, margin, -margin)
	title := draw.TextStyle{Color: textColor, Font: sans(14), YAlign: draw.YTop, Handler: plot.DefaultTextHandler}
	c.FillText(title, vg.Point{X: c.Min.X, Y: c.Max.Y}, f.title)
	lines := f.drawLegend(c, c.Max.Y-head)
	f.plot.Draw(draw.Crop(c, 0, 0, 0, -head-lines-6))
}

// drawLegend draws a legend from left to right and returns its height.
func (f *figure) drawLegend(c draw.Canvas, top vg.Length) (height vg.Length) {
	if len(f.legend) == 0 {
		return 0
	}
	const (
		patch = 10
		line  = 16
	)
	style := draw.TextStyle{Color: textColor, Font: sans(10), YAlign: middle, Handler: plot.DefaultTextHandler}
	at := vg.Point{X: c.Min.X, Y: top - line/2}
	for _, e := range f.legend {
		w := style.Width(e.name) + patch + 5
		if at.X > c.Min.X && at.X+w > c.Max.X {
			at = vg.Point{X: c.Min.X, Y: at.Y - line}
		}
		if e.mark != "" {
			marks := style
			marks.Color, marks.Font, marks.XAlign = e.color, sans(13), draw.XCenter
			c.FillText(marks, vg.Point{X: at.X + patch/2, Y: at.Y}, e.mark)
		} else {
			c.FillPolygon(e.color, square(at.X, at.Y-patch/2, patch))
		}
		c.FillText(style, vg.Point{X: at.X + patch + 5, Y: at.Y}, e.name)
		at.X += w + 16
	}
	return top - at.Y + line/2
}

func square(x, y, side vg.Length) []vg.Point {
	return []vg.Point{{X: x, Y: y}, {X: x + side, Y: y}, {X: x + side, Y: y + side}, {X: x, Y: y + side}}
}
