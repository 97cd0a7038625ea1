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
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxRetry is the longest time until a refused file is tried again. The first try is after
// pollInterval, and each wait is twice as long as the one before.
const maxRetry = 30 * time.Second

var (
	// errGone means that a directory was removed with its container or pod.
	errGone = errors.New("container was removed")
	// errTaken means that another directory has the same store.
	errTaken      = errors.New("store is reported from another directory")
	errManyStores = fmt.Errorf("container or pod has more than %d stores; remove those of exited processes", maxStores)
)

// refusals says what is done about each kind of error, in this order.
var refusals = []struct {
	err    error
	reason string        // value of the metric attribute
	quiet  time.Duration // how long the error isn't reported
}{
	{files.ErrOwner, "owner", 0},
	{drain.ErrContainerLimit, "budget", 0},
	{errManyStores, "budget", 0},
	{ringbuf.ErrUnknownVersion, "version", 0},
	{mpstore.ErrVersion, "version", 0},
	{ringbuf.ErrFileSystem, "file_system", 0},
	{fs.ErrPermission, "permission", 0},
	{ringbuf.ErrLocked, "locked", pollInterval},
	{ringbuf.ErrNotReady, "not_ready", hangTimeout}, // an agent creates its ring within microseconds
	{drain.ErrBusy, "not_ready", hangTimeout},
	{ringbuf.ErrHole, "sparse", 0},
	{ringbuf.ErrInvalid, "invalid", pollInterval}, // its agent may be about to restart
	{ringbuf.ErrShrunk, "invalid", pollInterval},
	{mpstore.ErrInvalid, "invalid", 0},
	{drain.ErrLimit, "limit", 0},
	{drain.ErrIdentity, "identity", DefaultInterval}, // it may be known only later that the other agent has exited
	{nil, "error", 0},
}

// Refusal states why a file can't be opened.
type Refusal struct {
	Reason string // value of the metric attribute reason
	Err    error
}

// refusal returns the refusal because of an error, and how long it isn't reported.
func refusal(err error) (_ Refusal, quiet time.Duration) {
	for _, k := range refusals {
		if k.err == nil || errors.Is(err, k.err) {
			return Refusal{k.reason, err}, k.quiet
		}
	}
	return Refusal{}, 0
}

// refuse records that a path can't be opened, and reports why.
func (d *Directory) refuse(r *record, info files.Info, err error) {
	now := d.cfg.Now()
	d.setState(r, refused)
	if r.since.IsZero() || r.info.ID != info.ID {
		r.since, r.wait = now, 0
	}
	r.wait = min(max(2*r.wait, pollInterval), maxRetry)
	r.info, r.until = info, now.Add(r.wait)
	why, quiet := refusal(err)
	var shown *Refusal
	switch {
	case errors.Is(err, drain.ErrUnneeded):
		r.until = time.Time{}
	case errors.Is(err, drain.ErrOpen), errors.Is(err, errTaken):
		r.wait, r.until = 0, now // at the next walk
	case now.Sub(r.since) < quiet:
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular):
		r.until = time.Time{}
		d.reportOnce(r, notice.Notice{
			Kind: notice.NotRing, Level: slog.LevelDebug, Err: err,
			Text: "file isn't a ring; give agents their own directory, or select their rings with include",
		})
	default:
		shown = &why
		d.reportOnce(r, r.refusalNotice(why))
	}
	d.setRefusal(r.Path, shown)
	if r.wait > 0 {
		d.retryLater(r)
	}
}

// refusalNotice returns the notice that a path is refused.
func (r *record) refusalNotice(why Refusal) notice.Notice {
	n := notice.Notice{Kind: notice.RingRefused, Level: slog.LevelWarn, Err: why.Err, Text: "ring can't be opened, so its events aren't counted; retrying"}
	switch {
	case r.isStore() && why.Reason == "permission":
		n.Kind = notice.MPStoreRefused
		n.Text = "store can't be read, so its process isn't reported; retrying; stores have mode 0600, so run as the agents' user, or with CAP_DAC_READ_SEARCH"
	case r.isStore():
		n.Kind, n.Text = notice.MPStoreRefused, "store can't be read, so its process isn't reported; retrying"
	}
	switch why.Reason {
	case "budget":
		n.Kind, n.Text = notice.BudgetReached, "not all rings and stores are opened, and the events in the others aren't counted"
	case "limit":
		n.Kind, n.Level = notice.RingLimit, slog.LevelError
	}
	return n
}

// retryLater makes a walk due when a refused path is to be tried again.
func (d *Directory) retryLater(r *record) {
	if !r.until.IsZero() && (d.retryAt.IsZero() || r.until.Before(d.retryAt)) {
		d.retryAt = r.until
	}
}

// reportOnce reports a notice about a path unless the last one had the same cause.
func (d *Directory) reportOnce(r *record, n notice.Notice) {
	if cause := n.Err.Error(); cause != r.reported {
		r.reported, n.Path = cause, r.Path
		if n.Kind == notice.BudgetReached || n.Kind == notice.RingLimit {
			n.Path = d.at.Path // one line for all files
		}
		d.report(n)
	}
}

// report reports a notice about the directory or one of its files.
func (d *Directory) report(n notice.Notice) {
	n.Pod, n.Container = d.at.Holder.Pod, d.at.Holder.Container
	d.notices.Report(n)
}

func (d *Directory) setRefusal(path string, refusal *Refusal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if refusal == nil {
		delete(d.refused, path)
	} else {
		d.refused[path] = *refusal
	}
}
