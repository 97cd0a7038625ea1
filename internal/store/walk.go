// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxEntries limits one walk: a busy /tmp may contain any number of files.
const maxEntries = 1 << 16

// walk searches for stores in the directory. It doesn't report an unreadable directory,
// because the discovery of rings does.
func (d *Directory) walk() {
	d.walks++
	d.complete = true
	for _, open := range d.cfg.Dirs() {
		f, err := open()
		if err != nil {
			d.complete = false
			continue
		}
		d.complete = d.walkDir(f) && d.complete
		_ = f.Close() // nothing was written
	}
	if d.complete {
		d.sweep()
	}
}

// walkDir checks the entries of a directory, and reports whether it has read all of
// them.
func (d *Directory) walkDir(f *ringbuf.Dir) bool {
	for left := maxEntries; left > 0; {
		entries, err := f.ReadDir(min(left, 1024))
		left -= len(entries)
		for _, e := range entries {
			if parsed, ok := parseName(e.Name()); ok && !e.IsDir() {
				d.check(f, e.Name(), parsed)
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// sweep deletes the records of files that the last walk didn't find. An open store is
// still read until its process exits.
func (d *Directory) sweep() {
	for name, r := range d.records {
		if r.walk == d.walks {
			continue
		}
		d.forget(name, r)
		d.setRefusal(name, nil)
		if r.agent != nil {
			delete(r.agent.counted, name)
		}
	}
	for _, a := range d.agents {
		if !a.loading {
			d.reconcile(a)
		}
	}
}

// absent reports whether a file is known not to exist.
func (d *Directory) absent(name string) bool { return d.complete && d.records[name] == nil }
