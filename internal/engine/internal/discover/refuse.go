// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Times to wait before a refused file is tried again. The wait doubles up to maxRetry.
const (
	firstRetry = time.Second
	maxRetry   = 30 * time.Second
	// startTimeout is the time after which an agent that isn't ready is reported.
	startTimeout = 10 * time.Second
)

var (
	errLimit = drain.ErrLimit
	// errGone means that a directory was removed with its container or pod.
	errGone = errors.New("container was removed")
	// errSeeking means that the ID of an agent isn't known before the next search.
	errSeeking = errors.New("the process that has the ring mapped is being sought")
)

// refusals says what is done about each kind of error, in this order.
var refusals = []struct {
	err    error
	reason string        // value of the metric attribute
	first  time.Duration // until the next try
	quiet  time.Duration // how long the error isn't reported
}{
	{drain.ErrContainerLimit, "budget", firstRetry, 0},
	{ringbuf.ErrUnknownVersion, "version", firstRetry, 0},
	{ringbuf.ErrFileSystem, "file_system", firstRetry, 0},
	{fs.ErrPermission, "permission", firstRetry, 0},
	{ringbuf.ErrLocked, "locked", lookInterval, lookInterval / 2},
	{ringbuf.ErrNotReady, "not_ready", lookInterval, startTimeout}, // an agent creates its ring within microseconds
	{errSeeking, "not_ready", lookInterval, startTimeout},
	{ringbuf.ErrHole, "sparse", firstRetry, 0},
	{ringbuf.ErrInvalid, "invalid", lookInterval, lookInterval / 2}, // its agent may be about to restart
	{ringbuf.ErrShrunk, "invalid", lookInterval, lookInterval / 2},
	{drain.ErrLimit, "limit", firstRetry, 0},
	{drain.ErrIdentity, "identity", firstRetry, 5 * firstRetry}, // it may be known only later that the other agent has exited
	{nil, "error", firstRetry, 0},
}

// reason returns the value of the metric attribute reason for an error.
func reason(err error) string {
	if _, ok := errors.AsType[*files.OwnerError](err); ok {
		return "owner"
	}
	for _, k := range refusals {
		if k.err == nil || errors.Is(err, k.err) {
			return k.reason
		}
	}
	return ""
}

// isInert reports whether an error means that a file isn't a ring and can become one
// only by a change.
func isInert(err error) bool {
	return errors.Is(err, ringbuf.ErrNotRing) || errors.Is(err, ringbuf.ErrNotRegular)
}

// refuse records that a path can't be opened, and reports why. A file that isn't a ring, and the
// ring of an exited agent, are tried again only after a change.
func (t *tracker) refuse(r *record, info files.Info, err error) {
	quiet := t.postpone(r, info, err)
	switch {
	case errors.Is(err, drain.ErrUnneeded):
		r.until = time.Time{}
	case errors.Is(err, drain.ErrOpen):
		// A running agent keeps the name under which its ring was discovered, even if the file is
		// renamed: if its totals moved to another name, a sum over all agents would count them twice.
		if !t.cfg.Discovered {
			t.reportOnce(r, notice.Notice{
				Kind: notice.RingRenamed, Level: slog.LevelInfo, Err: err,
				Text: "file is another name of an open ring; the agent is reported under the original name until it restarts",
			})
		}
		t.setRefusal(r.Path, nil)
		return
	case quiet:
	case isInert(err):
		r.until = time.Time{}
		t.reportOnce(r, notice.Notice{
			Kind: notice.NotRing, Level: slog.LevelDebug, Err: err,
			Text: "file isn't a ring; exclude it, or give agents their own directory",
		})
	default:
		n := notice.Notice{Kind: notice.RingRefused, Level: slog.LevelWarn, Err: err, Text: "ring can't be opened, so its events aren't counted; retrying"}
		switch {
		case errors.Is(err, drain.ErrContainerLimit):
			n.Kind, n.Text = notice.BudgetReached, "not all rings are opened, and the events in the others aren't counted"
		case errors.Is(err, drain.ErrLimit):
			n.Kind, n.Level = notice.RingLimit, slog.LevelError
		}
		t.setRefusal(r.Path, &Refusal{Reason: reason(err), Err: err})
		t.reportOnce(r, n)
		t.retryLater(r)
		return
	}
	t.setRefusal(r.Path, nil)
	t.retryLater(r)
}

// postpone sets when a path is tried again. It reports whether the reason isn't reported yet.
func (t *tracker) postpone(r *record, info files.Info, err error) (quiet bool) {
	now := t.cfg.Now()
	t.setState(r, refused)
	if r.since.IsZero() || r.info.ID != info.ID {
		r.since, r.wait = now, 0
	}
	for _, k := range refusals {
		if k.err != nil && !errors.Is(err, k.err) {
			continue
		}
		r.wait = min(max(2*r.wait, k.first), maxRetry)
		if errors.Is(err, drain.ErrOpen) { // each walk tries again
			r.wait = 0
		}
		r.info, r.until = info, now.Add(r.wait)
		return now.Sub(r.since) < k.quiet
	}
	return false
}

// retryLater makes a walk due when a refused path is to be tried again.
func (t *tracker) retryLater(r *record) {
	if !r.until.IsZero() && (t.retryAt.IsZero() || r.until.Before(t.retryAt)) {
		t.retryAt = r.until
	}
}

// reportOnce reports a notice about a path unless the last one had the same cause.
func (t *tracker) reportOnce(r *record, n notice.Notice) {
	cause := n.Text
	if n.Err != nil {
		cause = n.Err.Error()
	}
	if cause == r.reported {
		return
	}
	r.reported, n.Path = cause, r.Path
	if n.Kind == notice.BudgetReached {
		n.Path = t.cfg.Dir // one line for all files
	}
	t.report(n)
}
