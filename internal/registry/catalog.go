// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/nixl-otel/nixl-otel/semconv"

// stability is that of everything in the catalog until the first release.
const stability = "alpha"

// part is a part of the catalog: its three parts, and what they share.
type part struct {
	name       string
	title      string
	goOnly     bool                // whether only packages in bridge emit it
	resource   []semconv.Attribute // nil without an entity
	attributes []semconv.Attribute
	metrics    []semconv.Metric
	events     []semconv.Event
}

func parts() []part {
	return []part{
		{
			name: "nixl", title: "NIXL agents",
			resource: semconv.ResourceAttributes(), attributes: semconv.NIXLAttributes(),
			metrics: semconv.NIXL(), events: semconv.NIXLEvents(),
		},
		{name: "ringkernel", title: "ring kernels", goOnly: true, attributes: semconv.RingKernelAttributes(), metrics: semconv.RingKernel()},
		{
			name: "splitinfer", title: "split-inference sessions", goOnly: true,
			attributes: semconv.SplitInferenceAttributes(), metrics: semconv.SplitInference(),
		},
		{name: "shared", title: "several parts", attributes: semconv.SharedAttributes()},
	}
}

// byKey returns every attribute of the catalog.
func byKey() map[string]semconv.Attribute {
	all := make(map[string]semconv.Attribute)
	add := func(list []semconv.Attribute) {
		for _, a := range list {
			all[a.Key] = a
		}
	}
	for _, p := range parts() {
		add(p.resource)
		add(p.attributes)
	}
	return all
}
