// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package tally

import (
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Nearly all events of a ring belong to whole transfers, four in a row. Runs of them are
// counted in short loops. Any other event ends a run and is counted by itself.

// group is the events of one transfer.
type group = [groupSize]ringbuf.TypedEvent

// maxRun limits a run so that its sums of values of up to quickBits fit in 64 bits.
const maxRun = 1 << (64 - quickBits)

// transfers counts the run of transfers at the beginning of groups, and returns their
// number. at is the index of the first event in the events that are being counted.
func (a *Agent) transfers(groups []group, at int) int {
	if len(groups) == 0 {
		return 0
	}
	d, ok := transfer(&groups[0])
	if !ok {
		return 0
	}
	n := a.sizeRun(groups[:min(len(groups), maxRun)])
	if n == 0 {
		a.sizes[d].record(groups[0][2].Value)
		a.requested(int(d), 1)
		n = 1
	}
	for done := a.timeRun(groups[:n]); done < n; done += a.timeRun(groups[done:n]) {
		a.post.record(groups[done][0].Value)
		a.duration.record(groups[done][1].Value)
		done++
	}
	if a.watch != nil && a.watch.Transfer != nil {
		a.work += n * watchedWork
		a.watch.transfers(groups[:n], at)
	}
	if !a.measuresThroughput() {
		return n
	}
	for done := a.throughputRun(groups[:n]); done < n; done += a.throughputRun(groups[done:n]) {
		g := &groups[done]
		a.throughput[(g[2].Type-ringbuf.TypeTxBytes)&1].record(semconv.Throughput(g[2].Value, g[1].Value))
		done++
	}
	return n
}

// requested counts the requests of n transfers.
func (a *Agent) requested(direction int, n uint64) {
	a.counters[int(ringbuf.TypeTxRequests)+direction].ones(n)
	a.groups.whole(direction, n)
}

// transfer reports whether four events belong to one transfer, and returns its
// direction. NIXL counts a transfer as one request.
func transfer(g *group) (direction uint64, ok bool) {
	d := uint64(g[2].Type - ringbuf.TypeTxBytes)
	return d, g[0].Type == ringbuf.TypeXferPostTime && g[1].Type == ringbuf.TypeXferTime &&
		d <= 1 && uint64(g[3].Type-ringbuf.TypeTxRequests) == d && g[3].Value == 1
}

// sizeRun counts sizes and requests of transfers, up to the first size that needs the
// slow path.
func (a *Agent) sizeRun(groups []group) (n int) {
	var sum [2]uint64
	var received uint64
	scale := a.sizes[0].scale
	for ; n < len(groups); n++ {
		g := &groups[n]
		d, ok := transfer(g)
		if !ok {
			break
		}
		h := &a.sizes[d]
		v := g[2].Value
		if v < h.low || v > h.high {
			break
		}
		received += d
		sum[d] += v
		h.last = v
		h.buckets[scale.quickBucket(v)]++
	}
	requests := [2]uint64{uint64(n) - received, received}
	for d := range requests {
		a.sizes[d].sum.Add(sum[d])
		a.requested(d, requests[d])
	}
	return n
}

// timeRun counts the times of transfers, up to the first times that need the slow path.
func (a *Agent) timeRun(groups []group) (n int) {
	post, took, scale := &a.post, &a.duration, a.duration.scale
	postLow, postHigh, tookLow, tookHigh := post.low, post.high, took.low, took.high
	var postSum, tookSum uint64
	for ; n < len(groups); n++ {
		g := &groups[n]
		p, t := g[0].Value, g[1].Value
		if p < postLow || p > postHigh || t < tookLow || t > tookHigh {
			break
		}
		postSum += p
		tookSum += t
		post.buckets[scale.quickBucket(p)]++
		took.buckets[scale.quickBucket(t)]++
	}
	if n > 0 {
		post.sum.Add(postSum)
		took.sum.Add(tookSum)
		post.last, took.last = groups[n-1][0].Value, groups[n-1][1].Value
	}
	return n
}

// throughputRun counts the throughput of transfers, up to the first that is outside the
// known range or the table of fineBucket, or too large for quickThroughput. Without the
// table, that is the first one.
func (a *Agent) throughputRun(groups []group) (n int) {
	var sum, received uint64
	cells := a.throughput[0].scale.fine
	for ; n < len(groups); n++ {
		g := &groups[n]
		d := uint64(g[2].Type-ringbuf.TypeTxBytes) & 1
		bytes, took := g[2].Value, g[1].Value
		if (bytes|took)>>exactBits != 0 {
			break
		}
		f := quickThroughput(bytes, took)
		cell := fineCell(f)
		if cell >= uint64(len(cells)) {
			break // includes transfers of 0 µs
		}
		h := &a.throughput[d]
		v := uint64(int64(f))
		if v < h.min || v > h.max {
			break
		}
		sum += v
		received += v & -d
		h.last = v
		h.buckets[fineBucket(cells, cell, v)]++
	}
	a.throughput[Transmit].sum.Add(sum - received)
	a.throughput[Receive].sum.Add(received)
	return n
}

// exactBits is the maximum bit length for quickThroughput: float64 represents a number
// below 2^33, multiplied by a million, exactly.
const exactBits = 33

// quickThroughput is [semconv.Throughput] before rounding down, for numbers of up to
// exactBits bits and at least 1 µs. It uses floating-point division, which is faster than
// integer division. Rounded down, the result is exact: a quotient of integers a/b that isn't
// an integer is at least 1/b below the next integer, and rounding adds less than a/b/2^53.
func quickThroughput(bytes, micros uint64) float64 {
	return float64(int64(bytes*microsPerSecond)) / float64(int64(micros))
}
