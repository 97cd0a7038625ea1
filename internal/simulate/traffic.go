// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Traffic is the distribution of an agent's operations.
type Traffic struct {
	// Sizes have a log-normal distribution, in whole blocks, from one block to MaxSize.
	Block      uint64  // bytes
	MedianSize uint64  // bytes
	MaxSize    uint64  // bytes
	SizeSpread float64 // standard deviation of the size's logarithm
	LargeShare float64 // share of the transfers with MaxSize

	WriteShare float64 // share of writes; the others are reads

	// The time of a transfer is the sum of its post time, a latency, the time to move
	// its bytes at 50% to 100% of Bandwidth, and the time until the application polls.
	// A share of the transfers is delayed further.
	Bandwidth   float64       // bytes/s
	Latency     time.Duration // minimum; the mean of the exponential part is half of it
	PollEvery   time.Duration // maximum time until the application sees that a transfer is complete
	HeldUpShare float64       // share of delayed transfers
	HeldUp      time.Duration // mean delay, exponential

	// PostPerBlock is added to the post time for each block.
	PostPerBlock time.Duration

	// In a Degrading phase, Bandwidth decreases exponentially to DegradedTo times its
	// value. It recovers when the phase ends.
	Degrading  Phase
	DegradedTo float64

	// ErrorShare is the share of operations that end in an error.
	ErrorShare float64

	// In an outage, the peer is unreachable: OutageShare of the operations end with
	// remote_disconnect.
	Outages     Phase
	OutageShare float64
}

// KVCache returns the traffic of disaggregated serving, from prefill to decode.
//
// A block is the share of one GPU of eight for 16 tokens in one layer of a
// 70-billion-parameter model (one KV head with keys and values of 128 numbers of 2 bytes): 8 KiB.
// A chunk of a prompt consists of some hundreds of blocks: 4 MiB correspond to 100 tokens in 80
// layers. One transfer in a thousand reaches 512 MiB, a whole long prompt. The link has
// 400 Gbit/s.
func KVCache() Traffic {
	return Traffic{
		Block: 8 << 10, MedianSize: 4 << 20, MaxSize: 512 << 20, SizeSpread: 1.6,
		WriteShare:  0.6,
		Bandwidth:   50e9,
		Latency:     8 * time.Microsecond,
		PollEvery:   20 * time.Microsecond,
		HeldUpShare: 0.01, HeldUp: 2 * time.Millisecond,
	}
}

const micros = 1e6 // per second

// operation is a transfer, successful or not.
type operation struct {
	err    ringbuf.Type // if it failed; the other fields are unused then
	failed bool
	write  bool
	size   uint64 // bytes
	post   uint64 // microseconds, truncated like NIXL's
	xfer   uint64 // likewise, including the post time
	extra  uint64 // random bits for events of some layouts
}

// draw returns a random operation that ends at a point on the timeline. It always takes the same
// number of values from rng.
func (t *Traffic) draw(rng *rand.Rand, at time.Duration) operation {
	fails, extra := rng.Float64(), rng.Uint64()
	size := t.size(rng.NormFloat64(), extra)
	post := postMicros(size/t.Block, rng.NormFloat64()) + float64(size/t.Block)*t.PostPerBlock.Seconds()*micros

	latency := t.Latency.Seconds() * (1 + rng.ExpFloat64()/2)
	onWire := float64(size) / (t.bandwidth(at) * (0.5 + rng.Float64()/2))
	poll := t.PollEvery.Seconds() * rng.Float64()
	heldUp, write := rng.Float64(), rng.Float64()
	late := t.HeldUp.Seconds() * rng.ExpFloat64()
	if heldUp >= t.HeldUpShare {
		late = 0
	}
	share, status := t.ErrorShare, pickError(uint8(extra>>56))
	if t.Outages.inside(at) {
		share, status = t.OutageShare, ringbuf.TypeErrRemoteDisconnect
	}
	return operation{
		failed: fails < share,
		err:    status,
		write:  write < t.WriteShare,
		size:   size,
		post:   uint64(post),
		xfer:   uint64(post + (latency+onWire+poll+late)*micros),
		extra:  extra & (1<<56 - 1),
	}
}

// bandwidth returns the link's bandwidth at a point on the timeline.
func (t *Traffic) bandwidth(at time.Duration) float64 {
	progress := t.Degrading.progress(at)
	if progress == 0 {
		return t.Bandwidth
	}
	return t.Bandwidth * math.Pow(t.DegradedTo, progress)
}

func (t *Traffic) size(normal float64, extra uint64) uint64 {
	if t.LargeShare > 0 && float64(extra>>24&0xffff) < t.LargeShare*(1<<16) {
		return t.MaxSize / t.Block * t.Block
	}
	blocks := float64(t.MedianSize) * math.Exp(t.SizeSpread*normal) / float64(t.Block)
	most := t.MaxSize / t.Block
	if blocks >= float64(most) {
		return most * t.Block
	}
	return max(1, uint64(blocks)) * t.Block
}

// postMicros returns the time to pass a transfer to the backend: a few microseconds, and about a
// hundred more for tens of thousands of descriptors.
func postMicros(blocks uint64, normal float64) float64 {
	return (3 + 0.5*math.Sqrt(float64(blocks))) * math.Exp(0.4*normal)
}

// errorWeights are the relative frequencies of errors, in 256ths.
var errorWeights = []struct {
	err    ringbuf.Type
	weight int
}{
	{ringbuf.TypeErrBackend, 96},
	{ringbuf.TypeErrRemoteDisconnect, 56},
	{ringbuf.TypeErrCanceled, 32},
	{ringbuf.TypeErrNotFound, 24},
	{ringbuf.TypeErrInvalidParam, 12},
	{ringbuf.TypeErrRepostActive, 8},
	{ringbuf.TypeErrNotPosted, 8},
	{ringbuf.TypeErrMismatch, 6},
	{ringbuf.TypeErrNotAllowed, 4},
	{ringbuf.TypeErrNotSupported, 4},
	{ringbuf.TypeErrUnknown, 4},
	{ringbuf.TypeErrNoTelemetry, 2},
}

func pickError(at uint8) ringbuf.Type {
	left := int(at)
	for _, e := range errorWeights {
		if left < e.weight {
			return e.err
		}
		left -= e.weight
	}
	return ringbuf.TypeErrUnknown
}

const maxRegions = 4

// regions returns the sizes of the memory regions that a life registers: a few pools of whole GiB,
// like those of a server that splits its cache over GPUs.
func regions(rng *rand.Rand, into []uint64) []uint64 {
	for range 1 + rng.IntN(maxRegions) {
		into = append(into, uint64(1+rng.IntN(64))<<30)
	}
	return into
}
