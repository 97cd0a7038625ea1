// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package top

import (
	"math"
	"path"
	"slices"
)

// An agent is a straggler if the median throughput of its transfers is far below that
// of the agents in its directory: by more than stragglerSpread standard deviations,
// which are estimated from the median absolute deviation, and by more than half. Its
// mean throughput must also be below half of theirs: an agent that moves as much in
// the same time, in more small transfers, is no straggler. The alert NIXLStraggler
// has the same limits.
const (
	stragglerPeers     = 4      // minimum number of agents in the directory, including this one
	stragglerTransfers = 10     // minimum number of transfers of each agent in the window
	stragglerSpread    = 3      // standard deviations
	stragglerShare     = 0.5    // of the peers' median
	perDeviation       = 1.4826 // standard deviations of a normal distribution in a median absolute deviation
)

// compare compares the throughput of each agent with that of its peers, and marks
// the stragglers.
func compare(rows []Row) {
	peers := make(map[string][]*Row) // by directory
	for i := range rows {
		r := &rows[i]
		r.Peers = math.NaN()
		if r.Window.Transfers >= stragglerTransfers && !math.IsNaN(r.ThroughputP50) {
			dir := path.Dir(r.Path)
			peers[dir] = append(peers[dir], r)
		}
	}
	for _, list := range peers {
		if len(list) < stragglerPeers {
			continue
		}
		speeds := make([]float64, len(list))
		for i, r := range list {
			speeds[i] = r.ThroughputP50
		}
		typical := median(speeds)
		for i := range speeds {
			speeds[i] = math.Abs(speeds[i] - typical)
		}
		limit := min(typical-stragglerSpread*perDeviation*median(speeds), stragglerShare*typical)
		for i, r := range list {
			speeds[i] = r.Window.mean()
		}
		meanLimit := stragglerShare * median(speeds)
		for _, r := range list {
			r.Peers, r.Straggler = typical, r.ThroughputP50 < limit && r.Window.mean() < meanLimit
		}
	}
}

// mean returns the total bytes divided by the total transfer time, in bytes per second.
func (t *Totals) mean() float64 { return float64(t.Out+t.In) / max(1, float64(t.Took)) * 1e6 }

// median returns the median. It sorts values.
func median(values []float64) float64 {
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
