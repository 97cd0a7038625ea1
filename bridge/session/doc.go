// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package session records a run of a split-inference pipeline: a model whose
// layers run as work packets on several devices, such as CPU and iGPU.
//
// For each [Packet], a [Session] writes a row to a CSV file, updates the JSON
// summary that it writes at the end, and records the splitinfer metrics through
// the OpenTelemetry SDK:
//
//	s, err := session.Open("telemetry")
//	if err != nil {
//		log.Print(err) // s still records metrics
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
// [Analyze] reads a session of this package or of the compatible Python program, even if a
// spreadsheet has saved its CSV.
// [Recover] rebuilds the summary of a session whose program crashed. The
// corresponding commands are nixlring session analyze and nixlring session
// recover.
//
// # Metrics
//
// Package semconv describes the splitinfer metrics. All of them include failed packets,
// unlike the summary's values per device.
//
// Expert selections count packets that name an expert, and packets whose
// operation contains "expert". If every packet of an expert names it,
// splitinfer.expert shows the balance of a mixture-of-experts model:
//
//	sum by (splitinfer_expert) (rate(splitinfer_expert_selections_total{splitinfer_operation="expert_ffn"}[5m]))
//
// The SDK limits each metric to 2,000 attribute sets, but a model with 48 layers of 128
// experts needs 6,144. To raise the limit, use WithCardinalityLimit of
// go.opentelemetry.io/otel/sdk/metric.
//
// # Files
//
// A session named N in a directory D has the files D/N.csv and D/N.json. The
// default name is session_YYYY-MM-DD_HH-MM-SS in local time, with the suffix _2 for
// the next session within the same second, and so on. A session never overwrites
// files: if one with a given name exists, [Open] returns [fs.ErrExist].
//
// The CSV has the columns
//
//	timestamp        when the packet ended: seconds since 1970, six decimals
//	device           the device that ran the packet, such as cpu or igpu
//	worker_instance  Packet.Worker, or else derived from operation and device
//	duration_ms      milliseconds, three decimals
//	packet_id        Packet.ID
//	layer_idx        -1 for the embedding
//	operation        such as attention_qkv_proj
//	success          True or False
//	memory_used_mb   MiB (1024 * 1024 bytes), two decimals
//	error_message    the error's text, quoted if necessary
//
// [WithMaxFileSize] limits its size: full files are renamed to D/N.1.csv, D/N.2.csv and so on.
// [WithoutFiles] makes a session that only records metrics.
//
// Each row is one line that ends with LF: line breaks within a text are written as \n.
// So awk, grep and wc give correct numbers. [Summary] describes the JSON.
//
// [Session.Record] writes the row with one write(2) before it returns, so a program
// that is killed loses no row. Files aren't synced to disk: a power failure loses rows that
// the kernel hasn't written back.
//
// If a row can't be written, for example because the disk is full, Record returns
// the error and the row is lost. Metrics and summary still include the packet. Close
// returns the number of missing rows and the first error.
//
// A session's memory doesn't depend on the number of packets. The summary has 4,096
// operations and as many expert selections; any beyond the limit count under _OTHER. The
// CSV always has the real names.
//
// # Differences from the Python program
//
//   - expert_selection_distribution has the names of experts, such as expert_3, of packets
//     that name one. The Python program only has operations and layers.
//   - The summary is always valid JSON. For an operation without successful packets,
//     min_time_ms is null, where Python writes Infinity.
//   - avg_time_ms of an operation is the average of successful packets, like its
//     total, minimum and maximum. Python also divides by the number of failed packets.
//   - A failed packet has the text of its own error in the CSV.
//   - Python truncates a file of a session that exists, and its csv module writes CRLF and
//     keeps line breaks within texts. Both kinds of files can be read.
package session
