// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringkernel reports the telemetry of ring kernels through the
// OpenTelemetry SDK.
//
// A ring kernel is a long-running worker that takes messages from an input queue,
// processes each of them, and puts the results into an output queue. A [Runtime]
// records the telemetry of a program's kernels:
//
//	rt := ringkernel.NewRuntime() // or with ringkernel.WithMeterProvider(provider)
//
//	k := rt.Register("resize")
//	...
//	in <- m
//	k.Received(ctx)
//	...
//	for m := range in {
//		start := time.Now()
//		result, err := work(m)
//		if err != nil {
//			k.Error(ctx, err)
//			continue
//		}
//		k.Processed(ctx, time.Since(start))
//		out <- result
//		k.Sent(ctx)
//	}
//
// # What is counted
//
// Each call updates the metrics in its row and no others. Every data point has the
// attribute ringkernel.kernel.id.
//
//	call                     when                                     metric                                  snapshot
//	Kernel.Received          a message entered the input queue        ringkernel.messages.received            MessagesReceived
//	                                                                  ringkernel.last_message.time            LastMessageTime
//	Kernel.Processed         a message was processed successfully     ringkernel.messages.processed           MessagesProcessed
//	                                                                  ringkernel.message.duration             …Latency
//	Kernel.Error             a message could not be processed         ringkernel.errors by error.type         Errors, LastError
//	Kernel.Sent              a result entered the output queue        ringkernel.messages.sent                MessagesSent
//	Kernel.Dropped           a queue was full                         ringkernel.messages.dropped by queue    InputDropped, OutputDropped
//	Kernel.SetState          the kernel's state changed               ringkernel.kernel.status by state       State, EndTime
//	Kernel.ObserveQueue      once, if a function can return the size  ringkernel.queue.size, .capacity        …Size, …Capacity
//	Runtime.Register         the kernel was created                   ringkernel.uptime                       StartTime, Uptime
//
// ringkernel.throughput and ringkernel.error_rate are derived from these calls.
//
// The time of the last message can be up to 10 ms too early, because reading the clock takes
// longer than counting the message. Package
// semconv lists all names, units and attributes.
//
// The attribute error.type is the result of the method ErrorType() string of the error, or of
// an error that it wraps, or else the error's Go type; of joined errors, the first one counts.
// The text of an error is never reported.
//
// A nil *Runtime and a nil *Kernel are valid and do nothing, so instrumented code
// needs no conditions to turn telemetry off.
//
// # Snapshots
//
// A program can read its own telemetry: [Runtime.Telemetry] returns a snapshot of one
// kernel, [Runtime.Summary] a snapshot of all kernels, which fmt.Print prints as text.
// [Runtime.Reset] restarts snapshots at 0, but not counters, because they never decrease.
//
// # Closing
//
// Unregister a kernel, and close a Runtime, before or after the MeterProvider is shut down: the
// metrics stay with their final values until then. A kernel that is registered again under its
// ID continues them.
//
// # Exemplars
//
// If the context of [Kernel.Processed] or [Kernel.Error] has a sampled span, the
// measurement gets an exemplar with the span's trace ID. The other metrics are observable
// instruments, which have no exemplars.
//
// # Limits
//
//   - The SDK reports at most 2,000 series per metric, and the sum of the others under
//     otel.metric.overflow = true. ringkernel.kernel.status has six series per kernel, so
//     334 kernels reach this limit. To raise it, use metric.WithCardinalityLimit of the SDK.
//   - The calls take no attributes. If you need another dimension with few values,
//     register a kernel for each value. If it has many values, such as request IDs, add
//     it to the span instead.
//   - Kernels with the same ID in several Runtimes of one MeterProvider share series:
//     their counts add up.
//   - A MeterProvider has series for the first 10,000 IDs, which take up to 10 MB. All other
//     kernels count under otel.metric.overflow = true, without gauges.
//
// # Cost
//
// Counting a message costs little more than an atomic addition, and Processed what the SDK's
// histogram costs: in a loop with 10 µs of work per message, about 2% of the time. Only Error
// allocates. bridge/README.md in the repository has the figures, and shows how to install this
// package.
package ringkernel
