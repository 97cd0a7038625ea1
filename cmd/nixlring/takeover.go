// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// Commands that create rings take over an existing ring of the same name, as agents do. If
// the existing ring has a running agent, two writers would corrupt it.

// forceUsage describes the flag that skips the check for running agents.
const forceUsage = "take over rings even if an agent may still be writing to them"

// createsRings requires a directory as the last of n arguments. It doesn't default to the
// directory of the environment, because real agents may use it.
func createsRings(n int) cobra.PositionalArgs {
	return usage(func(cmd *cobra.Command, args []string) error {
		if len(args) == n-1 {
			return fmt.Errorf("missing DIR to create rings in; it doesn't default to %s, because real agents may use that directory", process.EnvDir)
		}
		return cobra.ExactArgs(n)(cmd, args)
	})
}

// checkTakeover returns an error if one of the rings can't be created, or may be in use by an
// agent. It doesn't change any file.
func checkTakeover(proc string, paths []string) error {
	var held []string
	for _, path := range paths {
		switch open, err := openForWriting(path); {
		case err != nil:
			return err
		case open:
			held = append(held, path)
		}
	}
	if len(held) == 0 {
		return nil
	}
	users := procs.FS(proc).Users(held...)
	var inUse []string
	for _, path := range held {
		if text := holder(users[path]); text != "" {
			inUse = append(inUse, "ring "+path+": "+text)
		}
	}
	switch more := len(inUse) - 1; {
	case more < 0:
		return nil
	case more > 0:
		inUse[0] += fmt.Sprintf(" (and %s)", plural(more, "other ring", "other rings"))
	}
	return errors.New(inUse[0] + "; no ring was changed. Two writers corrupt a ring: use another directory, or see --force")
}

// openForWriting reports whether a process may have a ring open for writing. It returns an
// error if the file exists and isn't a ring.
func openForWriting(path string) (bool, error) {
	var permission *files.PermissionError
	f, err := files.Open(path, os.O_RDONLY)
	if err == nil {
		defer f.Close()
		_, err = ringbuf.PeekFile(f)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular), errors.As(err, &permission):
		return false, fmt.Errorf("%w; no file was changed", err)
	case errors.Is(err, fs.ErrPermission):
		return false, patherr.Explain(patherr.Ring, path, err)
	}
	open, err := files.LeaseRefused(f, false)
	if errors.Is(err, errors.ErrUnsupported) { // overlayfs: only the mappings of processes show it
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("ring %s: can't find out whether an agent is writing to it: %s; "+
			"no ring was changed. Use another directory, or see --force", path, unknownReason(err))
	}
	return open, nil
}

// unknownReason returns why openForWriting can't find out.
func unknownReason(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "this requires the owner of the ring or root"
	}
	return "the file system doesn't support it"
}

// holder describes who has a ring open for writing. It is empty if no process or only a consumer
// of this project does, because the agent exited. The ring may then be taken over, because these
// consumers follow restarts of agents.
func holder(u *procs.Users) string {
	switch {
	case u == nil:
		return "a process has it open for writing"
	case len(u.Writers()) > 0:
		var list []string
		for _, p := range u.Writers() {
			list = append(list, fmt.Sprintf("process %d (%s)", p.PID, p.Command))
		}
		return strings.Join(list, " and ") + " has it open for writing"
	case u.Deserted():
		return ""
	case u.Consumer == nil:
		return "a process of another user or in another container may have it open for writing"
	}
	return fmt.Sprintf("process %d (%s) consumes it, and an agent may be writing to it: %s", u.Consumer.PID, u.Consumer.Command,
		cmp.Or(u.Unseen(), "a process that isn't visible has it open"))
}
