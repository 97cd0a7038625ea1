// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package ringfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/mpstore"
	"github.com/nixl-otel/nixl-otel/internal/units"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// Store describes the process of an agent that writes a store of NIXL's prometheus_mp exporter.
type Store struct {
	Agent     string    `json:"agent"`
	PID       int64     `json:"pid"` // in the process's own PID namespace
	Instance  uint64    `json:"instance"`
	Host      string    `json:"host"`
	LocalRank string    `json:"local_rank,omitempty"`
	Start     time.Time `json:"start"`
}

// readStore reads the file as a store. It never waits for the lock on the store.
func (r *Report) readStore() error {
	if err := r.openStore(filepath.Split(string(r.Path))); err != nil {
		return fmt.Errorf("read store %s: %w", r.Path, err)
	}
	return nil
}

func (r *Report) openStore(dir, name string) (err error) {
	in, err := files.OpenDir(filepath.Clean(dir), ".")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := in.OpenFile(name, os.O_RDONLY)
	if err != nil {
		return err
	}
	s, err := mpstore.Open(file, name, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	running := answer(s.Running()) // first, to read the final values of a process that has exited
	if _, err := s.Read(false); err != nil {
		return err
	}
	r.Layout, r.InUse = semconv.LayoutStore, running
	r.Store = &Store{
		Agent: units.Text(s.Agent), PID: s.PID, Instance: s.Instance, Host: units.Text(s.Host), LocalRank: units.Text(s.LocalRank), Start: s.Start,
	}
	return nil
}

func (r *Report) noteStore() {
	agent := fmt.Sprintf("agent %s on %s", r.Store.Agent, r.Store.Host)
	if r.Store.LocalRank != "" {
		agent += ", local rank " + r.Store.LocalRank
	}
	r.Notes = append(r.Notes, agent)
	if r.InUse == diagnose.No {
		r.Notes = append(r.Notes, "process exited")
	}
}
