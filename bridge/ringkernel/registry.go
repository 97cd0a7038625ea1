package ringkernel

import (
	"maps"
	"slices"
)

// registry is the kernels of a Runtime. It is replaced, never changed, so that
// who reads it needs no lock.
type registry struct {
	live map[string]*Kernel
	// retired are kernels that were unregistered, the oldest first. Their
	// counters are still reported: what they counted since the last collection
	// would be lost otherwise, and an id that comes back would count from 0 in
	// a series that can't.
	retired []*Kernel
}

// maxRetired bounds the memory for kernels that come and go under ever new
// ids: those that a Runtime has unregistered, and those that closed Runtimes
// have left to the provider's ledger. Their series end when newer ones push
// them out.
const maxRetired = 1000

// Register makes the Kernel for an id, or returns the one that is there. It
// returns nil, which is a Kernel that does nothing, when the Runtime is
// disabled.
//
// An id that was unregistered starts anew as [StateCreated], with snapshots
// from 0; its counters go on where they were, as a counter never goes back.
func (r *Runtime) Register(id string) *Kernel {
	if !r.Enabled() {
		return nil
	}
	if k := r.kernel(id); k != nil {
		return k
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.registry.Load()
	if k := old.live[id]; k != nil {
		return k // another goroutine was first
	}
	next := &registry{live: maps.Clone(old.live), retired: old.retired}
	if next.live == nil {
		next.live = make(map[string]*Kernel)
	}
	k := next.revive(id)
	if k == nil {
		k = &Kernel{runtime: r, id: id, created: r.now()}
		r.enter(k)
	}
	k.state.Store(uint32(StateCreated))
	k.startEra(r.now())
	next.live[id] = k
	r.registry.Store(next)
	return k
}

// revive takes a kernel out of the retired ones.
func (n *registry) revive(id string) *Kernel {
	i := slices.IndexFunc(n.retired, func(k *Kernel) bool { return k.id == id })
	if i < 0 {
		return nil
	}
	k := n.retired[i]
	n.retired = slices.Delete(slices.Clone(n.retired), i, i+1)
	return k
}

// Unregister takes a kernel out of the snapshots and ends its gauges. Its
// counters are reported on as they stand, so that nothing is lost that wasn't
// collected yet; of these, only the newest 1000 kernels are kept. An id that
// isn't registered is left at that.
func (r *Runtime) Unregister(id string) {
	if !r.Enabled() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.registry.Load()
	k := old.live[id]
	if k == nil {
		return
	}
	next := &registry{live: maps.Clone(old.live), retired: append(slices.Clip(old.retired), k)}
	delete(next.live, id)
	if over := len(next.retired) - maxRetired; over > 0 {
		r.pushOut(next.retired[:over])
		next.retired = next.retired[over:]
	}
	r.registry.Store(next)
	for q := range k.queues {
		k.queues[q].forget() // what it would read may be gone
	}
}

// pushOut ends the series of kernels. Those of a closed Runtime have ended, or
// are the ledger's.
func (r *Runtime) pushOut(kernels []*Kernel) {
	if r.closed.Load() {
		return
	}
	for _, k := range kernels {
		r.ledger.Drop(k.account, func(a *account) { a.settle(k) })
	}
}

// kernel is the registered kernel of an id, or nil.
func (r *Runtime) kernel(id string) *Kernel {
	if !r.Enabled() {
		return nil
	}
	return r.registry.Load().live[id]
}
