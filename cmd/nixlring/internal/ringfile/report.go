// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"io/fs"

	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Report holds the details of one file. The JSON field names are stable.
type Report struct {
	Entry
	File   File     `json:"file"`
	Header *Header  `json:"header,omitempty"`
	Drops  uint64   `json:"reported_dropped,omitempty"`
	Users  *Users   `json:"users,omitempty"` // of a ring
	Advice []string `json:"advice"`

	err error // why the file is neither a readable ring nor a readable store
}

// File describes the file.
type File struct {
	Size      int64  `json:"size"`
	Mode      string `json:"mode"`
	Group     uint32 `json:"owner_gid"`
	Device    string `json:"device"` // major:minor in hexadecimal
	Inode     uint64 `json:"inode"`
	EventSize int    `json:"event_size,omitempty"` // bytes of an event in a readable ring

	mode fs.FileMode
}

func describe(info fs.FileInfo) File {
	id := files.IDOf(info)
	return File{Size: info.Size(), Mode: info.Mode().String(), Device: Device(id.Dev), Inode: id.Ino, mode: info.Mode()}
}

// Header is the ring's header.
type Header struct {
	WritePos        uint64 `json:"write_pos"`
	ReadPos         uint64 `json:"read_pos"`
	Version         int32  `json:"version"`
	ExpectedVersion int32  `json:"expected_version"`
	Capacity        uint64 `json:"capacity"`
	Mask            uint64 `json:"mask"`
}

// Inspect returns a report on a file. A file that is neither a ring nor a store is not an error; the report
// contains the reason. Inspect returns an error if the file doesn't exist. proc is the mount point of procfs, and
// euid this process's effective user ID.
func Inspect(path, proc string, euid int) (*Report, error) {
	r, err := inspect(path, euid)
	if err != nil {
		return nil, err
	}
	if !r.named() && !r.notRing() {
		if h, _ := ringbuf.Peek(path); h != (ringbuf.Header{}) {
			r.Header = &Header{h.WritePos, h.ReadPos, h.Version, h.ExpectedVersion, h.Capacity, h.Mask}
		}
		users := FindUsers(proc, path)
		r.Users = &users
	}
	r.advise(euid)
	return r, nil
}

// addDrops adds the events that the agent reports as dropped.
func (r *Report) addDrops(b ringbuf.Batch) {
	for i := range b.Len() {
		if e := b.Event(i); !e.Named && e.Type == ringbuf.TypeEventsDropped && b.Layout() >= ringbuf.V4 {
			r.Drops += e.Value
		}
	}
}
