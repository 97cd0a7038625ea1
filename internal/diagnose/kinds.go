// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "slices"

// Kind is a kind of finding.
type Kind string

// The kinds.
const (
	JobStalled        Kind = "job_stalled"        // no agent of a job transfers, although some did before
	Stalled           Kind = "stalled"            // one agent hangs
	Failing           Kind = "failing"            // operations of a job fail
	JobSlower         Kind = "job_slower"         // most agents of a job are far slower than they were
	TelemetryDisabled Kind = "telemetry_disabled" // a process disables telemetry, which breaks some engines
	Straggler         Kind = "straggler"          // one agent is far slower than its peers
	Slower            Kind = "slower"             // one agent is far slower than it was
	SomeFail          Kind = "some_fail"          // some operations of an agent fail, again and again
	PostBound         Kind = "post_bound"         // posting takes longer than moving the data
	NotRDMA           Kind = "not_rdma"           // transfers use TCP on a host with RDMA
	RingFull          Kind = "ring_full"          // nothing drains a ring, and it is full
	EventsLost        Kind = "events_lost"        // telemetry is incomplete
	EventsTaken       Kind = "events_taken"       // another consumer takes events
	EventsUnknown     Kind = "events_unknown"     // an agent reports events of a type that isn't known
	CrashLoop         Kind = "crash_loop"         // an agent restarts again and again
	Missing           Kind = "missing"            // metrics of running agents no longer arrive
	NearlyFull        Kind = "ring_nearly_full"   // events may be lost soon
	NoConsumer        Kind = "no_consumer"        // nothing drains a ring
	NoTelemetry       Kind = "no_telemetry"       // a process uses NIXL without telemetry
	Gone              Kind = "gone"               // agents of a job have exited
	Idle              Kind = "idle"               // an agent has no transfers while its peers have
)

const (
	seeSlow        = "nixlring slow prints slow transfers as they occur, and so does the slow-transfer log (event nixl.transfer.slow)."
	seeErrors      = "nixlring read RING --follow --category error prints each error."
	checkNIC       = "Check the agent's NIC (negotiated speed, error counters), its GPU and its NUMA placement; "
	checkExit      = "Check the exit code of the process, the events of its pod, and dmesg."
	lookAtStacks   = "Look at the process's stacks (py-spy dump, gdb) and at the transport's log. If the agent was taken out of service on purpose, ignore this."
	startCollector = "Start a Collector with the receiver nixl_shm, or check why it doesn't drain this ring: it may have mode: observe, and its log names the rings that it refuses."
)

// about has what is the same for all findings of a kind: what it isn't, and what to do.
type about struct {
	Kind
	severity  Severity
	not, next string
}

