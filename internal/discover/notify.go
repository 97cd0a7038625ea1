// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// maxEvents limits the queue of events.
const maxEvents = 1024

// overflowPause is the minimum interval between two walks if events were lost.
const overflowPause = ProbeInterval / 4

// openNotifier opens inotify. If that fails, walks find all changes.
func (d *Directory) openNotifier() {
	w, err := fsnotify.NewBufferedWatcher(maxEvents)
	if err != nil {
		d.notifyFailed(err)
		return
	}
	d.inotify, d.errors = w, w.Errors
	d.listen()
}

// listen starts or resumes the handling of events.
func (d *Directory) listen() {
	if d.inotify != nil {
		d.events = d.inotify.Events
	}
}

// watch subscribes to changes in a directory. Each walk calls it again, because the
// directory may have been replaced. Watching a directory twice has no effect.
func (d *Directory) watch(dir string) {
	if d.inotify == nil {
		return
	}
	if err := d.inotify.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.notifyFailed(err)
	}
}

// notifyFailed reports, once, that inotify doesn't work.
func (d *Directory) notifyFailed(err error) {
	if d.notifyOff {
		return
	}
	d.notifyOff = true
	d.notices.Report(notice.Notice{
		Kind: notice.NotifyOff, Level: slog.LevelWarn, Path: d.cfg.Dir, Err: err,
		Text: "inotify doesn't work, so discovering a new ring takes up to " + ProbeInterval.String() +
			"; raise fs.inotify.max_user_instances or max_user_watches",
	})
}

// event handles an event from inotify. It returns how long to wait before handling
// the next one, because a process can cause events at a high rate.
func (d *Directory) event(e fsnotify.Event) (pause time.Duration) {
	name, err := filepath.Rel(d.cfg.Dir, e.Name)
	if err != nil || !filepath.IsLocal(name) || !d.cfg.matches(name) ||
		d.records[e.Name] == nil && len(d.records) >= maxRecords {
		return d.limiter.add(d.cfg.Now())
	}
	if d.change(d.record(name), e.Op.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename)) {
		return 0
	}
	return d.limiter.add(d.cfg.Now())
}

// untilWalk returns the time until the next walk after events were lost. Walks have
// a minimum interval because a process can overflow the queue repeatedly.
func (d *Directory) untilWalk() time.Duration {
	return max(d.lastWalk.Add(overflowPause).Sub(d.cfg.Now()), 0)
}
