// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package session records a run of a split-inference pipeline: a model whose
// layers run as work packets on several devices, such as CPU and iGPU.
//
// A [Session] does three things with each [Packet]. It writes a row to a CSV
// file, adds the packet to the JSON summary that it writes at the end, and
// measures the splitinfer metrics through the OpenTelemetry SDK:
//
//	s, err := session.Open("telemetry")
//	if err != nil {
//		log.Print(err) // s still emits metrics
//	}
//	defer s.Close()
//
//	s.AddPromptTokens(ctx, 7)
//	err = s.Record(ctx, session.Packet{
//		ID: 1, Layer: 0, Operation: "expert_ffn", Expert: "3", Device: session.IGPU,
//		Duration: took, Memory: bytes, Err: workErr,
//	})
//	s.AddGeneratedTokens(ctx, 1)
//
// The metrics go to the global MeterProvider, or to that of
// [WithMeterProvider]. Package otlpmetric makes one in one call. A nil *Session
// does nothing, so telemetry can be off without conditions in the pipeline.
//
// [Analyze] reads a session back, of this package or of the Python program that
// it is compatible with. [Recover] rebuilds the summary of a session whose
// program crashed. On the command line, these are nixlring session analyze and
// nixlring session recover.
//
// # Installation
//
//	go get github.com/nixl-otel/nixl-otel/bridge/session
//
// Until the first release, follow the section "Go programs" of the repository's
// README.md instead.
//
// # Metrics
//
//	splitinfer.packet.duration    histogram, s  time of each packet, by device and operation
//	splitinfer.packets            counter       packets that ended, by device and worker
//	splitinfer.packet.memory      histogram, By memory of each packet that reports it, by device
//	splitinfer.packet.fallbacks   counter       packets that didn't run on the device requested, by both devices
//	splitinfer.expert.selections  counter       packets of experts, by operation, layer and expert
//	splitinfer.tokens             counter       tokens, by type: prompt or generated
//
// Durations and packets of failures have error.type. Failed packets count in
// all of them, unlike in the summary's figures per device.
//
// Expert selections count packets that name an expert, and packets whose
// operation contains "expert". If every packet of an expert names it,
// splitinfer.expert shows the balance of a mixture-of-experts model:
//
//	sum by (splitinfer_expert) (rate(splitinfer_expert_selections_total{splitinfer_operation="expert_ffn"}[5m]))
//
// The context of [Session.Record] provides the exemplar: if it has a sampled
// span, the measurements of the packet carry its trace ID. Attributes of your
// own, such as the phase of the inference, go to [Packet.Attributes].
//
// The bounds of durations are ten per decade, from 1 µs to 60 s: quantiles that
// a backend interpolates are within 20% for a real session. For fewer buckets,
// use a view or an exponential histogram.
//
// # Files
//
// A session named N in a directory D has the files D/N.csv and D/N.json. The
// default name is session_YYYY-MM-DD_HH-MM-SS in local time. A session never
// overwrites files: if one exists, [Open] fails with [fs.ErrExist].
//
// The CSV has the columns
//
//	timestamp        when the packet ended: seconds since 1970, six decimals
//	device           where it ran, such as cpu or igpu
//	worker_instance  Packet.Worker, or the stage of the pipeline, from operation and device
//	duration_ms      milliseconds, three decimals
//	packet_id
//	layer_idx        -1 for the embedding
//	operation        such as attention_qkv_proj
//	success          True or False
//	memory_used_mb   MiB (1024 * 1024 bytes), two decimals
//	error_message    the error's text, quoted as CSV requires
//
// with LF at the end of each row. [Summary] describes the JSON.
//
// # Crashes
//
// [Session.Record] writes the row with one write(2) before it returns, if the
// last write was at least 20 µs ago. If packets come faster, their rows are
// written together, at most 1 ms later, because a write costs more than
// everything else. So a program that is killed loses at most the rows of the
// last millisecond, and none if its packets are at least 20 µs apart.
// [Session.Flush] and [Session.Close] write the rows that are in memory.
//
// Nothing is synced to disk: a power failure or a kernel crash loses what the
// kernel hadn't written back. In any case, the file is readable up to its last
// complete row.
//
// If a row can't be written, for example because the disk is full, Record
// returns the error and the row is lost; metrics and summary continue. A part
// of the row that is in the file is removed. The next Record tries again. Close
// reports how many rows are missing, and why the first one is.
//
// # Limits
//
// A session's memory doesn't depend on the number of packets. It distinguishes
// 200 operations, 32 devices, 64 types of errors, 64 sets of Packet.Attributes,
// 16,384 combinations of operation, layer, expert, device, worker and
// attributes in expert selections, and 4,096 combinations without the expert
// in the other metrics. In the summary, everything past the limit of operations is
// the operation _OTHER. In the metrics, everything past a limit has the only
// attribute otel.metric.overflow = true, so the sum of all data points stays
// right. The CSV always has the real names.
//
// The SDK has a limit of its own: 2,000 attribute sets per metric, unless
// changed by WithCardinalityLimit of go.opentelemetry.io/otel/sdk/metric. A
// model with 48 layers of 128 experts needs 6,144.
//
// # Differences from the Python program
//
//   - The summary is always valid JSON. An operation that never succeeded has
//     min_time_ms null, where Python writes Infinity.
//   - avg_time_ms of an operation is the average of its successes, like its
//     total, minimum and maximum. Python also divides by failures.
//   - A failed packet has its own error's text in the CSV.
//   - A name in use is an error. Python truncates the file.
//   - Rows end with LF. Python's csv module writes CRLF; both are read.
//   - Timestamps always have six decimals. Durations in the summary are exact
//     sums of nanoseconds.
package session
