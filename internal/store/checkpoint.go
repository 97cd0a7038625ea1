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

// checkpointVersion must change whenever stored changes.
const checkpointVersion = 1

// stored is the checkpoint of an agent.
type stored struct {
	Version int
	Start   int64 // of the totals, in nanoseconds since the epoch
	Bounds  []float64
	Base    tally.Values
	Earlier bool                    // there are exited processes
	Counted []string                // stores that are in the base
	Running map[string]tally.Values // values of the other stores
}

// agentID returns the ID of an agent. It differs from the ID of any agent with a ring.
func agentID(scope, host, agent string) string {
	return fmt.Sprintf("store %q %q %q", scope, host, agent)
}

// encode returns the checkpoint of an agent. It omits the names of stores that were
// added to the base before since: these stores are stale, so they aren't counted again.
func (a *agent) encode(since time.Time) []byte {
	s := stored{
		Version: checkpointVersion, Start: a.start.UnixNano(), Bounds: a.bounds, Base: a.base, Earlier: a.hasBase,
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
	b, _ := json.Marshal(s) // can't fail: all numbers are finite
	return b
}

// decode is the reverse of encode. It accepts arbitrary bytes.
func decode(b []byte) (s stored, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("%w: %w", checkpoint.ErrInvalid, err)
	}
	if s.Version != checkpointVersion {
		return s, fmt.Errorf("%w: format version is %d, this release reads only version %d", checkpoint.ErrInvalid, s.Version, checkpointVersion)
	}
	ok := s.fits(&s.Base)
	for file, v := range s.Running {
		_, named := parseName(file)
		ok = ok && named && s.fits(&v)
	}
	if !ok {
		return s, fmt.Errorf("%w: values are inconsistent", checkpoint.ErrInvalid)
	}
	return s, nil
}

// fits reports whether each histogram in v is empty or matches the stored bounds.
func (s *stored) fits(v *tally.Values) bool {
	fits := func(d tally.Distribution) bool { return len(d.Counts) == 0 || len(d.Counts) == len(s.Bounds)+1 }
	return len(s.Bounds) <= maxBounds && fits(v.Duration) && fits(v.Post)
}

// restore sets the totals of an agent from its checkpoint.
func (a *agent) restore(s *stored, now time.Time) {
	a.start, a.base, a.hasBase, a.bounds = time.Unix(0, s.Start), s.Base, s.Earlier, s.Bounds
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
