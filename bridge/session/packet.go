// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/nixl-otel/nixl-otel/bridge/internal/errtype"
)

// The devices whose shares a [Summary] reports. A packet may name any other.
const (
	CPU  = "cpu"
	IGPU = "igpu"
)

// auto is the device that a pipeline requests when its scheduler chooses one.
// A packet that requested it is never a fallback.
const auto = "auto"

// Packet is a work packet that ended. Only Operation and Device are required.
type Packet struct {
	// ID is the pipeline's number for the packet.
	ID int64
	// Layer is the index of the model's layer, -1 for what comes before the
	// first one.
	Layer int
	// Operation is the kind of work, such as attention_qkv_proj. A model has
	// few operations; a session distinguishes 200.
	Operation string
	// Device is the device that the packet ran on.
	Device string
	// DeviceTarget is the device that the pipeline requested. The packet
	// counts as a fallback if this is neither empty nor "auto" nor Device.
	DeviceTarget string
	// Worker is the worker instance that ran the packet. If empty, the session
	// derives it from Operation and Device.
	Worker string
	// Expert is the ID of the expert that the packet ran or selected, such as
	// "17". Empty means that there is none or that it isn't known.
	Expert string
	// Duration is how long the packet took. A negative one counts as 0.
	Duration time.Duration
	// Memory is the memory that the packet used, in bytes. 0 means unknown:
	// the CSV has 0.00, and the memory histogram doesn't count the packet.
	Memory int64
	// End is when the packet ended. The zero time means now.
	End time.Time
	// Err is why the packet failed, or nil if it succeeded.
	Err error
	// ErrorType is a name for the kind of Err, reported as error.type. There
	// must be few of them, so never use an error's text. If empty, the name is
	// that of Err's ErrorType method or, without one, Err's Go type.
	ErrorType string
	// Attributes are added to the data points of this packet: the phase of the
	// inference, the model. Make each set once and reuse it; then it costs
	// nothing per packet. Values must be valid UTF-8. A session distinguishes
	// 64 sets. The files don't contain them.
	Attributes attribute.Set
}

// errorType returns the low-cardinality name of the packet's error.
func (p *Packet) errorType() string {
	if p.ErrorType != "" {
		return p.ErrorType
	}
	return errtype.Of(p.Err)
}

// fellBack reports whether the packet ran on another device than requested.
func (p *Packet) fellBack() bool {
	return p.DeviceTarget != "" && p.DeviceTarget != auto && p.DeviceTarget != p.Device
}