// kinds has the most urgent kinds of a severity first.
var kinds = []about{
	{
		JobStalled, Info, "It needn't be a problem: if no requests arrive, this is normal.",
		"Compare with the running requests of the inference engine. If there are any, look at the processes' stacks and at the fabric.",
	},
	{Stalled, Critical, "NIXL reports a transfer when it completes, so one that hangs is invisible.", lookAtStacks},
	{
		Failing, Critical, "Canceled operations don't count, and the errors are still occurring.",
		"If several agents fail at once, look for the peer or fabric that they share. backend: see the transport's log; other types: see docs/alerts.md#nixlerrors. " + seeErrors,
	},
	{
		JobSlower, Critical, "It isn't a single agent, NIC or link: most agents of the job are slower at the same time.",
		"Check what they share: a change of the transport (UCX falls back to TCP if RDMA devices are missing; UCX_LOG_LEVEL=info prints the choice), the fabric, a new image or driver. " + seeSlow,
	},
	{
		TelemetryDisabled, Warning, "It isn't the same as leaving the variable unset: then vLLM works, without telemetry.",
		"Unset NIXL_TELEMETRY_ENABLE, or set it to y. Never set it to n. Dynamo's operator sets it by default: override it in the pod's environment.",
	},
	{
		Straggler, Warning, "It isn't the size of its transfers or its load: only agents with similar sizes are compared, and idle time doesn't count.",
		checkNIC + "compare them with those of a peer. If only some of its transfers are slow, look for what they share. " + seeSlow,
	},
	{
		Slower, Warning, "It isn't a change of the size of its transfers, nor an effect of a higher load.",
		checkNIC + "and what changed when it became slower. " + seeSlow,
	},
	{SomeFail, Warning, "Canceled operations don't count.", "backend: see the transport's log; other types: see docs/alerts.md#nixlagenterrors. " + seeErrors},
	{
		PostBound, Warning, "It isn't the network: the time is spent on the CPU of this host.",
		"Use fewer, larger blocks (descriptors), prepare transfers once and repost them, and check that the agent's threads get enough CPU. " + seeSlow,
	},
	{
		NotRDMA, Warning, "It needn't be a problem of storage: NFS and S3 use TCP.",
		"Check that the agents' containers have /dev/infiniband and may lock memory (ulimit -l), and their UCX_TLS and UCX_NET_DEVICES; UCX_LOG_LEVEL=info prints the choice.",
	},
	{RingFull, Warning, "Transfers aren't affected, but all further events are lost.", startCollector},
	{
		EventsLost, Warning, "Its transfers aren't affected.",
		"Set a larger NIXL_TELEMETRY_BUFFER_SIZE (a power of two) for the agent; nixlring inspect RING advises a size.",
	},
	{
		EventsTaken, Warning, "It isn't nixlring, which only observes.",
		"Stop the other consumer, such as NIXL's telemetry_reader. nixlring inspect RING names it.",
	},
	{
		EventsUnknown, Warning, "It isn't a loss: they are counted by name (nixl.telemetry.events.unknown). But any may be important, such as a new kind of error.",
		"NIXL is newer than this version of nixl-otel: upgrade the Collector and nixlring. nixlring read RING prints these events.",
	},
	{
		Missing, Warning, "It isn't an exit: agents that exit are reported as exited for some minutes.",
		"Check whether the host runs, and the log of its Collector, which says why it no longer reads a ring or can't export.",
	},
	{CrashLoop, Warning, "It isn't a rollout: that restarts an agent once.", checkExit},
	{NearlyFull, Warning, "Nothing is lost yet.", "Set a larger NIXL_TELEMETRY_BUFFER_SIZE, or a shorter NIXL_TELEMETRY_RUN_INTERVAL, for the agent."},
	{NoConsumer, Warning, "Nothing is lost yet.", startCollector},
	{
		NoTelemetry, Info, "It needn't be a problem: the process may load NIXL without creating an agent.",
		"To see its transfers, start it with NIXL_TELEMETRY_ENABLE=y, NIXL_TELEMETRY_EXPORTER=BUFFER and NIXL_TELEMETRY_DIR.",
	},
	{Gone, Info, "It needn't be a crash: a rollout, a smaller job or an autoscaler looks the same.", checkExit},
	{
		Idle, Info, "It needn't be a problem: the agent may be spare, or have another role.",
		"If it should have work, look at the stacks of its process, or watch for longer.",
	},
}

// Kinds returns all kinds, the most urgent first.
func Kinds() (list []Kind) {
	for _, k := range kinds {
		list = append(list, k.Kind)
	}
	return list
}

// urgency returns the place of a kind. Alerts that aren't here are less urgent.
func (k Kind) urgency() int {
	if i := slices.IndexFunc(kinds, func(a about) bool { return a.Kind == k }); i >= 0 {
		return i
	}
	return len(kinds)
}

// Severity is the severity of a finding.
type Severity string

// The severities. Info isn't a problem.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Critical Severity = "critical"
)

// rank orders severities.
func (s Severity) rank() int { return slices.Index([]Severity{Info, Warning, Critical}, s) }

// AtLeast reports whether a severity is as high as another.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }
