// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"math"
	"time"
)

// Limits that the recording rules and alerts have, too.
const (
	MinTransfers = 100 // for an agent to have a speed: a few very slow transfers change the mean of fewer, by chance
	Regularly    = 20  // transfers in a short time, for an agent to miss its transfers later
	MinPeers     = 4   // agents in a band, including the agent itself
	FewPeers     = 3   // likewise, for an agent that is far slower

	StragglerSpeed = 0.65   // of the median of the peers
	FarSlower      = 0.22   // of the median of the peers: too slow for an older NIC
	SlowerSpeed    = 0.6    // of the agent's own past
	FarLonger      = 10     // of the past: a transfer that takes so much longer is evidence by itself
	MoreLoad       = 1.5    // of the past's bytes per second: a shared link slows down under load
	SimilarSize    = 2      // a factor, compared with one past window: other sizes have other speeds
	SimilarShare   = 0.2    // a difference of the shares of writes: reads and writes have other speeds
	LongerTime     = 1.25   // of the median of the peers, or of the past: slow transfers take longer
	Spread         = 3      // standard deviations below the median of the peers
	PerDeviation   = 1.4826 // standard deviations of a normal distribution in a median absolute deviation
	// Company is the share of the agents in a band above which slow agents aren't stragglers: they
	// differ in kind, such as the generation of their NIC.
	Company = 0.25
	// FarCompany is the same share for agents that are far slower.
	FarCompany = 0.5
	// MostSlower is the share of a job's agents above which the job is slow, not single agents.
	MostSlower = 0.5

	PostShare     = 0.5                   // of the transfer time
	PostTime      = 20 * time.Microsecond // a shorter mean isn't worth improving
	SomeErrors    = 0.01                  // of an agent's operations, again and again
	FewErrors     = 5                     // in both of its windows
	ErrorShare    = 0.1                   // of all operations, in the short window
	ErrorLong     = 0.05                  // of all operations, in the long window
	CanceledShare = 0.2                   // of all operations, for long: a time-out cancels them
	UsualCanceled = 2                     // a factor; some applications always cancel some
	MinErrors     = 10                    // in the long window
	FullShare     = 0.8                   // of a ring
	WarmUp        = 3 * time.Minute       // after a start, an agent may be slower than before
	CrashWindow   = 10 * time.Minute      // in which an agent restarts again and again
	Restarts      = 3                     // in this time
	CrashLonger   = 40 * time.Minute      // likewise, because Kubernetes waits for longer and longer
	MoreRestarts  = 5                     // in this time
	JobSilent     = time.Minute           // a job may pause for less
	NotTaken      = 0.9                   // of the load; less than a falling load explains within ten minutes
	EvenLoad      = 0.35                  // standard deviations per mean, up to which the load of agents is even
	Heartbeat     = 1.0 / 16              // of the mean size; smaller transfers aren't work
	StillBusy     = 0.5                   // of the median rate of the past: an agent that was slower before it stopped ran out of work
)

// Windows are the time ranges of a diagnosis.
type Windows struct {
	Window time.Duration // speeds, rates and loss
	Longer time.Duration // speeds of agents with few transfers
	Silent time.Duration // without transfers, after which an agent is stalled
	Short  time.Duration // errors still going on
	Long   time.Duration // errors
	Again  time.Duration // each of two windows of errors that occur again and again
	Apart  time.Duration // between the ends of these windows

	Recent  time.Duration // range of past rates, which show whether an agent transfers regularly
	Regular time.Duration // minimum length of that range
	Past    time.Duration // past speeds that an agent is compared with
	Step    time.Duration // between two of them
	Gap     time.Duration // between them and now
	Steps   int           // minimum number of them
	Usual   float64       // quantile of them that is the usual speed

	Before time.Duration // in which agents have exited
}

// Rules returns the windows of the recording rules and alerts.
func Rules() Windows {
	return Windows{
		Window: 3 * time.Minute, Longer: 3 * time.Minute, Silent: 3 * time.Minute, Short: 2 * time.Minute, Long: 5 * time.Minute, Again: 4 * time.Minute, Apart: 5 * time.Minute,
		Recent: time.Hour, Regular: 10 * time.Minute,
		Past: 24 * time.Hour, Step: 10 * time.Minute, Gap: 5 * time.Minute, Steps: 3, Usual: 0.4,
		Before: 10 * time.Minute,
	}
}

// Watch returns the windows of a tool that watches for some time: at most those of the rules.
func Watch(length time.Duration) Windows {
	w := Rules()
	if length >= w.Recent {
		return w
	}
	w.Window = min(w.Window, length)
	w.Long, w.Longer = w.Window, w.Window
	w.Silent = min(w.Silent, length/2)
	w.Short = min(w.Short, length*2/5)
	w.Regular = min(w.Regular, length*2/5)
	w.Again, w.Apart = min(w.Again, length/2), min(w.Apart, length/2)
	w.Before = min(w.Before, length)
	return w
}

// Live returns the windows of a tool that has watched for some time, and goes on. Speeds and rates
// are those of window. An agent is compared with its speeds from a minute ago on, near the best, because the watch may have begun
// shortly before it became slower.
func Live(window, length time.Duration) Windows {
	const longest = 2 * time.Minute // of errors and losses, so that they don't stay for long
	const silent = 5 * time.Second  // at least: an agent may pause
	w := Watch(min(length, longest))
	w.Window = min(w.Window, window)
	w.Silent = min(max(w.Silent, silent), 3*window) // a hung agent is shown soon
	w.Past, w.Step, w.Gap, w.Usual = length, 30*time.Second, time.Minute, 0.9
	return w
}

// Hold is how long the alerts require that what they find has held.
const Hold = 2 * time.Minute

// bandsOf returns the two bands of a size. A band is a factor of 16 from a power of 4 on, so sizes that differ
// by less than a factor of 4 share one.
func bandsOf(size float64) [2]int {
	const least = 1024 // bytes; the size of smaller transfers hardly matters
	n := int(math.Floor(math.Log2(max(size, least)) / 2))
	return [2]int{n, n + 1}
}
