package session

import (
	"time"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
)

// The devices whose shares a [Summary] knows. A packet may name any other.
const (
	CPU  = "cpu"
	IGPU = "igpu"
)

// auto is the device that a pipeline asks for when it leaves the choice to its
// scheduler. A packet that asked for it can't have fallen back.
const auto = "auto"

// Packet is a work packet that ended.
type Packet struct {
	// ID is the pipeline's number for the packet.
	ID int64
	// Layer is the index of the model's layer, -1 for what comes before the
	// first one.
	Layer int
	// Operation is what was done, such as attention_qkv_proj. The operations
	// of a model are a small set; see [WithOperationLimit].
	Operation string
	// Device is where the packet ran.
	Device string
	// DeviceTarget is the device that was asked for. One that isn't empty,
	// isn't "auto" and isn't Device counts as a fallback.
	DeviceTarget string
	// Duration is how long the packet took. A negative one counts as 0.
	Duration time.Duration
	// Memory is the memory that the packet used, in bytes. 0 stands for
	// unknown: the CSV says 0.00 and the histogram of memory leaves it out.
	Memory int64
	// End is when the packet ended. The zero time stands for now.
	End time.Time
	// Err is why the packet failed, nil for a success.
	Err error
	// ErrorType is a name for the kind of Err, the error.type of metrics. It
	// must be one of few: never the text of an error. Where it is empty the
	// type is Err's ErrorType method's word, or the Go type of Err.
	ErrorType string
}

// errorType is the low-cardinality name for the packet's error.
func (p *Packet) errorType() string {
	if p.ErrorType != "" {
		return p.ErrorType
	}
	return errtype.Of(p.Err)
}

// fellBack reports whether the packet ran elsewhere than it was asked to.
func (p *Packet) fellBack() bool {
	return p.DeviceTarget != "" && p.DeviceTarget != auto && p.DeviceTarget != p.Device
}
