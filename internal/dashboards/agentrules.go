// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
)

// Recorded series of agents, of agents in a band, and of jobs. Package diagnose defines and explains
// what they mean.
const (
	agentRequests = "agent:nixl_transfer_requests:rate3m"
	agentBytes    = "agent:nixl_transfer_io_bytes:rate3m"
	agentSize     = "agent:nixl_transfer_size_bytes:mean3m"
	agentTime     = "agent:nixl_transfer_duration_seconds:mean3m"
	agentPost     = "agent:nixl_transfer_post_duration_seconds:mean3m"
	agentSpeed    = "agent:nixl_transfer_throughput:mean3m"
	agentRelative = "agent:nixl_transfer_throughput:relative"

	agentMostTime = "agent:nixl_transfer_duration_seconds:p80"
	agentFastTime = "agent:nixl_transfer_duration_seconds:p10"
	agentMostSize = "agent:nixl_transfer_size_bytes:p80"

	agentPastSpeed = "agent:nixl_transfer_throughput:past1d"
	agentPastTime  = "agent:nixl_transfer_duration_seconds:past1d"
	agentRegular   = "agent:nixl_transfer_requests:regular"

	agentErrorsShort = "agent:nixl_errors:ratio2m"
	agentErrorsLong  = "agent:nixl_errors:ratio5m"

	// The findings: a series for each agent that is far slower than its peers, far slower than
	// it was, hangs, spends its time on posting, lets small transfers wait, or fails.
	agentStraggler = "agent:nixl_straggler:ratio"
	agentSlower    = "agent:nixl_slower:ratio"
	agentStalled   = "agent:nixl_stalled:rate"
	agentPosting   = "agent:nixl_post_bound:ratio"
	agentWaiting   = "agent:nixl_small_behind_large:ratio"
	agentFailing   = "agent:nixl_failing:ratio"
	agentLoss      = "agent:nixl_loss:increase5m"

	bandSpeed     = "band:nixl_transfer_throughput:mean3m"
	bandTime      = "band:nixl_transfer_duration_seconds:mean3m"
	bandRelative  = "band:nixl_transfer_throughput:relative"
	bandSlow      = "band:nixl_slow:ratio"
	bandMedian    = "band:nixl_transfer_throughput:median"
	bandDeviation = "band:nixl_transfer_throughput:mad"
	bandMedTime   = "band:nixl_transfer_duration_seconds:median"

	jobRunning = "job:nixl_agents:running"
)

// Recorded thresholds.
const (
	stragglerSpeed = "nixl_threshold:straggler_speed"
	slowerSpeed    = "nixl_threshold:slower_speed"
	postLimit      = "nixl_threshold:post_share"
	errorLimit     = "nixl_threshold:error_share"
	fillLimit      = "nixl_threshold:ring_fill"
)

// thresholds returns the thresholds that users may change.
func thresholds() []Recorded {
	threshold := func(name string, value float64) Recorded {
		return Recorded{Name: name, Expr: fmt.Sprintf("vector(%g)", value)}
	}
	return []Recorded{
		threshold(stragglerSpeed, diagnose.StragglerSpeed),
		threshold(slowerSpeed, diagnose.SlowerSpeed),
		threshold(postLimit, diagnose.PostShare),
		threshold(errorLimit, diagnose.ErrorShare),
		threshold(fillLimit, diagnose.FullShare),
	}
}

const (
	bandLabels = peerLabels + ", band"
	ofBand     = `on (` + bandLabels + `) group_left ()`
	byJob      = `by (` + peerLabels + `)`
	ofJob      = `on (` + peerLabels + `)`
	isDown     = `max by (` + agentLabels + `) (nixl_agent_up) == 0`
)

// agentRules returns the rules of agents, in the order in which they depend on each other.
func agentRules() []Recorded {
	var list []Recorded
	for _, part := range [][]Recorded{paceRules(), peerRules(), pastRules(), stallRules(), transferRules(), jobRules()} {
		list = append(list, part...)
	}
	return list
}

