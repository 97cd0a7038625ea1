// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import "time"

// Limits that the recording rules and alerts have, too.
const (
	MinTransfers = 20 // in a window, for an agent to be judged
	MinPeers     = 4  // agents in a band, including the agent itself

	StragglerSpeed = 0.6    // of the median of the peers
	SlowerSpeed    = 0.5    // of the agent's own past
	LongerTime     = 1.25   // of the median of the peers, or of the past: slow transfers take longer
	Spread         = 3      // standard deviations below the median of the peers
	PerDeviation   = 1.4826 // standard deviations of a normal distribution in a median absolute deviation
	// Company is the share of the agents in a band above which slow agents aren't stragglers: they
	// differ in kind, such as the generation of their NIC.
	Company = 0.25
	// MostSlower is the share of a job's agents above which the job is slow, not single agents.
	MostSlower = 0.5

	PostShare   = 0.5                   // of the transfer time
	PostTime    = 20 * time.Microsecond // a shorter mean isn't worth improving
	ErrorShare  = 0.1                   // of all operations, in the short window
	ErrorLong   = 0.05                  // of all operations, in the long window
	MinErrors   = 10                    // in the long window
	FullShare   = 0.8                   // of a ring
	JobSilent   = time.Minute           // a job may pause for less
	StillBusy   = 0.5                   // of the median rate of the past: an agent that was slower before it stopped ran out of work
	MixedSizes  = 0.1                   // of the mean size, which most transfers are below if sizes are mixed
	MixedTimes  = 1.0 / 3               // of the mean time, which most transfers are below if small ones don't wait
	WaitingTime = time.Millisecond      // shorter waits aren't worth improving
	WaitingFast = 0.25                  // of this time, which a tenth of the transfers take if the others wait
)

// Quantiles that show whether small transfers wait behind large ones.
const (
	MostTransfers = 0.8
	FastTransfers = 0.1
)

// Windows are the time ranges of a diagnosis.
type Windows struct {
	Window time.Duration // speeds, rates and loss
	Silent time.Duration // without transfers, after which an agent is stalled
	Short  time.Duration // errors still going on
	Long   time.Duration // errors
	Hold   time.Duration // how long slow agents must be slow
	Failed time.Duration // how long operations must fail

	Recent  time.Duration // range of past rates, which show whether an agent transfers regularly
	Regular time.Duration // minimum length of that range
	Past    time.Duration // past speeds that an agent is compared with
	Step    time.Duration // between two of them
	Gap     time.Duration // between them and now
	Steps   int           // minimum number of them

	Before time.Duration // how long ago the number of running agents is compared with
	Ago    time.Duration // and for how long it was at least that
	Down   time.Duration // how long agents must be gone
}

// Rules returns the windows of the recording rules and alerts.
func Rules() Windows {
	return Windows{
		Window: 3 * time.Minute, Silent: 3 * time.Minute, Short: 2 * time.Minute, Long: 5 * time.Minute,
		Hold: time.Minute, Failed: 3 * time.Minute,
		Recent: time.Hour, Regular: 10 * time.Minute,
		Past: 24 * time.Hour, Step: 10 * time.Minute, Gap: 5 * time.Minute, Steps: 3,
		Before: 10 * time.Minute, Ago: 20 * time.Minute, Down: 3 * time.Minute,
	}
}

// Watch returns the windows of a tool that watches for some time: at most those of the rules.
func Watch(length time.Duration) Windows {
	w := Rules()
	if length >= w.Recent {
		return w
	}
	w.Window = min(w.Window, length)
	w.Long = w.Window
	w.Silent = min(w.Silent, length/2)
	w.Short = min(w.Short, length*2/5)
	w.Regular = min(w.Regular, length*2/5)
	w.Before = min(w.Before, length/2)
	w.Ago = min(w.Ago, length/2)
	w.Hold, w.Failed, w.Down = 0, 0, 0
	return w
}

// Live returns the windows of a tool that has watched for some time, and goes on. Speeds and rates
// are those of window. An agent is compared with its speeds from a minute ago on.
func Live(window, length time.Duration) Windows {
	const longest = 2 * time.Minute // of errors and losses, so that they don't stay for long
	w := Watch(min(length, longest))
	w.Window = min(w.Window, window)
	w.Silent = min(w.Silent, 3*window) // a hung agent is shown soon
	w.Past, w.Step, w.Gap = length, 30*time.Second, time.Minute
	return w
}

// Band is a range of sizes. Agents whose mean sizes are in the same band are compared.
type Band struct {
	Name     string
	From, To float64 // bytes, excluding To
}

// Bands returns all bands. Each size is in two of them.
func Bands() []Band { return bands }

var bands = []Band{
	{"to 4 KiB", 0, 4 << 10},
	{"to 16 KiB", 0, 16 << 10},
	{"4 KiB to 64 KiB", 4 << 10, 64 << 10},
	{"16 KiB to 256 KiB", 16 << 10, 256 << 10},
	{"64 KiB to 1 MiB", 64 << 10, 1 << 20},
	{"256 KiB to 4 MiB", 256 << 10, 4 << 20},
	{"1 MiB to 16 MiB", 1 << 20, 16 << 20},
	{"4 MiB to 64 MiB", 4 << 20, 64 << 20},
	{"16 MiB to 256 MiB", 16 << 20, 256 << 20},
	{"64 MiB to 1 GiB", 64 << 20, 1 << 30},
	{"from 256 MiB", 256 << 20, 1 << 60},
	{"from 1 GiB", 1 << 30, 1 << 60},
}
