// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "slices"

// TimesByClass returns the transfer times and post times of all known events, in
// microseconds, by size class. Times of transfers with missing events have the class "".
// Those of the last transfer are absent while it isn't complete.
func (o *Oracle) TimesByClass() (durations, posts map[string][]uint64) {
	durations, posts = make(map[string][]uint64), make(map[string][]uint64)
	for i, e := range o.Known[:len(o.Known)-len(o.Unfinished())] {
		switch e.Name {
		case "agent_xfer_time":
			class := o.classOf(i - 1)
			durations[class] = append(durations[class], e.Value)
		case "agent_xfer_post_time":
			class := o.classOf(i)
			posts[class] = append(posts[class], e.Value)
		}
	}
	return durations, posts
}

// ClassPoints returns the histograms of times by size class.
func (o *Oracle) ClassPoints() Points {
	p := make(Points)
	durations, posts := o.TimesByClass()
	for metric, byClass := range map[string]map[string][]uint64{"nixl.transfer.duration": durations, "nixl.transfer.post.duration": posts} {
		for class, times := range byClass {
			point := metric
			if class != "" {
				point += "{nixl.transfer.size_class=" + class + "}"
			}
			p.distribution(point, times, perSecond, o.DurationBounds)
		}
	}
	return p
}

// classOf returns the size class of the transfer that starts at an index of Known.
func (o *Oracle) classOf(i int) string {
	t, direction := o.transferAt(i)
	if direction == "" {
		return ""
	}
	switch kib := float64(t[2].Value) / 1024; {
	case kib <= 64:
		return "le_64KiB"
	case kib <= 1024:
		return "le_1MiB"
	case kib <= 16*1024:
		return "le_16MiB"
	default:
		return "gt_16MiB"
	}
}

// Unfinished returns the last known events, which belong to an incomplete transfer.
func (o *Oracle) Unfinished() []Event {
	order := []string{"agent_xfer_post_time", "agent_xfer_time", "agent_tx_bytes", "agent_rx_bytes"}
	n, next := 0, len(order)
	for _, e := range slices.Backward(o.Known) {
		at := slices.Index(order, e.Name)
		if at < 0 || at >= next || at == 2 && next == 3 {
			break
		}
		next = at
		n++
	}
	return o.Known[len(o.Known)-n:]
}
