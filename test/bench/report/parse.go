// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results are the values that benchmarks have printed, by name without the number
// of processors, and by unit.
type results map[key][]float64

type key struct{ bench, unit string }

var processors = regexp.MustCompile(`-\d+$`)

// parse reads the output of `go test -bench`. A benchmark may occur several times.
func parse(text string) results {
	found := make(results)
	for l := range strings.Lines(text) {
		fields := strings.Fields(l)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(processors.ReplaceAllString(fields[0], ""), "Benchmark")
		for i := 2; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			k := key{name, fields[i+1]}
			found[k] = append(found[k], v)
		}
	}
	return found
}

// median returns the median of a value over all runs. It is not ok if there is
// none.
func (r results) median(bench, unit string) (float64, bool) {
	values := slices.Clone(r[key{bench, unit}])
	if len(values) == 0 {
		return 0, false
	}
	slices.Sort(values)
	mid := len(values) / 2
	if len(values)%2 == 0 {
		return (values[mid-1] + values[mid]) / 2, true
	}
	return values[mid], true
}
