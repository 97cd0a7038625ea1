// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Times to wait before a refused file is tried again.
const (
	firstRetryStarting = 5 * time.Millisecond // an agent creates its ring within microseconds
	firstRetry         = time.Second
	limitRetry         = 50 * time.Millisecond // an agent that has exited gives way
	maxRetry           = 30 * time.Second
	// startTimeout is the time after which an agent that isn't ready is reported.
	startTimeout = 10 * time.Second
	// settleTimeout is the time after which a header that doesn't match its file is
	// reported.
	settleTimeout = time.Second
	// lockTimeout is the time after which a ring that another consumer has locked is reported. This
	// consumer may be here: another directory's goroutine has found the ring under another name, and
	// is opening it.
	lockTimeout = 100 * time.Millisecond
)

var (
	errLimit    = errors.New("the limit on the number of rings and stores is reached; raise max_rings, or narrow include")
	errIdentity = errors.New("another running agent has the same identity; give agents unique names, or add what distinguishes them to identify_by")
	// errGone means that a directory was removed with its container or pod.
	errGone    = errors.New("container was removed")
	errHeld    = fmt.Errorf("%w: its events are still being drained", ringbuf.ErrNotReady)
	errSeeking = fmt.Errorf("%w: the process that has the ring mapped is being sought", ringbuf.ErrNotReady)
	errExited  = errors.New("agent has exited and all its events are counted")
)

// reason returns the value of the metric attribute reason for an error.
func reason(err error) string {
	var owner *files.OwnerError
	var budget *budgetError
	switch {
	case errors.As(err, &budget):
		return "budget"
	case errors.Is(err, ringbuf.ErrUnknownVersion):
		return "version"
	case errors.As(err, &owner):
		return "owner"
	case errors.Is(err, ringbuf.ErrFileSystem):
		return "file_system"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, ringbuf.ErrLocked):
		return "locked"
	case errors.Is(err, ringbuf.ErrNotReady):
		return "not_ready"
	case errors.Is(err, ringbuf.ErrHole):
		return "sparse"
	case errors.Is(err, ringbuf.ErrInvalid), errors.Is(err, ringbuf.ErrShrunk):
		return "invalid"
	case errors.Is(err, errLimit):
		return "limit"
	case errors.Is(err, errIdentity):
		return "identity"
	default:
		return "error"
	}
}

// isAbsent reports whether an error means that a file doesn't exist. A file below a
// link doesn't count as existing.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, files.ErrNotDir)
}

// isInert reports whether an error means that a file isn't a ring and can become one
// only by a change.
func isInert(err error) bool {
	return errors.Is(err, ringbuf.ErrNotRing) || errors.Is(err, ringbuf.ErrNotRegular)
}

// refuse records that a path can't be opened, and schedules the next try.
func (t *tracker) refuse(r *record, info files.Info, err error) {
	now := t.cfg.Now()
	budget := (*budgetError)(nil)
	overBudget := errors.As(err, &budget)
	r.limited = errors.Is(err, errLimit) || overBudget && budget.resource == someRings
	starting := errors.Is(err, ringbuf.ErrNotReady) && (r.state != refused || now.Sub(r.since) < startTimeout)
	if isInert(err) && !starting {
		t.ignore(r, info)
		t.reportOnce(r, notice.Notice{
			Kind: notice.NotRing, Level: slog.LevelDebug, Err: err,
			Text: "file isn't a ring; exclude it, or give agents their own directory",
		})
		return
	}
	t.setState(r, refused)
	first, quiet := firstRetry, false
	switch {
	case errors.Is(err, ringbuf.ErrNotReady):
		first, quiet = firstRetryStarting, starting
	case errors.Is(err, ringbuf.ErrLocked):
		quiet = now.Sub(r.since) < lockTimeout
		if quiet {
			first = firstRetryStarting
		}
	case errors.Is(err, errIdentity): // it may be known only later that the other agent has exited
		quiet = r.refusedWait < 4*firstRetry
	case errors.Is(err, ringbuf.ErrInvalid) && changedWithin(settleTimeout, info, now):
		first, quiet = firstRetryStarting, r.known
	}
	if r.limited {
		first = limitRetry
	}
	r.info, r.tried, r.wait = info, now, nextBackoff(r.wait, first)
	n := notice.Notice{Kind: notice.RingRefused, Level: slog.LevelWarn, Err: err, Text: "ring can't be opened, so its events aren't counted; retrying"}
	switch {
	case overBudget:
		n = notice.Notice{Kind: notice.BudgetReached, Level: slog.LevelWarn, Err: budget, Text: textBudget}
	case r.limited:
		n.Kind, n.Level = notice.RingLimit, slog.LevelError
	}
	if r.limited {
		r.wait = min(r.wait, ProbeInterval) // another agent may exit at any time
		t.crowd(overBudget)
	}
	t.retryLater(r)
	if !quiet {
		t.setRefusal(r.Path, &Refusal{Reason: reason(err), Err: err})
		t.reportOnce(r, n)
	}
}

// retryLater makes a walk due when a refused path is to be tried again.
func (t *tracker) retryLater(r *record) {
	if at := r.tried.Add(r.wait); t.retryAt.IsZero() || at.Before(t.retryAt) {
		t.retryAt = at
	}
}

const textBudget = "not all rings are opened, and the events in the others aren't counted"

// crowd asks the owner to retire agents that have exited, of any holder or, if its budget is
// used up, of this one. Any number of rings may be refused at once, so the owner gets one
// message for all of them.
func (t *tracker) crowd(overBudget bool) {
	t.crowded++
	if now := t.cfg.Now(); now.Sub(t.crowdedAt) >= limitRetry {
		t.send(drain.Crowded{Rings: t.crowded, Holder: t.cfg.Holder, OverBudget: overBudget})
		t.crowded, t.crowdedAt = 0, now
	}
}

// ignore ignores a file until it differs from info. With a zero info, the next check
// tries to open it.
func (t *tracker) ignore(r *record, info files.Info) {
	t.setState(r, ignored)
	r.info = info
}

// reportOnce reports a notice about a path unless the last one had the same cause.
func (t *tracker) reportOnce(r *record, n notice.Notice) {
	cause := n.Text
	if n.Err != nil {
		cause = n.Err.Error()
	}
	if cause == r.cause {
		return
	}
	r.cause, n.Path = cause, r.Path
	if n.Kind == notice.BudgetReached {
		n.Path = t.cfg.Dir // one line for all files
	}
	t.report(n)
}

// shouldTry reports whether to try to open a file: it has changed, or a retry is due.
func (r *record) shouldTry(info files.Info, now time.Time) bool {
	switch r.state {
	case refused:
		return !r.info.Same(info) || !now.Before(r.tried.Add(r.wait))
	case ignored:
		return !r.info.Same(info)
	default:
		return true
	}
}

// nextBackoff doubles the time to wait, within limits.
func nextBackoff(wait, first time.Duration) time.Duration { return min(max(2*wait, first), maxRetry) }

func changedWithin(d time.Duration, info files.Info, now time.Time) bool {
	age := now.Sub(info.ModTime)
	return age >= 0 && age < d
}
