package sessionplot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The colors: those of devices, and of stacked operations. They can be told
// apart also by those who don't see all colors, and in gray.
var (
	palette = []color.NRGBA{
		{0x33, 0x6a, 0xa8, 0xff},
		{0xe6, 0x84, 0x2a, 0xff},
		{0x4c, 0x9f, 0x70, 0xff},
		{0x8e, 0x63, 0xae, 0xff},
		{0xc9, 0xa9, 0x2e, 0xff},
		{0x3f, 0xa7, 0xb3, 0xff},
		{0x9a, 0x9a, 0x9a, 0xff},
	}
	failureColor = color.NRGBA{0xc6, 0x28, 0x28, 0xff}
	textColor    = color.NRGBA{0x2b, 0x2b, 0x2b, 0xff}
	faintColor   = color.NRGBA{0x6e, 0x6e, 0x6e, 0xff}
	gridColor    = color.NRGBA{0xdd, 0xdd, 0xdd, 0xff}
)

// deviceColor gives a device the same color in all plots.
func deviceColor(devices []string, device string) color.NRGBA {
	i := slices.Index(devices, device)
	if i < 0 || device == others {
		i = len(palette) - 1
	}
	return palette[i%len(palette)]
}

func faded(c color.NRGBA, share float64) color.NRGBA {
	c.A = uint8(math.Round(255 * min(max(share, 0), 1)))
	return c
}

func sans(points vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: points}
}

// newPlot is an empty plot in the style of all.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(11), sans(10)
		a.Label.TextStyle.Color, a.Tick.Label.Color = textColor, textColor
		a.Color, a.Tick.Color = faintColor, faintColor
		a.Padding = 6
	}
	return p
}

// rects draws rectangles of data.
type rects struct {
	list []rect
}

type rect struct {
	x0, y0, x1, y1 float64
	color          color.Color
	least          vg.Length // width to be seen at all
}

func (r *rects) add(x0, y0, x1, y1 float64, c color.Color) {
	r.list = append(r.list, rect{x0, y0, x1, y1, c, 0})
}

// Plot implements [plot.Plotter].
func (r *rects) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, o := range r.list {
		x0, x1 := x(o.x0), x(o.x1)
		if x1-x0 < o.least {
			x1 = x0 + o.least
		}
		c.FillPolygon(o.color, []vg.Point{{X: x0, Y: y(o.y0)}, {X: x1, Y: y(o.y0)}, {X: x1, Y: y(o.y1)}, {X: x0, Y: y(o.y1)}})
	}
}

// DataRange implements [plot.DataRanger].
func (r *rects) DataRange() (xmin, xmax, ymin, ymax float64) {
	xmin, ymin, xmax, ymax = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	for _, o := range r.list {
		xmin, xmax = min(xmin, o.x0), max(xmax, o.x1)
		ymin, ymax = min(ymin, o.y0), max(ymax, o.y1)
	}
	return xmin, xmax, ymin, ymax
}

// texts draws text beside points of data.
type texts struct {
	list  []textAt
	style draw.TextStyle
	right vg.Length // of the point
}

type textAt struct {
	x, y float64
	text string
}

// Plot implements [plot.Plotter].
func (t *texts) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, o := range t.list {
		c.FillText(t.style, vg.Point{X: x(o.x) + t.right, Y: y(o.y)}, o.text)
	}
}

// middle aligns small letters, which have less below the line than above it.
const middle draw.YAlignment = -0.38

// labelStyle is that of text beside a bar.
func labelStyle(p *plot.Plot) draw.TextStyle {
	s := p.X.Tick.Label
	s.Font, s.Color = sans(9), faintColor
	s.XAlign, s.YAlign = draw.XLeft, middle
	return s
}

// duration is a time in a unit that suits it.
func duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	default:
		return fmt.Sprintf("%.3g µs", s*1e6)
	}
}
