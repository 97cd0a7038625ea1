// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strings"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Series are metrics that are sums over events, by name and attributes. A histogram has two series:
// the number of its values, and their sum in the ring's unit.
type Series map[string]uint64

// The parts of a histogram.
const (
	Count = " count"
	Sum   = " sum"
)

// Series returns the metrics of the ledger's events.
func (l Ledger) Series() Series {
	out := Series{}
	for n, s := range l {
		kind, known := kindOf(n.Name)
		if known {
			n.Name = kind.String() // independently of the layout
		}
		labels := fmt.Sprintf("{nixl.event.category=%s,nixl.event.name=%s}", n.Category, n.Name)
		out["nixl.events"+labels] += s.Count
		switch n.Category {
		case "connection", "backend", "system", "custom":
			out["nixl.event.value"+labels] += s.Sum
		}
		if known {
			out.known(kind, s)
		}
	}
	return out
}

// kindOf returns NIXL's type with a name.
func kindOf(name string) (ringbuf.Type, bool) {
	for kind := range ringbuf.TypeEventsDropped + 1 {
		if name == kind.String() {
			return kind, true
		}
	}
	return 0, false
}

// known adds events of one of NIXL's own types.
func (out Series) known(kind ringbuf.Type, s Sums) {
	const transmit, receive = "{nixl.transfer.direction=transmit}", "{nixl.transfer.direction=receive}"
	switch kind {
	case ringbuf.TypeTxBytes:
		out.transferred(transmit, s)
	case ringbuf.TypeRxBytes:
		out.transferred(receive, s)
	case ringbuf.TypeTxRequests:
		out["nixl.transfer.requests"+transmit] += s.Sum
	case ringbuf.TypeRxRequests:
		out["nixl.transfer.requests"+receive] += s.Sum
	case ringbuf.TypeXferTime:
		out.distributed("nixl.transfer.duration", s)
	case ringbuf.TypeXferPostTime:
		out.distributed("nixl.transfer.post.duration", s)
	case ringbuf.TypeMemoryRegistered:
		out["nixl.memory.registered"] += s.Sum
	case ringbuf.TypeMemoryDeregistered:
		out["nixl.memory.deregistered"] += s.Sum
	case ringbuf.TypeEventsDropped:
		out["nixl.telemetry.events.dropped"] += s.Sum
	default:
		out["nixl.errors{error.type="+strings.TrimPrefix(kind.String(), "agent_err_")+"}"] += s.Sum
	}
}

func (out Series) transferred(direction string, s Sums) {
	out["nixl.transfer.io"+direction] += s.Sum
	out.distributed("nixl.transfer.size"+direction, s)
}

func (out Series) distributed(metric string, s Sums) {
	out[metric+Count] += s.Count
	out[metric+Sum] += s.Sum
}

// Bucket returns the suffix of bucket i of a histogram.
func Bucket(i int) string { return fmt.Sprintf(" bucket %d", i) }
