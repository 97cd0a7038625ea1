package sessionplot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

const upstream = "../../../../bridge/session/testdata/upstream/session_2025-11-17_00-04-29.csv"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a session with all that plots have to cope with: failures, more
// operations than are told apart, names of any length, and times from nothing
// to minutes.
func made(t *testing.T) string {
	t.Helper()
	now := time.Unix(1_736_951_425, 0)
	s, err := session.Open(t.TempDir(), session.WithName("made"), session.WithClock(func() time.Time { return now }))
	must(t, err)
	for i := range 4000 {
		now = now.Add(time.Duration(1+i%7) * time.Millisecond)
		p := session.Packet{
			ID: int64(i), Layer: i % 48, Device: []string{"cpu", "igpu", "npu"}[i%5%3],
			Operation: fmt.Sprintf("operation_%d", i%23),
			Duration:  time.Duration(math.Pow(10, float64(i%60)/10)) * time.Microsecond,
		}
		if i%23 == 3 {
			p.Operation = "an_operation_with_a_name_that_takes_far_too_much_room"
		}
		if i%97 == 0 {
			p.Err = errors.New("out of memory")
		}
		must(t, s.Record(p))
	}
	must(t, s.Close())
	return s.CSVPath()
}

func TestWrite(t *testing.T) {
	keep := os.Getenv("PLOTS") // a directory to look at them
	for name, path := range map[string]string{"real": upstream, "made": made(t)} {
		for _, format := range Formats() {
			t.Run(name+" "+format, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "new", "plots")
				if keep != "" {
					dir = filepath.Join(keep, name)
				}
				files, err := Write(path, dir, format)
				must(t, err)
				var names []string
				for _, file := range files {
					names = append(names, filepath.Base(file))
					b, err := os.ReadFile(file)
					must(t, err)
					check(t, file, b)
				}
				want := []string{"operations." + format, "layers." + format, "timeline." + format, "distribution." + format}
				if diff := cmp.Diff(want, names); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// check looks whether an image is one, and shows more than its background.
func check(t *testing.T, file string, b []byte) {
	t.Helper()
	if strings.HasSuffix(file, ".svg") {
		shapes := 0
		for d := xml.NewDecoder(bytes.NewReader(b)); ; {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if start, ok := token.(xml.StartElement); ok && start.Name.Local == "path" {
				shapes++
			}
		}
		if shapes < 10 {
			t.Errorf("%s has %d shapes", file, shapes)
		}
		return
	}
	img, err := png.Decode(bytes.NewReader(b))
	must(t, err)
	colors := map[any]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			colors[img.At(x, y)] = true
		}
	}
	if img.Bounds().Dx() < 1000 || len(colors) < 10 {
		t.Errorf("%s is %v with %d colors", file, img.Bounds(), len(colors))
	}
}

// TestSums compares what is drawn with the report on the same session.
func TestSums(t *testing.T) {
	for _, path := range []string{upstream, made(t)} {
		d, err := read(path)
		must(t, err)
		report, err := session.Analyze(path)
		must(t, err)
		var inOperations, inWorkers, inLayers, reported time.Duration
		for _, o := range d.byTime(maxOperations) {
			inOperations += o.time()
		}
		for _, w := range report.Workers {
			inWorkers += w.Time
		}
		operations := d.layerOperations()
		for layer := range d.layers {
			for _, name := range operations {
				if name == others {
					inLayers += d.rest(layer, operations)
				} else {
					inLayers += d.layers[layer][name]
				}
			}
		}
		for _, l := range report.Layers {
			reported += l.Time
		}
		packets := 0
		for _, steps := range d.steps {
			for _, n := range steps {
				packets += n
			}
		}
		if inOperations != inWorkers || inLayers != reported ||
			int64(d.packets) != report.Summary.TotalPackets || int64(d.failed) != report.Summary.FailedPackets || packets != d.packets-d.failed {
			t.Errorf("%s: operations %v of %v, layers %v of %v, %d packets of which %d failed, %d in the distribution",
				path, inOperations, inWorkers, inLayers, reported, d.packets, d.failed, packets)
		}
		lanes, err := d.timeline(path)
		must(t, err)
		marked, busy := 0, 0.0
		for _, l := range lanes {
			for i := range l.busy {
				busy += l.busy[i] * float64(d.piece())
				if l.failed[i] {
					marked++
				}
			}
		}
		if (marked > 0) != (d.failed > 0) || busy < 0.99*float64(inWorkers) {
			t.Errorf("%s: %d failures marked of %d, %v busy of %v", path, marked, d.failed, time.Duration(busy), inWorkers)
		}
	}
}

func TestSteps(t *testing.T) {
	for d, want := range map[time.Duration]int{
		0: 0, time.Microsecond: 0, 10 * time.Microsecond: 8, time.Millisecond: 24, time.Second: 48,
		999 * time.Microsecond: 23, 24 * time.Hour: decades*stepsPerDecade - 1,
	} {
		if got := step(d); got != want {
			t.Errorf("%v is in step %d, not %d", d, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, tt := range []struct {
		e         evenTicks
		low, high float64
		want      string
	}{
		{evenTicks{}, 0, 10, "0 2 4 6 8 10"},
		{evenTicks{}, 0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{evenTicks{}, -0.6, 5.5, "0 1 2 3 4 5"},
		{evenTicks{whole: true}, 0, 1, "0 1"},
		{evenTicks{whole: true, most: 20}, -0.4, 3.4, "0 1 2 3"},
		{evenTicks{}, 0, 123456, "0 20000 40000 60000 80000 100000 120000"},
		{evenTicks{}, 3, 3, ""},
	} {
		var got []string
		for _, tick := range tt.e.Ticks(tt.low, tt.high) {
			got = append(got, tick.Label)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%+v: %s", tt, s)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.csv")
	header, _, _ := strings.Cut(string(must1(os.ReadFile(upstream))), "\n")
	must(t, os.WriteFile(empty, []byte(header+"\n"), 0o600))
	if _, err := Write(empty, t.TempDir(), "png"); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
	if _, err := Write(upstream, t.TempDir(), "gif"); err == nil || !strings.Contains(err.Error(), "png or svg") {
		t.Error(err)
	}
	failed := filepath.Join(t.TempDir(), "failed.csv") // only failures, and no time at all
	must(t, os.WriteFile(failed, []byte(header+"\n1.5,cpu,w,0.000,1,-1,op,False,0.00,x\n"), 0o600))
	if files, err := Write(failed, t.TempDir(), "png"); err != nil || len(files) != 4 {
		t.Error(files, err)
	}
	if _, err := Write(empty+"x", t.TempDir(), "png"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
