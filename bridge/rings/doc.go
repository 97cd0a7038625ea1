// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rings exports the metrics of NIXL agents through a Go program's own
// OpenTelemetry pipeline, without a Collector. The agents can be written in any
// language.
//
// A [Producer] watches the directories in which agents create their rings, drains
// the rings, and passes the totals to a reader of the SDK at each collection:
//
//	producer, err := rings.Open(rings.Config{Directories: []string{"/run/nixl"}})
//	...
//	provider := metric.NewMeterProvider(metric.WithReader(producer.Reader(exporter)))
//	...
//	provider.Shutdown(ctx) // drains the rings and exports once more
//	producer.Close()       // can also be called before Shutdown
//
// The metrics are those of the Collector receiver nixl_shm: the same names, kinds,
// units, attributes, buckets and start times.
//
// A Producer also reads the stores of NIXL's prometheus_mp exporter in these directories,
// at each collection. A store contains totals, so its agents have no nixl.events and no
// nixl.telemetry.ring metrics, and [Config.Sinks] get no events of them. The histograms of
// stores have the bounds in the store. The section "Stores of prometheus_mp" of the
// receiver's README.md describes permissions and limits, which also apply here.
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
// The names of rings are unique within a directory. With several directories, two agents
// can have the same name, so each data point also has the agent's service.instance.id: a
// UUID derived from host name, directory and agent name, as the Collector reports it. In a
// container, set host.name in OTEL_RESOURCE_ATTRIBUTES to the node's name to get the same
// UUID as a Collector on the node. Data points of stores always have it, because each process
// of an agent has a store. A backend that joins on the resource's service.name and
// service.instance.id finds the program, not the agent.
//
// # Limits
//
// The agents' totals are finished data, so views and the cardinality limit of a
// MeterProvider don't apply to them; the fields of [Config] do. [Producer.Reader] applies
// the exporter's temporality. A reader that takes the Producer with metric.WithProducer
// gets cumulative totals, because the SDK doesn't tell a Producer the temporality of its
// reader.
//
// By default, a Producer consumes events: it removes them from the rings as soon as it
// has counted them, because a ring only holds the events of a short time. There must
// be no other consumer, such as a Collector or NIXL's telemetry_reader. Consuming
// requires write permission: the program must run as the agents' user or as root.
// With [ringbuf.Observe], events stay in the rings.
//
// If the program is killed, the events that it has counted since the last successful
// export are lost: those of up to 60 seconds, with a periodic reader's defaults. The
// events that are still in the rings aren't. The totals of the next run start at 0,
// with a new start time. With cumulative temporality, a failed export loses nothing while
// the program runs. To lose nothing in a crash either, use the Collector with storage.
// If the clock is set back, the totals begin at 0, too; one collection has the last points
// before and the first ones after.
//
// Problems are reported like this: those of rings and directories are logged at most
// once per minute and retried, and [Producer.Err] returns the current one, for health
// checks. Failed collections and sinks go to OpenTelemetry's error handler. Rings on
// network file systems and FUSE are refused, because reading a page could block
// forever. A directory that hangs only delays the discovery of its own rings.
//
// bridge/README.md in the repository shows how to install this package.
package rings
