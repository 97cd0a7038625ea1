// Package ringkernel reports the telemetry of ring kernels through the
// OpenTelemetry SDK.
//
// A ring kernel is a worker that lives long: it takes messages from an input
// queue, works on each, and puts messages into an output queue. A [Runtime]
// collects the telemetry of a program's kernels, and a [Producer] gives it to
// the SDK's reader:
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
// That is all: there is no second connection to make, and nothing to close.
// With bridge/otlpmetric, the three lines in the middle are one:
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
// Each call updates what its name says and nothing else. Counts are of
// messages; every data point has the attribute ringkernel.kernel.id.
//
//	call                     when                                     metric                                  snapshot
//	Kernel.Received          a message entered the input queue        ringkernel.messages.received            MessagesReceived
//	                                                                  ringkernel.last_message.time            LastMessageTime
//	Kernel.Processed         it was processed successfully            ringkernel.messages.processed           MessagesProcessed
//	                                                                  ringkernel.message.duration             …Latency
//	Kernel.Error             it could not be processed                ringkernel.errors by error.type         Errors, LastError
//	Kernel.Sent              a result entered the output queue        ringkernel.messages.sent                MessagesSent
//	Kernel.Dropped           a queue was full                         ringkernel.messages.dropped by queue    Input.Dropped, Output.Dropped
//	Kernel.SetState          the kernel changed its state             ringkernel.kernel.status by state       State, EndTime
//	Kernel.ObserveQueue      once, for a queue that can be asked      ringkernel.queue.size, .capacity        Input, Output
//	Runtime.Register         the kernel is created                    ringkernel.uptime                       StartTime, Uptime
//
// [Kernel.SetQueueSize] and [Kernel.SetQueueCapacity] are for queues that can't
// be asked. ringkernel.throughput and ringkernel.error_rate can be computed
// from the others and need [WithDerivedMetrics]. Package semconv has the
// catalog.
//
// The attribute error.type is the error's Go type, or what its method
// ErrorType() string returns, or what [WithErrorType] says. The text of an
// error is never reported. Past 32 types, a kernel's errors count under
// otel.metric.overflow = true.
//
// # Turning it off
//
// A nil *Runtime and a nil *Kernel are valid and do nothing, so that
// instrumented code needs no condition:
//
//	var rt *ringkernel.Runtime
//	if telemetry {
//		rt = ringkernel.NewRuntime()
//	}
//
// # Snapshots
//
// A program can look at its own telemetry without any reader:
// [Runtime.Telemetry] returns a kernel's, [Runtime.Summary] that of all. Both
// marshal to JSON with snake_case names. Package report prints summaries and
// serves them over HTTP; package byid records for code that has ids and no
// handles.
//
// [Runtime.Reset] lets snapshots start again from 0. The metrics go on, as a
// counter never goes back.
//
// # Exemplars
//
// If the context of a call carries a sampled span, the data point gets an
// exemplar with its trace and span ID, as with the SDK's default filter. With
// OTEL_METRICS_EXEMPLAR_FILTER=always_off, none gets one; always_on is not
// supported. A
// histogram has an exemplar for each bucket, a counter has one. Each is the
// first in 10 ms, so that a program whose every span is sampled doesn't pay for
// each. ringkernel.messages.processed has none: its messages have theirs in
// ringkernel.message.duration.
//
// # Cost
//
// In ns a call, while so many goroutines make the same call on the same kernel.
// The SDK's instruments have an attribute set that was made in advance.
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
// These are medians from two hardware threads of a busy Intel Xeon, which 2 and
// 16 goroutines share and on which one atomic addition takes 13 ns. Of another
// machine, only the ratios say something: `go test -bench . ./bridge/ringkernel`
// measures both sides in turns. None of the calls allocates, except for the
// first in a goroutine's lane and for an exemplar.
//
// A loop that works for 1 µs on a message and calls Received, Processed and Sent
// is 4 to 5 % slower there. The four atomic additions alone account for 1 %. With
// the SDK's histogram for latencies, the loop is 40 % slower. This doesn't include
// measuring the latency: time.Now takes longer than the three calls together.
//
// A context other than context.Background() is searched for a span, as the SDK
// does. Three values deep, that takes 45 ns on the same machine.
//
// Each goroutine counts in one of 16 lanes, and a collection adds the lanes up,
// which takes 6 µs for a kernel. A kernel takes 3 KB with its first lane, and 1 to
// 8 KB for each further lane in use.
//
// # Limits
//
// A Producer is not a set of the SDK's instruments:
//
//   - Views don't apply. The buckets are those of
//     semconv.KernelDurationBounds, or exponential: [WithExponentialHistogram].
//   - The temporality is cumulative, whatever the reader prefers. For a backend
//     that needs deltas, there is [WithDeltaTemporality].
//   - The SDK's limit on cardinality doesn't apply. A kernel has about 20 series.
//   - A reader takes its producers when it is created, so create the Runtime
//     first. Where a library creates the reader, look for its way to add a
//     producer: exporters/prometheus has WithProducer, and contrib's autoexport
//     has WithFallbackMetricProducer.
//
// The reason: the SDK has no histogram that a callback can fill, its Record takes
// 8 times as long as Processed, and its counters can't end while the provider
// lives.
//
// A kernel that is unregistered is in two more collections of each reader, and
// then its series end. If its id is registered again before that, its counters
// go on; after that, they start from 0 with a start time of their own.
//
// A Producer that no reader has collected after 2 minutes is reported to
// OpenTelemetry's error handler, and Summary.LastCollected stays zero.
package ringkernel