// span returns a duration as in PromQL.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
}

var windows = diagnose.Rules()

// paceRules returns the rates and means of each agent. An agent has a speed only if it completed
// enough transfers.
func paceRules() []Recorded {
	in := terms{window: span(windows.Window)}
	return []Recorded{
		{Name: agentRequests, Expr: in.fillIn(ofAgents + ofRequests)},
		{Name: agentBytes, Expr: in.fillIn(ofAgents + `(rate(nixl_transfer_io_bytes_total{@}[@]))`)},
		{Name: agentTime, Expr: in.fillIn(transferTime.mean(agentLabels)) + ` > 0`},
		{Name: agentPost, Expr: in.fillIn(postTime.mean(agentLabels)) + ` > 0`},
		{Name: agentSize, Expr: agentBytes + ` / ` + agentRequests + ` > 0`},
		{Name: agentSpeed, Expr: fmt.Sprintf(`%s / %s and %s * %g >= %d`, agentSize, agentTime, agentRequests, windows.Window.Seconds(), diagnose.MinTransfers)},
	}
}

// peerRules returns the rules that compare agents with their peers.
func peerRules() (list []Recorded) {
	for _, b := range diagnose.Bands() {
		within := fmt.Sprintf(`%s >= %.0f < %.0f`, agentSize, b.From, b.To)
		list = append(list,
			Recorded{Name: bandSpeed, Band: b.Name, Expr: agentSpeed + ` and ` + within},
			Recorded{Name: bandTime, Band: b.Name, Expr: agentTime + ` and ` + within + ` and ` + agentSpeed})
	}
	by := `by (` + bandLabels + `)`
	// The median of the other agents: another value at the far end moves the median as far as leaving
	// out a straggler does.
	others := func(values, end string) string { return fmt.Sprintf(`quantile %s (0.5, %s or %s)`, by, values, end) }
	count := fmt.Sprintf(`count %s (%s)`, by, bandSpeed)
	return append(list,
		Recorded{Name: bandMedian, Expr: others(bandSpeed, count+` * Inf`) + fmt.Sprintf(` and %s >= %d`, count, diagnose.MinPeers)},
		Recorded{Name: bandMedTime, Expr: others(bandTime, bandMedian+` * 0`)},
		Recorded{Name: bandDeviation, Expr: others(`abs(`+bandSpeed+` - `+ofBand+` `+bandMedian+`)`, bandMedian+` * 0`)},
		Recorded{Name: bandRelative, Expr: bandSpeed + ` / ` + ofBand + ` ` + bandMedian},
		Recorded{Name: agentRelative, Expr: `min by (` + agentLabels + `) (` + bandRelative + `)`},
		Recorded{Name: bandSlow, Expr: bandRelative + ` < scalar(` + stragglerSpeed + `)` +
			fmt.Sprintf(` and %s < %s (%s - %d * %g * %s)`, bandSpeed, ofBand, bandMedian, diagnose.Spread, diagnose.PerDeviation, bandDeviation) +
			fmt.Sprintf(` and %s > %s (%g * %s)`, bandTime, ofBand, diagnose.LongerTime, bandMedTime)},
		Recorded{Name: agentStraggler, Expr: `min by (` + agentLabels + `) (` + bandSlow + ` unless on (` + bandLabels + `) (count ` + by + ` (` + bandSlow + `)` +
			fmt.Sprintf(` > %g * count %s (%s)))`, diagnose.Company, by, bandSpeed)},
	)
}

// pastRules returns the rules that compare agents with their own past.
func pastRules() []Recorded {
	past := func(series string) string {
		over := fmt.Sprintf(`%s[%s:%s] offset %s`, series, span(windows.Past), span(windows.Step), span(windows.Gap))
		return fmt.Sprintf(`quantile_over_time(0.5, %s) and count_over_time(%[1]s) >= %d`, over, windows.Steps)
	}
	return []Recorded{
		{Name: agentPastSpeed, Expr: past(agentSpeed)},
		{Name: agentPastTime, Expr: past(agentTime)},
		{Name: agentSlower, Expr: agentSpeed + ` / ` + agentPastSpeed + ` < scalar(` + slowerSpeed + `)` +
			fmt.Sprintf(` and %s > %g * %s`, agentTime, diagnose.LongerTime, agentPastTime)},
	}
}

