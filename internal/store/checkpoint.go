// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/checkpoint"
	"github.com/nixl-otel/nixl-otel/internal/tally"
)

// checkpointVersion changes whenever the stored form does.
const checkpointVersion = 1

// stored is the stored form of an agent.
type stored struct {
	Version int
	Start   int64 // of the totals, in nanoseconds since the epoch
	Bounds  []float64
	Base    tally.Values
	Earlier bool
	Counted []string                // stores that are in the base
	Running map[string]tally.Values // other stores, and their values
}

// agentID identifies an agent. The ID of an agent with a ring is a path, so the two
// differ.
func agentID(scope, host, agent string) string {
	return fmt.Sprintf("store %q %q %q", scope, host, agent)
}

// encode returns the stored form of an agent. A store that joined the base before
// since isn't named in it: its values are so old that it isn't counted again.
func (a *agent) encode(since time.Time) []byte {
	s := stored{
		Version: checkpointVersion, Start: a.start.UnixNano(), Bounds: a.bounds, Base: a.base, Earlier: a.earlier,
		Running: make(map[string]tally.Values, len(a.processes)),
	}
	for file, at := range a.counted {
		if !at.Before(since) {
			s.Counted = append(s.Counted, file)
		}
	}
	slices.Sort(s.Counted)
	for _, p := range a.processes {
		v := p.values
		if !slices.Equal(p.bounds, a.bounds) {
			v.Duration, v.Post = tally.Distribution{}, tally.Distribution{}
		}
		s.Running[p.file] = v
	}
	b, _ := json.Marshal(s) // all numbers are finite
	return b
}

// decode is the reverse of encode. The bytes may be anything.
func decode(b []byte) (s stored, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%w: %w", checkpoint.ErrInvalid, err)
	}
	if s.Version != checkpointVersion {
		return s, fmt.Errorf("%w: its format is version %d, this release reads version %d only", checkpoint.ErrInvalid, s.Version, checkpointVersion)
	}
	ok := s.fits(&s.Base)
	for file, v := range s.Running {
		_, named := parseName(file)
		ok = ok && named && s.fits(&v)
	}
	if !ok {
		return s, fmt.Errorf("%w: it contradicts itself", checkpoint.ErrInvalid)
	}
	return s, nil
}

// fits reports whether the histograms of some values have the bounds that are
// stored with them, or none.
func (s *stored) fits(v *tally.Values) bool {
	fits := func(d tally.Distribution) bool { return len(d.Counts) == 0 || len(d.Counts) == len(s.Bounds)+1 }
	return len(s.Bounds) <= maxBounds && fits(v.Duration) && fits(v.Post)
}

// restore gives an agent the totals of its checkpoint.
func (a *agent) restore(s *stored, now time.Time) {
	a.start, a.base, a.earlier, a.bounds = time.Unix(0, s.Start), s.Base, s.Earlier, s.Bounds
	for _, file := range s.Counted {
		a.counted[file] = now
	}
	for file, v := range s.Running {
		name, _ := parseName(file)
		a.processes = append(a.processes, &process{
			header: header{fileName: name, bounds: s.Bounds}, file: file, values: v,
		})
	}
	slices.SortFunc(a.processes, byAge)
}
