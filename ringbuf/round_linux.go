//go:build linux && (amd64 || arm64)

package ringbuf

import (
	"runtime/debug"
	"sync/atomic"
)

// Round looks at many rings, of which most are idle as a rule. What guards a
// look against a file that shrinks costs more than the look; a round does it
// once for all.
type Round struct{ at *Reader }

// Run calls fn, in which [Round.Idle] can be called. It says whether the file
// of the ring that was looked at last has shrunk, which has ended fn.
func (o *Round) Run(fn func()) (fault bool) {
	defer o.catch(debug.SetPanicOnFault(true), &fault)
	fn()
	return false
}

// catch is [Reader.catch] for a round.
func (o *Round) catch(old bool, fault *bool) {
	debug.SetPanicOnFault(old)
	if v := recover(); v != nil {
		if o.at == nil || !faultIn(o.at.mem, v) {
			panic(v)
		}
		*fault = true
	}
}

// Idle says whether a [Reader.Read] would find nothing new, whatever was read
// and waits to be committed. It makes the same checks, and leaves what is wrong
// for Read to say. It is never true for an observer.
//
// Another goroutine may use the reader meanwhile, but not close it. What it is
// about to do may or may not show.
func (o *Round) Idle(r *Reader) bool {
	at := r.at.Load()
	if at == nowhere {
		return false
	}
	o.at = r
	// In the order of look, whose comment says why.
	return atomic.LoadUint64(&r.hdr.writePos) == at&nextMask && atomic.LoadUint64(&r.hdr.readPos) == at>>nextBits && r.sameRing()
}

// Settled says whether all that was read is committed. As with [Round.Idle],
// the reader may be in use.
func (*Round) Settled(r *Reader) bool {
	at := r.at.Load()
	return at&nextMask == at>>nextBits
}
