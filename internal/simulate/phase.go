// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"
)

// Phase is a time span at the end of each period on an agent's timeline. The zero Phase never
// occurs.
type Phase struct {
	Every, For time.Duration
}

// within returns the phase, scaled down if its first occurrence would end after d, so that it
// ends at d. If d is 0, the phase isn't changed.
func (p Phase) within(d time.Duration) Phase {
	if d <= 0 || d >= p.Every {
		return p
	}
	return Phase{Every: d, For: time.Duration(float64(p.For) / float64(p.Every) * float64(d))}
}

// inside reports whether a point on the timeline is within the phase.
func (p Phase) inside(up time.Duration) bool {
	return p.Every > 0 && up%p.Every >= p.Every-p.For
}

// progress returns the elapsed share of the phase at a point on the timeline. Outside the
// phase, it is 0.
func (p Phase) progress(up time.Duration) float64 {
	if !p.inside(up) || p.For == 0 {
		return 0
	}
	return float64(up%p.Every-(p.Every-p.For)) / float64(p.For)
}

// outside returns how much of the time until a point on the timeline isn't in the phase.
func (p Phase) outside(up time.Duration) time.Duration {
	if p.Every == 0 {
		return up
	}
	periods, rest := up/p.Every, up%p.Every
	return periods*(p.Every-p.For) + min(rest, p.Every-p.For) //nolint:durationcheck // periods is a number
}

// when is the inverse of outside.
func (p Phase) when(outside time.Duration) time.Duration {
	if p.Every == 0 {
		return outside
	}
	return outside/(p.Every-p.For)*p.Every + outside%(p.Every-p.For) //nolint:durationcheck // the quotient is a number
}
