// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// what is what a series says about an agent.
type what int

// Gauges, and then counters. Those of a direction are followed by the same of the other direction.
const (
	up what = iota
	capacity
	fill
	memory
	gauges // their number

	bytesOf what = iota - 1
	_
	transfersOf
	_
	speedsOf // the sum of the speeds of all transfers
	_
	speedCountOf
	_
	took
	post
	dropped
	saturations
	torn
	foreign
	restarts
	totals // the number of gauges and counters
	failed // by type
	times  // buckets
	sizes  // likewise
)

// metric is a metric of the catalog, or a part of a histogram.
type metric struct {
	what
	name   string // without unit and suffix
	unit   string // suffix of the name, which a backend may leave out
	part   string // of a histogram with buckets; empty for others
	native string // function that returns the part of a histogram without buckets; whole for all of it
	always bool   // an agent that transfers has it
	rare   bool   // most agents never count anything in it

	pattern *regexp.Regexp // its names in backends: with and without the suffixes that they add, and with dots or underscores
}

// whole stands for no function.
const whole = "whole"

var metrics = withPatterns(append([]metric{
	{what: up, name: "nixl.agent.up", always: true},
	{what: capacity, name: "nixl.telemetry.ring.capacity"},
	{what: fill, name: "nixl.telemetry.ring.utilization", unit: "_ratio"},
	{what: memory, name: "nixl.memory.usage", unit: "_bytes"},
	{what: bytesOf, name: "nixl.transfer.io", unit: "_bytes", always: true},
	{what: transfersOf, name: "nixl.transfer.requests", always: true},
	{what: failed, name: "nixl.errors", always: true, rare: true},
	{what: dropped, name: "nixl.telemetry.events.dropped", rare: true},
	{what: saturations, name: "nixl.telemetry.ring.saturations", rare: true},
	{what: torn, name: "nixl.telemetry.ring.torn_groups", rare: true},
	{what: foreign, name: "nixl.telemetry.ring.foreign_reads", rare: true},
	{what: restarts, name: "nixl.telemetry.ring.restarts", rare: true},
}, histograms()...))

var agentUp, ringCapacity = metrics[0], metrics[1]

func withPatterns(list []metric) []metric {
	for i := range list {
		m, total := &list[i], "(_total)?"
		if m.part+m.native != "" || m.what < gauges {
			total = ""
		}
		m.pattern = regexp.MustCompile("^" + strings.ReplaceAll(m.name, ".", "[._]") + "(" + m.unit + ")?" + total + m.part + "$")
	}
	return list
}

// histograms returns the parts of histograms in both forms.
func histograms() (list []metric) {
	for _, m := range []metric{
		{what: took, name: "nixl.transfer.duration", unit: "_seconds", part: "_sum", always: true},
		{what: post, name: "nixl.transfer.post_duration", unit: "_seconds", part: "_sum", always: true},
		{what: speedsOf, name: "nixl.transfer.throughput", unit: "_bytes_per_second", part: "_sum", always: true},
		{what: speedCountOf, name: "nixl.transfer.throughput", unit: "_bytes_per_second", part: "_count"},
		{what: times, name: "nixl.transfer.duration", unit: "_seconds", part: "_bucket"},
		{what: sizes, name: "nixl.transfer.size", unit: "_bytes", part: "_bucket"},
	} {
		native := m
		if native.part, native.native = "", "histogram"+m.part; m.what >= times {
			native.native = whole
		}
		list = append(list, m, native)
	}
	return list
}

// names are names of series.
type names []string

// of returns the names of a metric.
func (n names) of(m metric) (list []string) {
	for _, name := range n {
		if m.pattern.MatchString(name) {
			list = append(list, name)
		}
	}
	return list
}

// missing says which series aren't there. Agents that never transferred have some less.
func (n names) missing() []string {
	var list []string
	for i, m := range metrics {
		if found := len(n.of(m)) > 0 || m.part != "" && len(n.of(metrics[i+1])) > 0; m.always && m.native == "" && !found {
			list = append(list, strings.ReplaceAll(m.name, ".", "_")+m.unit)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{"the backend has no series " + strings.Join(list, ", ") + ": either no agent has completed a transfer, or findings that need these series are missing"}
}

// word matches the name of a metric in an expression, and others.
var word = regexp.MustCompile(`\bnixl_\w+(:\w+)*`)

// translate replaces the metrics in an expression of the rules, which has the names of Prometheus, with those that the backend has.
func (n names) translate(expr string) (string, error) {
	var err error
	translated := word.ReplaceAllStringFunc(expr, func(name string) string {
		i := slices.IndexFunc(metrics, func(m metric) bool { return len(names{name}.of(m)) > 0 })
		if i < 0 {
			return name
		}
		found := n.of(metrics[i])
		if len(found) == 0 || slices.Contains(found, name) {
			return name
		}
		if strings.Contains(found[0], ".") {
			err = fmt.Errorf("its expression can't use names with dots, such as %s", found[0])
		}
		return found[0]
	})
	return translated, err
}
