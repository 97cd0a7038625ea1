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

// maxEvents is how many events are kept until they are taken.
const maxEvents = 1024

// overflowPause is how long after a walk the next one comes if events were lost.
const overflowPause = ProbeInterval / 4

// openNotifier opens inotify. Without it, walks find everything.
func (d *Directory) openNotifier() {
	w, err := fsnotify.NewBufferedWatcher(maxEvents)
	if err != nil {
		d.notifyFailed(err)
		return
	}
	d.inotify, d.errors = w, w.Errors
	d.listen()
}

// listen takes events from now on.
func (d *Directory) listen() {
	if d.inotify != nil {
		d.events = d.inotify.Events
	}
}

// watch asks for the changes in a folder. Each walk asks again, as the folder may
// have been created anew; checking twice is no error.
func (d *Directory) watch(folder string) {
	if d.inotify == nil {
		return
	}
	if err := d.inotify.Add(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
		Text: "inotify doesn't work, so new rings are found only within " + ProbeInterval.String() +
			"; raise fs.inotify.max_user_instances or max_user_watches",
	})
}

// event handles a path that inotify has reported. It returns how long to pause
// before the next event, in case a process makes them faster than they are useful.
func (d *Directory) event(e fsnotify.Event) (pause time.Duration) {
	name, err := filepath.Rel(d.cfg.Dir, e.Name)
	if err != nil || !filepath.IsLocal(name) || !d.cfg.wants(name) ||
		d.records[e.Name] == nil && len(d.records) >= maxRecords {
		return d.repeats.more(d.cfg.Now())
	}
	if d.change(d.record(name), e.Op.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename)) {
		return 0
	}
	return d.repeats.more(d.cfg.Now())
}

// untilWalk returns the time until the next walk after events were lost. It is
// limited, because a process can overflow the queue all the time.
func (d *Directory) untilWalk() time.Duration {
	return max(d.walked.Add(overflowPause).Sub(d.cfg.Now()), 0)
}
