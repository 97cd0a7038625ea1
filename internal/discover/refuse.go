// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// How long to wait before a file that can't be opened is tried again.
const (
	firstRetryStarting = 5 * time.Millisecond // an agent creates its ring within microseconds
	firstRetry         = time.Second
	maxRetry           = 30 * time.Second
	// An agent that isn't ready after this time has most likely failed.
	startingPatience = 10 * time.Second
	// An agent that restarts sets the file's size and then rewrites the header,
	// normally within microseconds. Until then the old header contradicts the
	// size or, worse, fits it by chance. So a file that has just changed gets
	// some time to settle: more than one tick of a file system's clock.
	settling = 20 * time.Millisecond
	// A header that contradicts its file for longer is reported.
	settlingPatience = time.Second
)

var (
	errLimit    = errors.New("the limit on the number of rings is reached; raise max_rings, or narrow include")
	errIdentity = errors.New("another agent that is running has the same identity; give agents names of their own, or add what tells them apart to identify_by")
	// errGone says that a directory went with the container that it was in.
	errGone = errors.New("container is gone")
	errHeld = fmt.Errorf("%w: its events are still being drained", ringbuf.ErrNotReady)
	errLeft = errors.New("its agent has exited and its events are counted")
)

// reason returns the value of the metric attribute reason for an error.
func reason(err error) string {
	var version *ringbuf.UnknownVersionError
	var owner *ringbuf.OwnerError
	var fileSystem *ringbuf.FileSystemError
	switch {
	case errors.As(err, &version):
		return "version"
	case errors.As(err, &owner):
		return "owner"
	case errors.As(err, &fileSystem):
		return "file_system"
	case errors.Is(err, fs.ErrPermission):
		return "permission"
	case errors.Is(err, ringbuf.ErrLocked):
		return "locked"
	case errors.Is(err, ringbuf.ErrNotReady):
		return "not_ready"
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

// isAbsent reports whether an error means that there is no such file. A folder
// that is a link counts as none.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ringbuf.ErrNotFolder)
}

// isInert reports whether an error means that a file isn't a ring, and won't be
// until it changes.
func isInert(err error) bool {
	return errors.Is(err, ringbuf.ErrNotRing) || errors.Is(err, ringbuf.ErrNotRegular)
}

// refuse notes that a path can't be opened, and when to try again.
func (t *tracker) refuse(r *record, info ringbuf.FileInfo, err error) {
	now := t.cfg.Now()
	if isInert(err) {
		t.ignore(r, info)
		t.reportOnce(r, notice.Notice{
			Kind: notice.NotRing, Level: slog.LevelDebug, Err: err,
			Text: "file isn't a ring; exclude it, or give agents a directory of their own",
		})
		return
	}
	t.enter(r, refused)
	first, quiet := firstRetry, false
	switch {
	case errors.Is(err, ringbuf.ErrNotReady):
		first, quiet = firstRetryStarting, now.Sub(r.since) < startingPatience
	case errors.Is(err, ringbuf.ErrInvalid) && changedWithin(settlingPatience, info, now):
		first, quiet = firstRetryStarting, r.known
	}
	r.info, r.tried, r.wait = info, now, later(r.wait, first)
	n := notice.Notice{Kind: notice.RingRefused, Level: slog.LevelWarn, Err: err, Text: "ring can't be opened, so its events aren't counted; retrying"}
	if errors.Is(err, errLimit) {
		n.Kind, n.Level = notice.RingLimit, slog.LevelError
		r.wait = ProbeInterval // or a ring that takes the place of another would wait for long
	}
	t.schedule(r)
	if !quiet {
		t.setRefusal(r.Path, &Refusal{Reason: reason(err), Err: err})
		t.reportOnce(r, n)
	}
}

// ignore leaves a file alone until it changes. A zero info is that of any file
// that has changed.
func (t *tracker) ignore(r *record, info ringbuf.FileInfo) {
	t.enter(r, ignored)
	r.info = info
}

// reportOnce reports something about a path, unless it was reported last.
func (t *tracker) reportOnce(r *record, n notice.Notice) {
	cause := n.Text
	if n.Err != nil {
		cause = n.Err.Error()
	}
	if cause == r.cause {
		return
	}
	r.cause, n.Path = cause, r.Path
	t.notices.Report(n)
}

// worthTrying reports whether a file that couldn't be opened may be a ring now.
func (r *record) worthTrying(info ringbuf.FileInfo, now time.Time) bool {
	switch r.state {
	case refused:
		return !r.info.Same(info) || !now.Before(r.tried.Add(r.wait))
	case ignored:
		return !r.info.Same(info)
	default:
		return true
	}
}

// later returns the next step of a back-off.
func later(wait, first time.Duration) time.Duration { return min(max(2*wait, first), maxRetry) }

func changedWithin(d time.Duration, info ringbuf.FileInfo, now time.Time) bool {
	age := now.Sub(info.ModTime)
	return age >= 0 && age < d
}
