// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"math"
	"strings"

	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
	"github.com/nixl-otel/nixl-otel/test/internal/otlpfile"
)

// totals returns the sums in the ring's unit, by the agents' paths.
func totals(sums *otlpfile.Sums) map[string]ledger.Series {
	byPath, _ := sums.Totals() // contradictions reports the error
	totals := make(map[string]ledger.Series, len(byPath))
	for path, series := range byPath {
		totals[path] = make(ledger.Series, len(series))
		for name, v := range series {
			add(totals[path], name, v)
		}
	}
	return totals
}

func add(to ledger.Series, name string, v otlpfile.Value) {
	if v.Buckets == nil {
		to[name] = uint64(v.Int)
		return
	}
	unit := 1.0
	if metric, _, _ := strings.Cut(name, "{"); strings.HasSuffix(metric, ".duration") {
		unit = 1e6 // to the ring's unit, in which values are integers
	}
	to[name+ledger.Count], to[name+ledger.Sum] = v.Count, uint64(math.Round(v.Sum*unit))
	for i, n := range v.Buckets {
		to[name+ledger.Bucket(i)] = n
	}
}

// contradictions returns descriptions of inconsistent points. Unlike other agents, those of these
// tests never start a new stream, so a second start time is one.
func contradictions(sums *otlpfile.Sums) (wrong []string) {
	resources, err := sums.Resources()
	if err != nil {
		wrong = strings.Split(err.Error(), "\n")
	}
	for _, r := range resources {
		if len(r.Starts) > 1 {
			wrong = append(wrong, fmt.Sprintf("%v starts at %v", r.Attributes, r.Starts))
		}
	}
	return wrong
}
