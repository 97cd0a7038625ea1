package ringkernel

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/expo"
	"github.com/nixl-otel/nixl-otel/bridge/internal/lane"
)

// Kernel records what one ring kernel does. [Runtime.Register] makes it.
//
// All methods are safe for concurrent use, and a nil *Kernel does nothing:
// that is what a disabled Runtime registers.
type Kernel struct {
	runtime *Runtime
	id      string
	created time.Time // the first time that the id was registered
	account *account
	points  points // the account's

	lanes    [lane.Count]atomic.Pointer[stripe]
	errors   errorTotal
	queues   [queues]queue
	state    atomic.Uint32
	received moment        // the last message
	window   atomic.Uint64 // in which the clock was read for it
	era      atomic.Pointer[era]
}

// stripe is one lane's share of a kernel's counts.
type stripe struct {
	received, sent, dropped atomic.Int64
	latency                 expo.Histogram // its count is the messages processed
	_                       [64]byte       // keeps the next stripe off this one's cache lines
}

// ID is the id that the kernel was registered with.
func (k *Kernel) ID() string {
	if k == nil {
		return ""
	}
	return k.id
}

// Received counts a message that came into the input queue, and notes the
// time, as [WithClock] says.
func (k *Kernel) Received() {
	if k != nil {
		k.receive()
	}
}

func (k *Kernel) receive() {
	k.lane().received.Add(1)
	if k.window.Load() != k.runtime.window.number.Load() {
		k.noteTime()
	}
}

func (k *Kernel) noteTime() {
	r := k.runtime
	number := r.window.number.Load()
	k.received.advance(r.now())
	if !r.exactTimes && !r.window.over.Load() {
		k.window.Store(number)
		r.window.arm()
	}
}

// Sent counts a message that was put on the output queue.
func (k *Kernel) Sent() {
	if k != nil {
		k.lane().sent.Add(1)
	}
}

// Dropped counts a message that was thrown away, for example because a queue
// was full.
func (k *Kernel) Dropped() {
	if k != nil {
		k.lane().dropped.Add(1)
	}
}

// Processed counts a message that was processed, and how long that took. A
// latency of 0 is a latency like others; one below 0, which a clock that was
// set back may give, counts as 0.
func (k *Kernel) Processed(latency time.Duration) {
	if k != nil {
		k.process(max(latency, 0))
	}
}

func (k *Kernel) process(latency time.Duration) {
	k.lane().latency.Record(int64(latency))
	if h := k.runtime.instruments.duration; h != nil {
		h.Record(context.Background(), latency.Seconds(), k.points.record...)
	}
}

// Error counts an error, by its type. The text of err is never reported; a
// snapshot has err itself as LastError. A nil error does nothing.
func (k *Kernel) Error(err error) {
	if k != nil && err != nil {
		k.fail(err)
	}
}

func (k *Kernel) fail(err error) {
	name := k.runtime.errorTypeOf(err) // outside all locks: it may be anyone's code
	k.errors.add(err)
	if !k.runtime.closed.Load() {
		k.account.errors.add(&k.points, name)
	}
}

// SetState sets the state that the kernel is in. A kernel starts as
// [StateCreated]. A value that is no state does nothing.
func (k *Kernel) SetState(s State) {
	if k != nil && s < states {
		k.state.Store(uint32(s))
	}
}

// SetQueueSize says how many messages are in a queue. What is below 0 counts
// as 0.
func (k *Kernel) SetQueueSize(q Queue, messages int) {
	if k != nil && q < queues {
		k.queues[q].size.set(messages)
	}
}

// SetQueueCapacity says how many messages a queue can hold. What is below 0
// counts as 0.
func (k *Kernel) SetQueueCapacity(q Queue, messages int) {
	if k != nil && q < queues {
		k.queues[q].capacity.set(messages)
	}
}

// ObserveQueue has the size and the capacity of a queue read when they are
// asked for, in place of what is set. For a channel:
//
//	k.ObserveQueue(ringkernel.InputQueue, func() (size, capacity int) { return len(in), cap(in) })
//
// The function is called from any goroutine, by snapshots and collections,
// until the kernel is unregistered. A nil function goes back to what was set.
func (k *Kernel) ObserveQueue(q Queue, read func() (size, capacity int)) {
	switch {
	case k == nil || q >= queues:
	case read == nil:
		k.queues[q].source.Store(nil)
	default:
		k.queues[q].source.Store(&read)
	}
}

// lane is the stripe of the goroutine that runs.
func (k *Kernel) lane() *stripe {
	p := &k.lanes[lane.Index()]
	if s := p.Load(); s != nil {
		return s
	}
	p.CompareAndSwap(nil, new(stripe))
	return p.Load()
}
