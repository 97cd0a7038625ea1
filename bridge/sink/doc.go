// Package sink takes the stream of NIXL telemetry events somewhere else than
// into metrics: a [Sink] gets every event, with its agent, time, category,
// name and value.
//
// It stands where NIXL has exporter plug-ins. Those are shared libraries that
// an agent loads; a Sink is a Go interface of one method, and lives in the
// process that has the events:
//
//   - agent.WithSinks gives an agent in Go its sinks,
//   - rings.WithSinks, of package bridge/rings, feeds sinks from the rings that
//     agents of any language write, consuming or observing.
//
// [CSV] is the sink that NIXL's plug-in guide has as its example. A sink of
// one's own is a type with a Write method, or a [Func].
package sink
