package ringkernel

import "time"

// Telemetry is what a kernel did since it was registered or last reset,
// as a snapshot. Counts are of messages.
type Telemetry struct {
	KernelID string
	State    State

	MessagesReceived  int64
	MessagesSent      int64
	MessagesProcessed int64
	MessagesDropped   int64
	Errors            int64

	StartTime       time.Time // when the kernel was registered or last reset
	LastMessageTime time.Time // of the newest message received; zero before the first
	Time            time.Time // when the snapshot was taken

	Input, Output QueueTelemetry

	// Of the messages processed. The shortest and the longest are 0 while
	// MessagesProcessed is.
	TotalLatency time.Duration
	MinLatency   time.Duration
	MaxLatency   time.Duration

	LastError error // nil if there was none
}

// QueueTelemetry is what is in a queue, in messages. What was never said is 0.
type QueueTelemetry struct {
	Size     int64
	Capacity int64
}

// Uptime is the time from StartTime to the snapshot, and never less than 0.
func (t Telemetry) Uptime() time.Duration {
	return max(t.Time.Sub(t.StartTime), 0)
}

// Throughput is the messages processed per second of uptime, 0 at uptime 0.
func (t Telemetry) Throughput() float64 {
	up := t.Uptime()
	if up == 0 {
		return 0
	}
	return float64(t.MessagesProcessed) / up.Seconds()
}

// ErrorRate is the errors per message processed, 0 when none was. It is more
// than 1 when errors are more frequent than messages.
func (t Telemetry) ErrorRate() float64 {
	if t.MessagesProcessed == 0 {
		return 0
	}
	return float64(t.Errors) / float64(t.MessagesProcessed)
}

// AverageLatency is the total latency per message processed, 0 when none was.
func (t Telemetry) AverageLatency() time.Duration {
	if t.MessagesProcessed == 0 {
		return 0
	}
	return t.TotalLatency / time.Duration(t.MessagesProcessed)
}
