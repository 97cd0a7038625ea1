// Package session records what a split-inference pipeline does: every work
// packet of a model's layers, on whichever device it ran.
//
// A [Session] does three things with each [Packet]. It writes a row to a CSV
// file, it adds the packet to the totals that become a JSON summary at the
// end, and it measures the splitinfer metrics of the catalogue through the
// OpenTelemetry SDK:
//
//	s, err := session.Open("telemetry")
//	if err != nil {
//		log.Print(err) // s still emits metrics
//	}
//	defer s.Close()
//
//	s.AddPromptTokens(7)
//	s.Record(session.Packet{
//		ID: 1, Layer: 0, Operation: "expert_ffn", Device: "igpu",
//		Duration: took, Memory: bytes, Err: err,
//	})
//	s.AddGeneratedTokens(1)
//
// [Analyze] reads a session back, one of this package's or of the Python
// program it is compatible with, and [Recover] makes the summary of a session
// that never reached its Close.
//
// # Files
//
// A session named N in a directory D is D/N.csv and D/N.json. Without a name
// it is session_YYYY-MM-DD_HH-MM-SS in local time. A name in use is an error,
// [ErrExists], and nothing is ever overwritten.
//
// The CSV has the columns
//
//	timestamp        seconds since 1970, six decimals: when the packet ended
//	device           where it ran, such as cpu or igpu
//	worker_instance  the stage of the pipeline, from operation and device
//	duration_ms      milliseconds, three decimals
//	packet_id
//	layer_idx        -1 for the embedding
//	operation        such as attention_qkv_proj
//	success          True or False
//	memory_used_mb   MiB (1024 * 1024 bytes), two decimals
//	error_message    the error's own text, quoted as CSV asks
//
// with LF at the ends of its rows. The JSON is described by [Summary].
//
// # What survives
//
// A row goes to the operating system, with one write(2), before
// [Session.Record] returns, if the last write was 20 µs ago or longer. So of
// packets at least that far apart, whatever ends the program, a panic or
// SIGKILL included, the CSV has every one whose Record has returned. Closer
// ones are a burst: their rows are written together, at most 1 ms later, since
// a write costs more than all the rest of a packet. [Session.Flush] and Close
// write what waits.
//
// Nothing is flushed to the medium: a power cut or a crash of the kernel loses
// what the system had not written back yet. In all cases the file is readable
// up to its last whole row.
//
// Where a row can't be written, as on a full disk, Record returns the error,
// the row is lost, a part of it that made it to the file is cut off again,
// and metrics and totals go on. The next Record tries anew. Of a burst only
// the call that writes it returns the error. Close says how many rows are
// missing, and why the first of them is.
//
// # Memory and cardinality
//
// A session's memory doesn't depend on the number of its packets, only on how
// many kinds of packets there are, and these have limits:
//
//   - Operations: 200, see [WithOperationLimit]. The summary counts those past
//     it as the operation _OTHER; so do [Analyze] and [Recover].
//   - Combinations of device, operation and layer: 4096. Expert selections
//     past it count as _OTHER in the summary.
//   - Devices: 32. Types of errors: 64; those past it are _OTHER.
//
// What is past a limit has otel.metric.overflow = true as the only attribute
// of its data points wherever the attribute in question would be on them, so
// that the sum over all data points stays right. The CSV always has the real
// names.
//
// # Differences from the Python program
//
//   - The summary is always valid JSON. An operation that never succeeded has
//     min_time_ms null, where Python writes Infinity.
//   - avg_time_ms of an operation is an average over its successes, as its
//     total, minimum and maximum are. Python divides by failures too.
//   - A failed packet has its own error's text in the CSV.
//   - A name in use is an error. Python truncates the file.
//   - The rows end with LF. Python's csv module writes CRLF; both are read.
//   - Timestamps have six decimals always, durations in the summary are exact
//     sums of nanoseconds.
package session
