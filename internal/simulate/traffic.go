// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Traffic is the distribution of an agent's operations.
type Traffic struct {
	// Sizes are log-normal, in whole blocks, from one block to MaxSize.
	Block      uint64  // bytes
	MedianSize uint64  // bytes
	MaxSize    uint64  // bytes
	SizeSpread float64 // standard deviation of the size's logarithm
	LargeShare float64 // of the transfers; these are of MaxSize

	WriteShare float64 // of the transfers; the others are reads

	// A transfer takes its post time, a latency, the time that its bytes take
	// at Bandwidth times a share from a half to one, and the time until the
	// application polls. Some are held up beyond that.
	Bandwidth   float64       // bytes/s
	Latency     time.Duration // the least; an exponential with half its mean comes on top
	PollEvery   time.Duration // the application sees a transfer complete up to this much later
	HeldUpShare float64       // of the transfers
	HeldUp      time.Duration // mean, exponential

	// Posting a block takes PostPerBlock on top of the usual post time.
	PostPerBlock time.Duration

	// With Queue, a transfer waits until the bytes of those before it are moved.
	Queue bool

	// While the link is Degrading, Bandwidth falls to DegradedTo times its value,
	// by the same factor each second. It recovers when the phase ends.
	Degrading  Phase
	DegradedTo float64

	// ErrorShare of the operations end in an error instead.
	ErrorShare float64

	// In an outage the peer is gone: OutageShare of the operations end with
	// remote_disconnect.
	Outages     Phase
	OutageShare float64
}

// KVCache is the traffic of disaggregated serving, prefill to decode.
//
// A block is what one GPU of eight keeps for 16 tokens in one layer of a
// 70-billion-parameter model (one KV head of 128 numbers of 2 bytes, keys and
// values): 8 KiB. A chunk of a prompt is some hundreds of blocks: 4 MiB are 100
// tokens over 80 layers. One transfer in a thousand reaches 512 MiB, a long
// prompt at once. The link is 400 Gbit/s.
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

func (t *Traffic) validate() error {
	share := func(s float64) bool { return s >= 0 && s <= 1 }
	switch {
	case t.Block == 0 || t.MedianSize == 0 || t.MaxSize < t.Block:
		return errors.New("traffic needs a block, a median size, and a maximum of at least one block")
	case t.MaxSize > 1<<50:
		return errors.New("traffic with transfers above 1 PiB")
	case !(t.SizeSpread >= 0 && t.SizeSpread < 10):
		return errors.New("traffic needs a size spread from 0 to 10")
	case !(t.Bandwidth > 0):
		return errors.New("traffic needs a bandwidth above 0")
	case !share(t.OutageShare) || !share(t.WriteShare) || !share(t.HeldUpShare) || !share(t.ErrorShare) || !share(t.LargeShare):
		return errors.New("traffic with a share that is not between 0 and 1")
	case t.Latency < 0 || t.PollEvery < 0 || t.HeldUp < 0 || t.PostPerBlock < 0:
		return errors.New("traffic with a negative time")
	case t.Degrading != Phase{} && !(t.DegradedTo > 0 && t.DegradedTo <= 1):
		return errors.New("a degrading link needs a share of its bandwidth above 0, and at most 1")
	}
	return errors.Join(t.Outages.validate(), t.Degrading.validate())
}

// operation is one thing that an application asks of its agent.
type operation struct {
	err    ringbuf.Type // of an operation that failed; the rest is for those that didn't
	failed bool
	write  bool
	size   uint64 // bytes
	post   uint64 // whole microseconds, truncated as NIXL does
	xfer   uint64 // the same, post time included
	extra  uint64 // bits for what only some layouts write
}

// link is what an agent's transfers share.
type link struct {
	free float64 // the point of the timeline, in seconds, from which on it is free
}

// wait returns how long a transfer waits for the link at a point of the timeline,
// and lets it have the link for a time, all in seconds.
func (l *link) wait(at, onWire float64) float64 {
	wait := max(0, l.free-at)
	l.free = at + wait + onWire
	return wait
}

// draw is the operation that ends at a point of the timeline. It takes the same
// numbers from rng for every operation, whatever becomes of them.
func (t *Traffic) draw(rng *rand.Rand, l *link, at time.Duration) operation {
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
	if t.Queue {
		late += l.wait(at.Seconds(), onWire)
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

// bandwidth returns the link's bandwidth at a point of the timeline.
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

// postMicros is what it takes to hand a transfer to the backend: a few
// microseconds, and a hundred more for tens of thousands of descriptors.
func postMicros(blocks uint64, normal float64) float64 {
	return (3 + 0.5*math.Sqrt(float64(blocks))) * math.Exp(0.4*normal)
}

// errorWeights says how often an error is which, in 256ths.
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

// regions are the sizes of the memory that a life registers: a few pools of
// whole GiB, as a server splits its cache over GPUs.
func regions(rng *rand.Rand, into []uint64) []uint64 {
	for range 1 + rng.IntN(maxRegions) {
		into = append(into, uint64(1+rng.IntN(64))<<30)
	}
	return into
}
