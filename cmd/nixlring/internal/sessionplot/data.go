package sessionplot

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/session"
)

// Bounds of what is told apart; the rest is drawn as one.
const (
	maxOperations = 14
	maxStacked    = 7
	maxDevices    = 6
	others        = "others"
)

// The timeline is cut into pieces of equal length, the distribution into
// steps of equal factor.
const (
	pieces         = 1200
	stepsPerDecade = 8
	leastLog       = -6 // 1 µs, which is the CSV's resolution
	decades        = 9  // up to 1,000 s
)

// operation is what the packets of one operation amount to.
type operation struct {
	name     string
	byDevice map[string]time.Duration // successes
	packets  int
	failed   int
}

func (o *operation) time() (sum time.Duration) {
	for _, d := range o.byDevice {
		sum += d
	}
	return sum
}

// data is a session, added up for drawing.
type data struct {
	start, end time.Time
	packets    int
	failed     int
	operations map[string]*operation
	layers     map[int]map[string]time.Duration // by operation; successes
	steps      map[string][]int                 // packets by device and duration; successes
}

// lane is one operation on the timeline.
type lane struct {
	name   string
	busy   []float64 // share of each piece, summed over devices
	device []map[string]time.Duration
	failed []bool
}

func read(path string) (*data, error) {
	d := &data{
		operations: make(map[string]*operation), layers: make(map[int]map[string]time.Duration),
		steps: make(map[string][]int),
	}
	err := session.ReadRows(path, d.add)
	return d, err
}

func (d *data) add(row session.Row) {
	if began := row.Time.Add(-row.Duration); d.packets == 0 || began.Before(d.start) {
		d.start = began
	}
	if d.packets == 0 || row.Time.After(d.end) {
		d.end = row.Time
	}
	d.packets++
	o := find(d.operations, row.Operation, session.DefaultOperationLimit, func() *operation {
		return &operation{name: row.Operation, byDevice: make(map[string]time.Duration)}
	})
	o.packets++
	if !row.Success {
		d.failed++
		o.failed++
		return
	}
	o.byDevice[known(o.byDevice, row.Device, maxDevices)] += row.Duration
	if row.Layer >= 0 {
		const maxLayers = 1 << 12
		if l := d.layers[row.Layer]; l == nil && len(d.layers) < maxLayers {
			d.layers[row.Layer] = make(map[string]time.Duration)
		}
		if l := d.layers[row.Layer]; l != nil {
			l[o.name] += row.Duration
		}
	}
	device := known(d.steps, row.Device, maxDevices)
	if d.steps[device] == nil {
		d.steps[device] = make([]int, decades*stepsPerDecade)
	}
	d.steps[device][step(row.Duration)]++
}

// find is the value of a key, or of all the keys that are too many.
func find[V any](m map[string]*V, key string, limit int, add func() *V) *V {
	key = known(m, key, limit)
	if m[key] == nil {
		m[key] = add()
	}
	return m[key]
}

// known is a key that the map has or may have, else others.
func known[V any](m map[string]V, key string, limit int) string {
	if _, ok := m[key]; ok || len(m) < limit {
		return key
	}
	return others
}

// step is where a duration falls in the distribution.
func step(d time.Duration) int {
	if d <= time.Microsecond {
		return 0
	}
	// A duration on the edge belongs to the step that it begins.
	const rounding = 1e-9
	n := int(math.Floor((math.Log10(d.Seconds())-leastLog)*stepsPerDecade + rounding))
	return min(max(n, 0), decades*stepsPerDecade-1)
}

// byTime are the operations by their time, the longest first. Those past the
// limit are one, the last.
func (d *data) byTime(limit int) []*operation {
	list := slices.SortedFunc(maps.Values(d.operations), func(a, b *operation) int {
		return cmp.Or(cmp.Compare(b.time(), a.time()), cmp.Compare(b.packets, a.packets), strings.Compare(a.name, b.name))
	})
	if len(list) <= limit {
		return list
	}
	rest := &operation{name: others, byDevice: make(map[string]time.Duration)}
	for _, o := range list[limit-1:] {
		rest.packets += o.packets
		rest.failed += o.failed
		for device, t := range o.byDevice {
			rest.byDevice[device] += t
		}
	}
	return append(list[:limit-1:limit-1], rest)
}

// devices are the devices that did something, in a fixed order.
func (d *data) devices() []string { return slices.Sorted(maps.Keys(d.steps)) }

// timeline reads the session again and cuts it into pieces.
func (d *data) timeline(path string) ([]*lane, error) {
	var lanes []*lane
	byName := make(map[string]*lane)
	for _, o := range d.byTime(maxOperations) {
		l := &lane{name: o.name, busy: make([]float64, pieces), device: make([]map[string]time.Duration, pieces), failed: make([]bool, pieces)}
		lanes = append(lanes, l)
		byName[o.name] = l
	}
	err := session.ReadRows(path, func(row session.Row) {
		l := byName[row.Operation]
		if l == nil {
			l = byName[others]
		}
		if l != nil { // a session that is being written has more by now
			d.place(l, row)
		}
	})
	return lanes, err
}

// place marks the pieces that a packet covers.
func (d *data) place(l *lane, row session.Row) {
	piece := d.piece()
	from, to := row.Time.Add(-row.Duration).Sub(d.start), row.Time.Sub(d.start)
	first := min(max(int(from/piece), 0), pieces-1)
	last := min(max(int(to/piece), first), pieces-1)
	for i := first; i <= last; i++ {
		inside := min(to, piece*time.Duration(i+1)) - max(from, piece*time.Duration(i))
		l.busy[i] += max(0, float64(inside)/float64(piece))
		if l.device[i] == nil {
			l.device[i] = make(map[string]time.Duration)
		}
		// Also a packet of no time at all is to be seen.
		l.device[i][known(l.device[i], row.Device, maxDevices)] += max(inside, 1)
	}
	l.failed[last] = l.failed[last] || !row.Success
}

// piece is the length of one piece of the timeline.
func (d *data) piece() time.Duration { return max(d.end.Sub(d.start)/pieces+1, time.Microsecond) }
