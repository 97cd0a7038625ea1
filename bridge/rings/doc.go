// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rings exports the metrics of NIXL agents through a Go program's own
// OpenTelemetry pipeline, without a Collector. The agents can be written in any
// language.
//
// A [Producer] watches the directories in which agents create their rings, drains
// the rings, and returns the totals at each collection of an SDK reader:
//
//	producer, err := rings.New(rings.WithDirectories("/run/nixl"))
//	...
//	err = producer.Start()
//	...
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	...
//	provider.Shutdown(ctx) // drains the rings and exports once more
//	producer.Close()       // can also be called before Shutdown
//
// The metrics are those of the Collector receiver nixl_shm: the same names, kinds,
// units, attributes, buckets and start times.
//
// # Differences from the Collector
//
// The Collector reports each agent with its own resource. A MeterProvider has only
// one resource, which describes this program, so the agents' names are attributes of
// the data points:
//
//	                      Collector             this package
//	service.name          resource: nixl        resource: the program's
//	service.instance.id   resource: the agent's resource: the program's; data points: the agent's, see below
//	host.name             resource              resource, if detected
//	nixl.agent.name       resource              data points
//
// Names are unique within a directory. With several directories, two agents can
// have the same name, so each data point also has the agent's service.instance.id:
// a UUID derived from host name, directory and agent name, as the Collector
// reports it. A backend that joins on the resource's service.name and
// service.instance.id finds the program, not the agent.
//
// # Limits
//
// Views don't apply to the metrics of a Producer. The temporality is always
// cumulative, regardless of the reader. The SDK's cardinality limit doesn't apply, but
// [WithMaxRings] and [WithMaxEventNames] do. The totals restart at 0 when the program
// restarts.
//
// By default, a Producer consumes events: it removes them from the rings. There must
// be no other consumer, such as a Collector or NIXL's telemetry_reader. Consuming
// requires write permission: the program must run as the agents' user or as root.
// With [WithMode] and [ringbuf.Observe], events stay in the rings.
//
// A problem with a directory or a ring is logged at most once per minute, and the
// operation is retried. [Producer.Err] returns current problems, for health checks.
// Rings on network file systems and FUSE are refused, because reading a page could
// block forever. A directory that hangs only delays the discovery of its own rings.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/rings
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package rings
