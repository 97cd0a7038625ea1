// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"time"
)

// Phase is a stretch of time that comes again and again on an agent's
// timeline, at the end of each period. The zero Phase never comes.
type Phase struct {
	Every, For time.Duration
}

func (p Phase) validate() error {
	if p.Every < 0 || p.For < 0 || p.For > p.Every {
		return fmt.Errorf("a phase of %v in each %v", p.For, p.Every)
	}
	return nil
}

// within is the phase, made shorter where it would end after a time: it ends
// right then. 0 is no time at all.
func (p Phase) within(d time.Duration) Phase {
	if d <= 0 || d >= p.Every {
		return p
	}
	return Phase{Every: d, For: time.Duration(float64(p.For) / float64(p.Every) * float64(d))}
}

// inside says whether a point of the timeline is within the phase.
func (p Phase) inside(up time.Duration) bool {
	return p.Every > 0 && up%p.Every >= p.Every-p.For
}

// progress returns how much of the phase has passed at a point of the timeline:
// from 0, also outside of it, to 1.
func (p Phase) progress(up time.Duration) float64 {
	if !p.inside(up) || p.For == 0 {
		return 0
	}
	return float64(up%p.Every-(p.Every-p.For)) / float64(p.For)
}

// Bursts are phases in which an agent has more operations, by a factor.
type Bursts struct {
	Phase

	Factor float64
}

func (b Bursts) validate(rate float64) error {
	if b.Every == 0 {
		return nil
	}
	if !(b.Factor >= 1 && b.Factor*rate <= MaxRate) {
		return errors.New("bursts need a factor of 1 or more, and one that leaves the rate possible")
	}
	return b.Phase.validate()
}

// worked is how long it takes, at the usual rate, to do what is done when an
// agent has been up for a given time.
func (b Bursts) worked(up time.Duration) time.Duration {
	if b.Every == 0 {
		return up
	}
	periods, rest := int64(up/b.Every), up%b.Every
	burst := b.For*time.Duration(periods) + max(0, rest-(b.Every-b.For))
	return up + time.Duration(float64(burst)*(b.Factor-1))
}

// when is the reverse of worked.
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
