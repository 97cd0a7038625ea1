package tally

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/nixl-otel/nixl-otel/semconv"
)

// HistogramKind is how a distribution is kept.
type HistogramKind string

// The kinds of histograms.
const (
	Explicit    HistogramKind = "explicit"
	Exponential HistogramKind = "exponential"
	NoHistogram HistogramKind = "none" // only its count, sum, and last value
)

// HistogramConfig says how one kind of distribution is kept. The zero value
// asks for the defaults of the catalogue.
type HistogramConfig struct {
	Kind    HistogramKind // Explicit where empty
	Bounds  []float64     // explicit: upper bounds in the metric's unit; the catalogue's where empty
	MaxSize int           // exponential: buckets at most, 2 to 4096; 160 where 0
}

// Config says how the totals of agents are kept.
type Config struct {
	Duration HistogramConfig // bounds in seconds
	Size     HistogramConfig // bounds in bytes
	// MaxNames is how many event names beyond NIXL's own are kept apart for
	// each agent. 200 where 0.
	MaxNames int
}

// Defaults of a [Config].
const (
	DefaultMaxNames = 200
	DefaultMaxSize  = 160 // the SDK's
)

// Shape is what the totals of all agents have in common: a checked [Config].
type Shape struct {
	duration, size *scale
	maxNames       int
}

// NewShape checks a configuration. The error names the field.
func NewShape(c Config) (*Shape, error) {
	if c.MaxNames == 0 {
		c.MaxNames = DefaultMaxNames
	}
	duration, errDuration := newScale(c.Duration, microsPerSecond, semconv.DurationBounds())
	size, errSize := newScale(c.Size, 1, semconv.SizeBounds())
	var errNames error
	if c.MaxNames < 0 {
		errNames = fmt.Errorf("max names is %d: it must not be negative", c.MaxNames)
	}
	err := errors.Join(wrap("duration", errDuration), wrap("size", errSize), errNames)
	if err != nil {
		return nil, err
	}
	return &Shape{duration: duration, size: size, maxNames: c.MaxNames}, nil
}

func wrap(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

const microsPerSecond = 1e6

// maxMaxSize bounds what every agent's exponential histograms take up.
const maxMaxSize = 4096

// scale is what the histograms of one metric have in common.
type scale struct {
	kind    HistogramKind
	perUnit float64 // how many of the ring's units make one of the metric's
	bounds  []float64
	limits  []uint64  // the largest value of the ring, per bucket, that is within the bound
	start   [65]uint8 // the first bucket that a value of so many bits can fall into
	maxSize int
	hash    uint64 // of the above, to tell whether totals are of the same shape
}

// maxBounds keeps bucket numbers within scale.start. The Collector's own
// limits are far below.
const maxBounds = math.MaxUint8

func newScale(c HistogramConfig, perUnit float64, bounds []float64) (*scale, error) {
	s := &scale{kind: c.Kind, perUnit: perUnit, bounds: c.Bounds, maxSize: c.MaxSize}
	if s.kind == "" {
		s.kind = Explicit
	}
	if len(s.bounds) == 0 {
		s.bounds = bounds
	}
	if s.maxSize == 0 {
		s.maxSize = DefaultMaxSize
	}
	switch {
	case s.kind != Explicit && s.kind != Exponential && s.kind != NoHistogram:
		return nil, fmt.Errorf("kind is %q: it is one of explicit, exponential, none", s.kind)
	case len(s.bounds) > maxBounds:
		return nil, fmt.Errorf("bounds are %d: %d at most", len(s.bounds), maxBounds)
	case s.maxSize < 2 || s.maxSize > maxMaxSize:
		return nil, fmt.Errorf("max_size is %d: it must be from 2 to %d", s.maxSize, maxMaxSize)
	}
	if err := s.setLimits(); err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	fmt.Fprint(hash, s.kind, s.perUnit, s.bounds, s.maxSize)
	s.hash = hash.Sum64()
	return s, nil
}

func (s *scale) setLimits() error {
	for i, b := range s.bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || b < 0 || i > 0 && b <= s.bounds[i-1] {
			return fmt.Errorf("bounds must be finite, not negative, and increasing: bound %d is %v", i+1, b)
		}
		s.limits = append(s.limits, s.limit(b))
	}
	for bits := range s.start {
		var lowest uint64 // of that many bits
		if bits > 0 {
			lowest = 1 << (bits - 1)
		}
		for int(s.start[bits]) < len(s.limits) && lowest > s.limits[s.start[bits]] {
			s.start[bits]++
		}
	}
	return nil
}

// limit is the largest integer that is within a bound once it is written in
// the metric's unit. The product alone may be one off, as 0.0025 s and its
// like have no exact binary form.
func (s *scale) limit(bound float64) uint64 {
	product := bound * s.perUnit
	if product >= math.MaxUint64 {
		return math.MaxUint64
	}
	limit := uint64(product)
	for limit > 0 && s.value(limit) > bound {
		limit--
	}
	for limit < math.MaxUint64 && s.value(limit+1) <= bound && limit+1 <= maxExact {
		limit++
	}
	return limit
}

// maxExact is where float64 begins to skip integers, so that the search for a
// limit would go on and on.
const maxExact = 1 << 53

// value is v in the metric's unit.
func (s *scale) value(v uint64) float64 { return float64(v) / s.perUnit }
