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

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Config says what to inspect.
type Config struct {
	Path        string
	Proc        string        // /proc
	For         time.Duration // how long to watch the ring for its bursts; 0 is not at all
	RunInterval time.Duration // of the agent
	EUID        int           // of this process
	Now         func() time.Time
	Attend      func(path string) procs.Attended // procs.Attend if nil
}

// Report is what is known of one ring. The field names of its JSON are stable.
type Report struct {
	Path  string `json:"path"`
	Ring  bool   `json:"ring"`            // it can be read
	Error string `json:"error,omitempty"` // why it can't

	File    File     `json:"file"`
	Header  *Header  `json:"header,omitempty"`
	Checks  []Check  `json:"checks,omitempty"`
	Content *Content `json:"content,omitempty"` // of a ring that can be read
	Burst   *Burst   `json:"burst,omitempty"`   // if it was watched

	Mapped     []procs.Process `json:"mapped_by,omitempty"`
	Hidden     int             `json:"processes_not_seen,omitempty"` // that may have it mapped, too
	Consumer   *procs.Process  `json:"consumer,omitempty"`           // of this project: it holds the ring's lock
	Unattended *bool           `json:"unattended,omitempty"`         // no process has it open for writing; absent if that can't be told
	Alive      *bool           `json:"agent_alive"`                  // null if that can't be told

	Advice []string `json:"advice"`

	alive procs.Alive
}

// File is what the file system says.
type File struct {
	Size     int64     `json:"size"`
	Mode     string    `json:"mode"`
	Owner    uint32    `json:"owner_uid"`
	Group    uint32    `json:"owner_gid"`
	Device   string    `json:"device"` // major:minor in hexadecimal
	Inode    uint64    `json:"inode"`
	Modified time.Time `json:"modified"`
}

// Header is the ring's header as it stands in the file.
type Header struct {
	WritePos        uint64 `json:"write_pos"`
	ReadPos         uint64 `json:"read_pos"`
	Version         int32  `json:"version"`
	ExpectedVersion int32  `json:"expected_version"`
	Capacity        uint64 `json:"capacity"`
	Mask            uint64 `json:"mask"`
}

// Check is one thing that holds of every ring.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
}

// Content is what stands in the ring.
type Content struct {
	Layout    string     `json:"layout"`
	EventSize int        `json:"event_size"` // bytes
	Capacity  int        `json:"capacity"`   // slots
	Pending   int        `json:"pending"`    // events
	Fill      float64    `json:"fill"`       // share of what the ring can hold
	Dropped   uint64     `json:"reported_dropped"`
	Oldest    *time.Time `json:"oldest,omitempty"` // event; of layout v1
	Newest    *time.Time `json:"newest,omitempty"`
}

// Inspect finds out about a ring. A file that isn't one is no error: the
// report says so. The error is that of a path that there is nothing at.
func Inspect(ctx context.Context, cfg Config) (*Report, error) {
	info, err := os.Lstat(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	file, err := procs.FileOf(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	uid, gid := place.Owner(info)
	r := &Report{
		Path: cfg.Path,
		File: File{
			Size: info.Size(), Mode: info.Mode().String(), Owner: uid, Group: gid,
			Device: file.Device, Inode: file.Inode, Modified: info.ModTime(),
		},
		Advice: []string{},
	}
	h, err := ringbuf.Peek(cfg.Path)
	if err != nil {
		r.Error = reason(err)
	}
	// What plainly is no ring has no header that would say anything.
	if !errors.Is(err, ringbuf.ErrNotRing) && h != (ringbuf.Header{}) {
		r.Header = &Header{h.WritePos, h.ReadPos, h.Version, h.ExpectedVersion, h.Capacity, h.Mask}
		r.Checks = checks(&h, info.Size())
	}
	if err == nil {
		if err = r.look(ctx, cfg); err != nil {
			r.Error = reason(err)
		}
	}
	// Who has it open is asked only now: this process is none of them.
	r.attendance(cfg, info.Mode().IsRegular())
	if r.Ring {
		r.advise(cfg, info.Mode())
	} else {
		r.adviseNoRing(err)
	}
	return r, nil
}

// reason is an error without the path, which stands beside it.
func reason(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

// checks are what a header has to hold to.
func checks(h *ringbuf.Header, size int64) []Check {
	known, fits := false, false
	for _, l := range ringbuf.Layouts() {
		if l.Version() == h.Version {
			known = true
			fits = fits || h.Capacity < 1<<32 && size == l.FileSize(h.Capacity)
		}
	}
	list := []Check{{"the version is one of 1 to 5", known}}
	if h.Version != ringbuf.V5.Version() { // whose header has no version expected
		list = append(list, Check{"the version expected is the same", h.ExpectedVersion == h.Version})
	}
	return append(list, []Check{
		{"the capacity is a power of two, 2 or more", h.Capacity >= 2 && bits.OnesCount64(h.Capacity) == 1},
		{"the mask is one less than the capacity", h.Mask == h.Capacity-1},
		{"the positions are within the capacity", h.WritePos < h.Capacity && h.ReadPos < h.Capacity},
		{"the file has the size of the header and so many events", fits},
	}...)
}

// attendance finds out which processes have the ring, and whether its agent is
// one of them.
func (r *Report) attendance(cfg Config, regular bool) {
	if !regular {
		return
	}
	ask := cfg.Attend
	if ask == nil {
		ask = procs.Attend
	}
	users := procs.FS(cfg.Proc).Users(cfg.Path)[cfg.Path]
	attended := ask(cfg.Path)
	if users != nil {
		r.Mapped, r.Hidden, r.Consumer = users.Mapped, users.Hidden, users.Consumer
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
