// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"io"

	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// maxEntries bounds one walk: a busy /tmp may hold any number of files.
const maxEntries = 1 << 16

// walk looks for stores in the directory. If it can't be read, discovery of rings
// says so.
func (d *Directory) walk() {
	d.walks++
	d.complete = true
	for _, open := range d.cfg.Folders() {
		f, err := open()
		if err != nil {
			d.complete = false
			continue
		}
		d.complete = d.walkFolder(f) && d.complete
		_ = f.Close() // nothing was written
	}
	if d.complete {
		d.sweep()
	}
}

// walkFolder looks at the entries of the directory, and reports whether these
// were all.
func (d *Directory) walkFolder(f *ringbuf.Folder) bool {
	for left := maxEntries; left > 0; {
		entries, err := f.ReadDir(min(left, 1024))
		left -= len(entries)
		for _, e := range entries {
			if says, ok := parseName(e.Name()); ok && !e.IsDir() {
				d.look(f, e.Name(), says)
			}
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// sweep forgets the files that the last walk didn't come across. A store that is
// open is read until its process exits.
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
			d.settle(a)
		}
	}
}

// gone reports whether there is no file of a name.
func (d *Directory) gone(name string) bool { return d.complete && d.records[name] == nil }
