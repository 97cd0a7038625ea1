// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package ringkernel reports the telemetry of ring kernels through the
// OpenTelemetry SDK.
//
// A ring kernel is a long-running worker that takes messages from an input queue,
// processes each of them, and puts the results into an output queue. A [Runtime]
// records the telemetry of a program's kernels, and a [Producer] passes it to a
// reader of the SDK:
//
//	rt := ringkernel.NewRuntime()
//	reader := metric.NewPeriodicReader(exporter, metric.WithProducer(rt.NewProducer()))
//	provider := metric.NewMeterProvider(metric.WithReader(reader))
//	defer provider.Shutdown(ctx) // exports the last values
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
// Here, metric is go.opentelemetry.io/otel/sdk/metric, and exporter is any of its
// exporters, such as that of exporters/stdout/stdoutmetric. Nothing else must be
// connected or closed. The kernel stays in [StateCreated] until the program calls
// [Kernel.SetState]. Package bridge/otlpmetric creates the exporter, the reader and
// the provider in one call:
//
//	provider, err := otlpmetric.New(ctx, otlpmetric.WithProducers(rt.NewProducer()))
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/ringkernel
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
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
//	Kernel.Dropped           a queue was full                         ringkernel.messages.dropped by queue    Input.Dropped, Output.Dropped
//	Kernel.SetState          the kernel's state changed               ringkernel.kernel.status by state       State, EndTime
//	Kernel.ObserveQueue      once, if a function can return the size  ringkernel.queue.size, .capacity        Input, Output
//	Runtime.Register         the kernel was created                   ringkernel.uptime                       StartTime, Uptime
//
// For queues whose size no function can return, call [Kernel.SetQueueSize] and
// [Kernel.SetQueueCapacity].
// [WithDerivedMetrics] adds ringkernel.throughput and ringkernel.error_rate, which
// backends can compute from the other metrics. Package semconv lists all names,
// units and attributes.
//
// The attribute error.type is the result of the function passed to
// [WithErrorType], or else the result of the error's method ErrorType() string, or
// else the error's Go type. The text of an error is never reported. A kernel can
// have up to 32 error types; errors of further types count under
// otel.metric.overflow = true.
//
// # Turning it off
//
// A nil *Runtime and a nil *Kernel are valid and do nothing, so instrumented code
// needs no conditions:
//
//	var rt *ringkernel.Runtime
//	if telemetry {
//		rt = ringkernel.NewRuntime()
//	}
//
// # Snapshots
//
// A program can read its own telemetry without a reader: [Runtime.Telemetry]
// returns a snapshot of one kernel, [Runtime.Summary] a snapshot of all kernels.
// Both marshal to JSON with snake_case names. Package report prints summaries and
// serves them over HTTP. Package byid records by kernel ID, for code that can't
// keep a *Kernel.
//
// [Runtime.Reset] restarts snapshots at 0. It doesn't affect counters and
// histograms, because they never decrease.
//
// # Exemplars
//
// If the context of a call has a sampled span, the data point gets an exemplar
// with the span's trace ID and span ID, as with the SDK's default filter. A
// histogram has one exemplar per bucket, a counter has one. Only the first
// exemplar within 10 ms is kept, so exemplars cost little even if every span is
// sampled. ringkernel.messages.processed has no exemplars, because
// ringkernel.message.duration has exemplars for the same messages.
//
// OTEL_METRICS_EXEMPLAR_FILTER=always_off turns exemplars off. The value always_on
// isn't supported.
//
// # Limits
//
// The calls take no attributes. A kernel's attributes are fixed when it is
// registered: ringkernel.kernel.id and those of [WithAttributes]. Looking up a set
// of attributes would take longer than everything else that a call does. If you
// need another dimension with few values, register a kernel for each value. If it
// has many values, such as request IDs, add it to the span instead: exemplars link
// to the span.
//
// A Producer differs from the SDK's instruments:
//
//   - Views don't apply. The histogram has the bounds of
//     semconv.KernelDurationBounds, or is exponential with
//     [WithExponentialHistogram].
//   - The temporality is cumulative, regardless of the reader. Use
//     [WithDeltaTemporality] for a backend that needs deltas.
//   - The SDK's cardinality limit doesn't apply. A kernel has about 20 series.
//   - A reader is created with its producers, so create the Runtime first. If a
//     library creates the reader, use the library's option to add a producer, such
//     as WithProducer of exporters/prometheus and WithFallbackMetricProducer of
//     contrib's autoexport.
//
// The package doesn't use the SDK's instruments because no callback can fill a
// histogram, Record takes 8 times as long as Processed, and the series of an
// unregistered kernel would never end.
//
// The series of an unregistered kernel end after two more collections by each
// reader. If the ID is registered again before that, its counters continue. If it
// is registered later, they restart at 0, with a new start time.
//
// If no reader collects a Producer within 2 minutes, OpenTelemetry's error handler
// gets an error, and Summary.LastCollected stays zero.
//
// # Cost
//
// The table shows the time per call in ns, while several goroutines make the same
// call on the same kernel. The SDK's instruments use a precomputed attribute set.
//
//	                              1 goroutine   2 goroutines   16 goroutines
//	Int64Counter.Add                      227            453            3661
//	Kernel.Received                        17             38             295
//	Kernel.Sent                            16             37             273
//	Kernel.Dropped                         16             28             250
//	Float64Histogram.Record               284            635            5329
//	Kernel.Processed                       32             76             602
//	Kernel.Received, nil Kernel             7             19             119
//
// The numbers are medians from a busy Intel Xeon with two hardware threads, where
// one atomic addition takes 13 ns. On other machines, only the ratios apply;
// `go test -bench . ./bridge/ringkernel` measures both sides alternately. Calls
// don't allocate, except for the first call in each lane (see below) and for
// exemplars.
//
// On the same machine, the calls of Received, Processed and Sent make a loop with
// 1 µs of work per message 2 to 5% slower. The four atomic additions alone make it
// up to 1% slower, and the SDK's histogram for latencies makes it 40% slower. This
// doesn't include measuring the latency: time.Now takes longer than the three
// calls together.
//
// A context other than context.Background() is searched for a span, as in the SDK.
// With three values in the context, this takes 45 ns on the same machine.
//
// Each goroutine counts in one of 16 lanes. A collection adds up the lanes, which
// takes 6 µs per kernel. A kernel takes 3 KB with its first lane, and 1 to 8 KB
// for each further lane in use.
package ringkernel
