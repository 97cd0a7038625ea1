package ringkernel

import "time"

// The methods of this file find a kernel by its id each time. They do nothing
// for an id that isn't registered.

// RecordReceive is [Kernel.Received] of the kernel with an id.
func (r *Runtime) RecordReceive(id string) { r.kernel(id).Received() }

// RecordSend is [Kernel.Sent] of the kernel with an id.
func (r *Runtime) RecordSend(id string) { r.kernel(id).Sent() }

// RecordProcess is [Kernel.Processed] of the kernel with an id.
func (r *Runtime) RecordProcess(id string, latency time.Duration) { r.kernel(id).Processed(latency) }

// RecordDrop is [Kernel.Dropped] of the kernel with an id.
func (r *Runtime) RecordDrop(id string) { r.kernel(id).Dropped() }

// RecordError is [Kernel.Error] of the kernel with an id.
func (r *Runtime) RecordError(id string, err error) { r.kernel(id).Error(err) }

// SetState is [Kernel.SetState] of the kernel with an id.
func (r *Runtime) SetState(id string, s State) { r.kernel(id).SetState(s) }

// SetQueueSize is [Kernel.SetQueueSize] of the kernel with an id.
func (r *Runtime) SetQueueSize(id string, q Queue, messages int) {
	r.kernel(id).SetQueueSize(q, messages)
}

// SetQueueCapacity is [Kernel.SetQueueCapacity] of the kernel with an id.
func (r *Runtime) SetQueueCapacity(id string, q Queue, messages int) {
	r.kernel(id).SetQueueCapacity(q, messages)
}
