// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/nixl-otel/nixl-otel/semconv"

// part is a part of the catalog: its three parts, and what they share.
type part struct {
	Name       string
	Title      string
	goOnly     bool                // whether only packages in bridge emit it
	Resource   []semconv.Attribute // nil without an entity
	Attributes []semconv.Attribute
	Metrics    []semconv.Metric
	Events     []semconv.Event
}

func parts() []part {
	return []part{
		{
			Name: "nixl", Title: "NIXL agents",
			Resource: semconv.ResourceAttributes(), Attributes: semconv.NIXLAttributes(),
			Metrics: semconv.NIXL(), Events: semconv.NIXLEvents(),
		},
		{Name: "ringkernel", Title: "ring kernels", goOnly: true, Attributes: semconv.RingKernelAttributes(), Metrics: semconv.RingKernel()},
		{
			Name: "splitinfer", Title: "split-inference sessions", goOnly: true,
			Attributes: semconv.SplitInferenceAttributes(), Metrics: semconv.SplitInference(),
		},
		{Name: "shared", Title: "several parts", Attributes: semconv.SharedAttributes()},
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
		add(p.Resource)
		add(p.Attributes)
	}
	return all
}
