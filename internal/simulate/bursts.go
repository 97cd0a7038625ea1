// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"time"
)

// Phase is a time span at the end of each period on an agent's timeline. The zero Phase never
// occurs.
type Phase struct {
	Every, For time.Duration
}

func (p Phase) validate() error {
	if p.Every < 0 || p.For < 0 || p.For > p.Every {
		return fmt.Errorf("a phase of %v in a period of %v: it must be shorter, and not negative", p.For, p.Every)
	}
	return nil
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

// Bursts are phases in which the rate of operations is multiplied by Factor: 0 for no operations, or 1
// or more.
type Bursts struct {
	Phase

	Factor float64
}

func (b Bursts) validate(rate float64) error {
	if b.Every == 0 {
		return nil
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor*rate <= MaxRate) {
		return fmt.Errorf("a burst factor of %v: it must be 0 or at least 1, and the resulting rate at most %.0f", b.Factor, MaxRate)
	}
	if b.Factor == 0 && b.For >= b.Every {
		return fmt.Errorf("a phase without operations of %v: it must be shorter than the period of %v", b.For, b.Every)
	}
	return b.Phase.validate()
}

// worked returns the time that the operations until a point on the timeline would take at the
// normal rate.
func (b Bursts) worked(up time.Duration) time.Duration {
	if b.Every == 0 {
		return up
	}
	periods, rest := int64(up/b.Every), up%b.Every
	burst := b.For*time.Duration(periods) + max(0, rest-(b.Every-b.For))
	return up + time.Duration(float64(burst)*(b.Factor-1))
}

// when is the inverse of worked.
func (b Bursts) when(worked time.Duration) time.Duration {
	if b.Every == 0 {
		return worked
	}
	period := b.worked(b.Every)
	periods, rest := int64(worked/period), worked%period
	calm := b.Every - b.For
	if rest > calm {
		rest = calm + time.Duration(float64(rest-calm)/b.Factor)
	}
	return b.Every*time.Duration(periods) + rest
}
