// Package rings lets a Go program ship the telemetry of NIXL agents, whatever
// language they are in, through its own OpenTelemetry pipeline: no Collector is
// needed beside it.
//
// A [Producer] watches directories for the rings that agents write, drains
// them on the agents' run interval, and returns the totals to the SDK's readers
// at each collection:
//
//	producer, err := rings.New(rings.WithDirectories("/run/nixl"))
//	...
//	err = producer.Start()
//	...
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(producer))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	...
//	provider.Shutdown(ctx) // drains and exports once more
//	producer.Close()       // may also come before Shutdown
//
// The metrics are those of the Collector's receiver nixl_shm: same names,
// kinds, units, attributes, buckets and start times.
//
// # What is different from the Collector
//
// The Collector gives every agent a resource of its own. A MeterProvider has
// one, and it describes this program. So the agents' names are attributes of
// the points:
//
//	                      Collector             this package
//	service.name          resource: nixl        resource: the program's
//	service.instance.id   resource: the agent's resource: the program's; points: the agent's, see below
//	host.name             resource              resource, where it is detected
//	nixl.agent.name       resource              points
//
// In one directory names are unique. Where several are watched, two agents may
// have one name, and each point also has service.instance.id: the same UUID,
// made of host name, directory and agent name, that the Collector reports for
// the agent. Backends that join on service.name and service.instance.id find
// the program there, not the agent.
//
// Views don't apply to what a Producer gives, the temporality is cumulative
// whatever the reader prefers, and there is no limit on cardinality but
// [WithMaxRings] and [WithMaxEventNames]. The totals live as long as the
// program; nothing is stored over a restart.
//
// # Who may read
//
// Consuming, which is the default, takes events out of the rings, so that
// there must be no other consumer: the Collector, NIXL's telemetry_reader. It
// needs write permission: the agents' uid, or root. [ringbuf.Observe] looks
// only; see [WithMode].
//
// A problem with a directory or a ring is not an error: it is logged, at most
// once a minute, and retried. [Producer.Err] returns it, for health checks.
//
// File systems that hang, such as NFS or FUSE, delay only their own rings.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/rings
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
package rings
