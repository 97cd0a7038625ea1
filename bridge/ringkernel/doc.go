// Package ringkernel reports the telemetry of ring kernels through the
// OpenTelemetry SDK, under the names of package semconv.
//
// A ring kernel is a worker that lives long: it takes messages from an input
// queue, works on each, and puts messages on an output queue. A [Runtime]
// collects the telemetry of a program's kernels:
//
//	rt, err := ringkernel.NewRuntime(ringkernel.WithMeterProvider(provider))
//	...
//	defer rt.Close()
//
//	k := rt.Register("resize")
//	k.SetState(ringkernel.StateActive)
//	for m := range in {
//		k.Received()
//		start := time.Now()
//		result, err := work(m)
//		if err != nil {
//			k.Error(err)
//			continue
//		}
//		k.Processed(time.Since(start))
//		out <- result
//		k.Sent()
//	}
//
// Each call updates what its name says and nothing else:
//
//	call                        metric                          snapshot
//	Kernel.Received             ringkernel.messages.received    MessagesReceived
//	                            ringkernel.last_message.time    LastMessageTime
//	Kernel.Sent                 ringkernel.messages.sent        MessagesSent
//	Kernel.Processed            ringkernel.messages.processed   MessagesProcessed
//	                            ringkernel.message.duration     Total-, Min-, MaxLatency
//	Kernel.Dropped              ringkernel.messages.dropped     MessagesDropped
//	Kernel.Error                ringkernel.errors               Errors, LastError
//	Kernel.SetState             ringkernel.kernel.status        State
//	Kernel.SetQueueSize         ringkernel.queue.size           Input.Size, Output.Size
//	Kernel.SetQueueCapacity     ringkernel.queue.capacity       Input.Capacity, Output.Capacity
//	Runtime.Register            ringkernel.uptime               StartTime, Uptime
//
// ringkernel.throughput and ringkernel.error_rate repeat what others say and
// come with [WithDerivedMetrics] only. Every point has the attribute
// ringkernel.kernel.id. [Kernel.ObserveQueue] reads a queue when it is asked
// for, which costs the kernel nothing. Code that has no handle names kernels
// by id: [Runtime.RecordReceive] and its like.
//
// # Snapshots
//
// A program can look at its own telemetry without any exporter:
// [Runtime.Telemetry] for a kernel, [Runtime.All], [Runtime.Summary] with the
// totals, and [Runtime.Monitor], which prints a summary every few seconds.
// They are computed when they are asked for.
//
// [Runtime.Reset] has snapshots start again from 0. The metrics don't: an
// OpenTelemetry counter never goes back. For the same reason a kernel that is
// unregistered keeps its counters, and one that is registered again goes on
// with them.
//
// # On and off
//
// Telemetry is opt-in for a runtime's users: they pass their setting to
// [WithEnabled], or don't make a Runtime at all. A nil *Runtime and a nil
// *Kernel are valid and do nothing, so instrumented code needs no condition.
// A Runtime that is made with neither said is enabled.
//
// # Errors
//
// The attribute error.type is the error's Go type, as fmt's %T prints it, and
// that of the wrapped error where fmt.Errorf wrapped one. An error with a
// method ErrorType() string has the type that it returns, and [WithErrorType]
// comes before both. The text of an error is never reported, and past 32 types
// a kernel's errors count under otel.metric.overflow = true.
//
// # Latencies: the SDK's histogram or a LatencyProducer
//
// By default latencies go to a Float64Histogram of the SDK, with the
// catalogue's buckets: views apply, and so do the reader's temporality and
// aggregation. Its Record takes some 110 ns, which is 11 % of a message's
// time where that is a microsecond. Where it is too much, a [LatencyProducer]
// reports the same metric from a lock-free exponential histogram.
//
// # Cost
//
// In ns a call, with Go 1.26 on two cores of an AMD EPYC (Zen 4):
//
//	                                          one goroutine   while another does the same
//	Int64Counter.Add, attribute set ready     105             128
//	Float64Histogram.Record, the same         107
//	Kernel.Received                           5.2             5.2
//	Kernel.Sent, Kernel.Dropped               4.1             4.1
//	Kernel.Processed with a LatencyProducer   8.8             8.8
//	Kernel.Processed without                  118
//	Runtime.RecordReceive                     13
//	any call, disabled                        1 to 2
//
// None allocates. A loop that works 1 µs on a message and calls Received,
// Processed and Sent is 1.2 % slower with telemetry and a LatencyProducer, and
// 12 % with the SDK's histogram. That is without measuring the latency: each
// time.Now takes another 45 ns. bench_test.go has the benchmarks.
//
// Counters are so cheap because they aren't the SDK's: each goroutine counts
// in a lane of its own, and observable instruments add the lanes up when a
// reader collects. Views, readers, temporality and resource of the
// MeterProvider apply to them as to any instrument. A kernel takes 2 KB, and
// 1 to 8 KB more for each lane in use, of which there are 16.
//
// # The life of a Runtime
//
// Shut the MeterProvider down first, and close the Runtime after it: the
// provider's last collection then has what came last.
//
// A Runtime may also be closed, and be made anew, while its provider goes on. To the SDK a counter is as old as its provider, so counters
// go on where they were, like the SDK's own histograms: what was counted under
// some attributes is kept with the provider, and reported for as long as that
// lives, of the newest 1000 kernels that are gone.
// Gauges and up-down counters end. A [LatencyProducer]'s latencies end too, and
// begin anew with a start time of their own.
//
// The status of a kernel is six series, so the SDK's limit of 2000 series a
// metric is reached at 333 kernels; WithCardinalityLimit of sdk/metric raises
// it. Runtimes that report through one provider are told apart by
// [WithAttributes]; without it, what they say of the same id adds up.
package ringkernel
