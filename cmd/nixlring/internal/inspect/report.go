// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"time"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config configures [Inspect].
type Config struct {
	Path        string
	Proc        string        // path of /proc
	For         time.Duration // how long to watch the ring; 0 for not at all
	RunInterval time.Duration // the agent's run interval
	EUID        int           // this process's effective user ID
	Now         func() time.Time
	Attend      func(path string) procs.Attended // procs.Attend if nil
}

// Report holds the details of one ring or store. The JSON field names are stable.
type Report struct {
	Path  string `json:"path"`
	Ring  bool   `json:"ring"`            // whether the file is a readable ring
	Error string `json:"error,omitempty"` // why it is neither a ring nor a store

	File    File     `json:"file"`
	Header  *Header  `json:"header,omitempty"`
	Checks  []Check  `json:"checks,omitempty"`
	Content *Content `json:"content,omitempty"` // of a readable ring
	Burst   *Burst   `json:"burst,omitempty"`   // if the ring was watched
	Store   *Store   `json:"store,omitempty"`   // of a readable store

	Mapped     []procs.Process `json:"mapped_by,omitempty"`
	Hidden     int             `json:"processes_not_seen,omitempty"` // number of processes that can't be inspected
	Consumer   *procs.Process  `json:"consumer,omitempty"`           // the process that holds the consumer lock
	Unattended *bool           `json:"unattended,omitempty"`         // whether no process has it open for writing; absent if unknown
	Alive      *bool           `json:"agent_alive"`                  // whether the agent, or the process of the store, is running; null if unknown

	Advice []string `json:"advice"`

	other  bool // the file is neither a ring nor a store, whatever its content
	alive  procs.Alive
	hidden bool          // a process that can't be found may hold the consumer lock
	unseen string        // which processes can't be inspected
	idle   time.Duration // since the store was updated; negative if that was before the machine was started
}

// File describes the file.
type File struct {
	Size     int64     `json:"size"`
	Mode     string    `json:"mode"`
	Owner    uint32    `json:"owner_uid"`
	Group    uint32    `json:"owner_gid"`
	Device   string    `json:"device"` // major:minor in hexadecimal
	Inode    uint64    `json:"inode"`
	Modified time.Time `json:"modified"`
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

// Check is the result of a validity check.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
}

// Content describes the ring's content.
type Content struct {
	Layout    string     `json:"layout"`
	EventSize int        `json:"event_size"` // bytes
	Capacity  int        `json:"capacity"`   // slots
	Pending   int        `json:"pending"`    // events
	Fill      float64    `json:"fill"`       // 0 to 1
	Dropped   uint64     `json:"reported_dropped"`
	Oldest    *time.Time `json:"oldest,omitempty"` // time of the oldest event; only layout v1
	Newest    *time.Time `json:"newest,omitempty"`
}

// Inspect returns a report on a file. A file that is neither a ring nor a store is not an
// error; the report contains the reason. Inspect returns an error if the file doesn't exist.
func Inspect(ctx context.Context, cfg Config) (*Report, error) {
	info, err := os.Lstat(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	file := files.IDOf(info)
	uid, gid := files.Owner(info)
	r := &Report{
		Path: cfg.Path,
		File: File{
			Size: info.Size(), Mode: info.Mode().String(), Owner: uid, Group: gid,
			Device: files.Device(file.Dev), Inode: file.Ino, Modified: info.ModTime(),
		},
		Advice: []string{},
	}
	if r.named() {
		if err := r.readStore(); err != nil {
			r.adviseUnreadable(err)
		}
		r.adviseStore()
		return r, nil
	}
	h, err := ringbuf.Peek(cfg.Path)
	if err != nil {
		r.Error = reason(err)
	}
	if errors.Is(err, ringbuf.ErrNotRing) || errors.Is(err, ringbuf.ErrNotRegular) {
		r.other = true // it has no meaningful header, and nobody needs to know its users
		r.adviseUnreadable(err)
		return r, nil
	}
	if h != (ringbuf.Header{}) {
		r.Header = &Header{h.WritePos, h.ReadPos, h.Version, h.ExpectedVersion, h.Capacity, h.Mask}
		r.Checks = checks(&h, info.Size())
	}
	if err == nil {
		if err = r.look(ctx, cfg); err != nil {
			r.Error = reason(err)
		}
	}
	// Only now, when this process doesn't have the ring open.
	r.attendance(cfg)
	if r.Ring {
		r.advise(cfg, info.Mode())
	} else {
		r.adviseUnreadable(err)
	}
	return r, nil
}

// reason returns the text of an error without the path.
func reason(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

// checks validates a header.
func checks(h *ringbuf.Header, size int64) []Check {
	known, fits := false, false
	for _, l := range ringbuf.Layouts() {
		if l.Version() == h.Version {
			known = true
			fits = fits || h.Capacity < 1<<32 && size == l.FileSize(h.Capacity)
		}
	}
	return []Check{
		{"version is from 1 to 4", known},
		{"expected version equals version", h.ExpectedVersion == h.Version},
		{"capacity is a power of two, 2 or more", h.Capacity >= 2 && bits.OnesCount64(h.Capacity) == 1},
		{"mask is capacity minus 1", h.Mask == h.Capacity-1},
		{"positions are less than capacity", h.WritePos < h.Capacity && h.ReadPos < h.Capacity},
		{"file size fits capacity", fits},
	}
}

// attendance determines which processes use the ring, and whether its agent is
// running.
func (r *Report) attendance(cfg Config) {
	ask := cfg.Attend
	if ask == nil {
		ask = procs.Attend
	}
	users := procs.FS(cfg.Proc).Users(cfg.Path)[cfg.Path]
	attended := ask(cfg.Path)
	if users != nil {
		r.Mapped, r.Hidden, r.Consumer, r.unseen = users.Mapped, len(users.Hidden), users.Consumer, users.Unseen()
		r.hidden = users.Unlisted
	}
	if attended.Known {
		unattended := !attended.Open
		r.Unattended = &unattended
	}
	if r.Ring {
		r.alive = users.Alive(attended)
		r.Alive = r.alive.Bool()
	}
}