// stallRules returns the rules that find agents that hang. The series of an agent that transfers
// regularly stays as it was while the agent has no transfers.
func stallRules() []Recorded {
	recent := agentRequests + `[` + span(windows.Recent) + `]`
	return []Recorded{
		{Name: agentRegular, Expr: `(` + agentRequests +
			fmt.Sprintf(` and %s >= %g * quantile_over_time(0.5, %s)`, agentRequests, diagnose.StillBusy, recent) +
			fmt.Sprintf(` and min_over_time(%s) * %g >= %d`, recent, windows.Silent.Seconds(), diagnose.MinTransfers) +
			fmt.Sprintf(` and count_over_time(%s) >= %g`, recent, windows.Regular.Minutes()) +
			`) or (last_over_time(` + agentRegular + `[5m]) and ` + agentRequests + ` == 0)`},
		{Name: agentStalled, Expr: agentRegular + ` and ` + agentRequests + ` == 0 unless ` + isDown},
	}
}

// transferRules returns the rules about posting, sizes, errors and loss.
func transferRules() []Recorded {
	in := terms{window: span(windows.Window)}
	quantile := func(h histogram, phi float64) string { return in.fillIn(h.quantile(fmt.Sprint(phi), agentLabels)) }
	failed := func(window time.Duration) string {
		return terms{window: span(window)}.fillIn(errorRatio(agentLabels))
	}
	loss := func(metric string) string { return increase(metric, span(windows.Long)) + ` > 0` }
	return []Recorded{
		{Name: agentPosting, Expr: agentPost + ` / ` + agentTime + ` > scalar(` + postLimit + `)` +
			fmt.Sprintf(` and %s > %g and %s`, agentPost, diagnose.PostTime.Seconds(), agentSpeed)},
		{Name: agentMostTime, Expr: quantile(transferTime, diagnose.MostTransfers)},
		{Name: agentFastTime, Expr: quantile(transferTime, diagnose.FastTransfers)},
		{Name: agentMostSize, Expr: quantile(transferSize, diagnose.MostTransfers)},
		{Name: agentWaiting, Expr: agentMostTime + ` / ` + agentTime + fmt.Sprintf(` > %.3g`, diagnose.MixedTimes) +
			fmt.Sprintf(` and %s > %g`, agentMostTime, diagnose.WaitingTime.Seconds()) +
			fmt.Sprintf(` and %s < %g * %s`, agentMostSize, diagnose.MixedSizes, agentSize) +
			fmt.Sprintf(` and %s < %g * %s`, agentFastTime, diagnose.WaitingFast, agentMostTime) +
			` and ` + agentSpeed},
		{Name: agentErrorsShort, Expr: failed(windows.Short)},
		{Name: agentErrorsLong, Expr: failed(windows.Long)},
		{Name: agentFailing, Expr: agentErrorsShort + ` > scalar(` + errorLimit + `) and ` + agentErrorsLong + fmt.Sprintf(` > %g * scalar(%s)`, diagnose.ErrorLong/diagnose.ErrorShare, errorLimit) +
			` and ` + increase(`nixl_errors_total{error_type!="canceled"}`, span(windows.Long)) + fmt.Sprintf(` > %d`, diagnose.MinErrors)},
		{Name: agentLoss, Expr: loss("nixl_telemetry_ring_saturations_total") + ` or ` + loss("nixl_telemetry_ring_torn_groups_total") + ` or ` + loss("nixl_telemetry_events_dropped_total")},
	}
}

func jobRules() []Recorded {
	return []Recorded{
		{Name: jobRunning, Expr: `count ` + byJob + ` (max by (` + agentLabels + `) (nixl_agent_up) == 1)`},
	}
}
