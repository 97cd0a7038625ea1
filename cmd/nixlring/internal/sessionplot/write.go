package sessionplot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats are the formats that plots are written in.
func Formats() []string { return []string{"png", "svg"} }

// ErrEmpty is a session without a packet: there is nothing to draw.
var ErrEmpty = errors.New("session without packets")

const dpi = 144

// Write draws the session whose CSV is at path into a directory, which is made
// if need be, and returns the files that it wrote: operations, layers, timeline
// and distribution. Files of these names are written over.
func Write(path, dir, format string) (files []string, err error) {
	d, err := read(path)
	if err != nil {
		return nil, err
	}
	if d.packets == 0 {
		return nil, ErrEmpty
	}
	lanes, err := d.timeline(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	figures := []*figure{d.operationsFigure(), d.layersFigure(), d.timelineFigure(lanes), d.distributionFigure()}
	for i, name := range []string{"operations", "layers", "timeline", "distribution"} {
		f := figures[i]
		f.title += " · " + short(strings.TrimSuffix(filepath.Base(path), ".csv"))
		file := filepath.Join(dir, name+"."+format)
		if err := write(file, f, format); err != nil {
			return files, fmt.Errorf("plot: %w", err)
		}
		files = append(files, file)
	}
	return files, nil
}

func write(file string, f *figure, format string) error {
	var image bytes.Buffer
	if err := f.render(&image, format); err != nil {
		return err
	}
	return os.WriteFile(file, image.Bytes(), 0o644)
}

func (f *figure) render(w io.Writer, format string) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, f.height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(color.White))}
	case "svg":
		canvas = vgsvg.New(width, f.height)
	default:
		return fmt.Errorf("unknown format %q: it is png or svg", format)
	}
	f.draw(canvas)
	_, err := canvas.WriteTo(w)
	return err
}
