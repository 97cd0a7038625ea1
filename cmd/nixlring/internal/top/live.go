// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/internal/live"
)

// LiveConfig configures a [Live].
type LiveConfig struct {
	Socket    string
	Include   []string // valid doublestar patterns
	Recursive bool     // patterns also apply in subdirectories
	Proc      string   // mount point of procfs; defaults to /proc
}

// Live takes samples of what a receiver counts, through its socket. It isn't safe for
// concurrent use, except for [Live.Slowest].
type Live struct {
	cfg       LiveConfig
	patterns  patterns
	client    *live.Client // nil while there is no connection
	host      string
	pods      pods
	transfers *transfers
}

// NewLive returns a source of samples. It connects in [Live.Start].
func NewLive(cfg LiveConfig) *Live {
	return &Live{
		cfg: cfg, patterns: Patterns(cfg.Include, cfg.Recursive), pods: pods{proc: cmp.Or(cfg.Proc, "/proc")}, transfers: newTransfers(time.Now),
	}
}

// Name implements [Source].
func (s *Live) Name() string { return s.host }

// Start implements [Source].
func (s *Live) Start() error {
	f, err := s.next(live.Request{NoTotals: true, Transfers: everyTransfer})
	if err != nil {
		return err
	}
	s.host = f.Host
	return nil
}

// Close implements [Source].
func (s *Live) Close() error {
	if s.client == nil {
		return nil
	}
	return s.client.Close()
}

// everyTransfer selects the slowest of all transfers.
var everyTransfer = &live.Conditions{MinThroughput: math.MaxUint64, Most: slowestKept}

// next returns the next frame. After an error, the next call connects again.
func (s *Live) next(r live.Request) (*live.Frame, error) {
	ctx := context.Background() // the client limits the time
	if s.client == nil {
		client, err := live.Dial(ctx, s.cfg.Socket)
		if err != nil {
			return nil, patherr.Explain(patherr.Socket, s.cfg.Socket, err)
		}
		s.client = client
	}
	f, err := s.client.Next(ctx, r)
	if err != nil {
		err = errors.Join(err, s.client.Close())
		s.client = nil
		return nil, err
	}
	for i := range f.Agents {
		s.pods.name(&f.Agents[i], time.Now())
	}
	return f, nil
}

// Frame returns the next frame, with the agents that the patterns include. It is for programs
// that need no samples.
func (s *Live) Frame(r live.Request) (*live.Frame, error) {
	f, err := s.next(r)
	if err != nil {
		return nil, err
	}
	f.Agents = slices.DeleteFunc(f.Agents, func(a live.Agent) bool { return !s.patterns.match(a.Name) })
	return f, nil
}

// Sample implements [Source].
func (s *Live) Sample() Sample {
	f, err := s.next(live.Request{Transfers: everyTransfer})
	if err != nil {
		return Sample{At: time.Now(), Err: err}
	}
	sample := Sample{At: f.Time}
	seen := make(map[string]bool, len(f.Agents))
	if f.Problem != "" {
		sample.Err = errors.New(f.Problem)
	}
	for i := range f.Agents {
		a := &f.Agents[i]
		if a.Totals == nil { // it was removed since
			continue
		}
		if !s.patterns.match(a.Name) {
			sample.Excluded++
			continue
		}
		r := read(a)
		if f.Collector.Consumes && !a.Store {
			r.Lock = Lock{PID: f.Collector.PID, Name: f.Collector.Program}
		}
		sample.Agents = append(sample.Agents, r)
		s.transfers.addAll(a)
		seen[a.Path] = true
	}
	s.transfers.keep(seen)
	if len(sample.Agents) > 0 {
		sample.Excluded = 0
	}
	slices.SortFunc(sample.Agents, func(a, b Reading) int { return cmp.Compare(a.Path, b.Path) })
	return sample
}

// Slowest implements [Source].
func (s *Live) Slowest(path string) []Transfer { return s.transfers.slowest(path) }
