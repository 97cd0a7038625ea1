// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/nixl-otel/nixl-otel/internal/notice"
)

// maxEvents and maxErrors limit the queues of events and errors.
const maxEvents, maxErrors = 1024, 16

// overflowPause is the minimum interval between two walks if events were lost.
const overflowPause = ProbeInterval / 4

// openNotifier opens inotify. If that fails, walks find all changes.
func (d *Directory) openNotifier() {
	w, err := fsnotify.NewBufferedWatcher(maxEvents)
	if err != nil {
		d.notifyFailed(err)
		return
	}
	d.inotify, d.errors = w, receiveErrors(w)
	d.listen()
}

// receiveErrors returns the errors of a watcher until it is closed. A watcher holds a lock
// while it waits for an error to be received, and so would every call of it.
func receiveErrors(w *fsnotify.Watcher) <-chan error {
	list := make(chan error, maxErrors)
	go func() {
		for err := range w.Errors {
			if errors.Is(err, syscall.EINVAL) {
				continue // a directory was removed just after it was renamed
			}
			select {
			case list <- err:
			default: // there are others to handle
			}
		}
	}()
	return list
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
	err := d.inotify.Add(dir)
	if err == nil || isAbsent(err) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) {
		return // the walk reports why a directory can't be read
	}
	d.notifyFailed(err)
}

// notifyFailed reports, once, that inotify doesn't work.
func (d *Directory) notifyFailed(err error) {
	if d.notifyOff {
		return
	}
	d.notifyOff = true
	text := "inotify doesn't work, so discovering a new ring takes up to " + ProbeInterval.String()
	switch {
	case errors.Is(err, syscall.EMFILE):
		text += "; raise fs.inotify.max_user_instances"
	case errors.Is(err, syscall.ENOSPC):
		text += "; raise fs.inotify.max_user_watches"
	}
	d.report(notice.Notice{Kind: notice.NotifyOff, Level: slog.LevelWarn, Path: d.cfg.Dir, Err: err, Text: text})
}

// event handles an event from inotify. It returns how long to wait before handling
// the next one, because a process can cause events at a high rate.
func (d *Directory) event(e fsnotify.Event) (pause time.Duration) {
	name, err := filepath.Rel(d.cfg.Dir, e.Name)
	if err != nil || name == "." || !filepath.IsLocal(name) || !d.cfg.matches(name) {
		return d.limiter.add(d.cfg.Now())
	}
	if r := d.record(name); r != nil && d.change(r, e.Op.Has(fsnotify.Create|fsnotify.Remove|fsnotify.Rename)) {
		return 0
	}
	return d.limiter.add(d.cfg.Now())
}

// untilWalk returns the time until the next walk after events were lost. Walks have
// a minimum interval because a process can overflow the queue repeatedly.
func (d *Directory) untilWalk() time.Duration {
	return max(d.lastWalk.Add(overflowPause).Sub(d.cfg.Now()), 0)
}
