// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/place"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/procs"
	"github.com/nixl-otel/nixl-otel/internal/nixlenv"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// A command that makes rings would take over one of the same name, as an agent
// does. What an agent's own name is keeps it from meeting another agent's ring;
// a command's is made up. Two writers on one ring spoil it.

// forceUsage is that of the flag which takes over any ring.
const forceUsage = "take over rings that an agent may still be writing to"

// makesRings wants a directory as the last of n arguments. It is never that of
// the environment, where agents are at work.
func makesRings(n int) cobra.PositionalArgs {
	return usage(func(cmd *cobra.Command, args []string) error {
		if len(args) == n-1 {
			return fmt.Errorf("DIR is needed, the directory to make rings in; that of %s isn't taken by itself, as agents may be at work there", nixlenv.Dir)
		}
		return cobra.ExactArgs(n)(cmd, args)
	})
}

// takeable is an error if one of some rings can't be made, or taken over
// without harm. Nothing is touched.
func takeable(proc string, paths []string) error {
	var held []string
	for _, path := range paths {
		switch open, err := attended(path); {
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
	var refused []string
	for _, path := range held {
		if text := holds(users[path]); text != "" {
			refused = append(refused, "ring "+path+": "+text)
		}
	}
	switch more := len(refused) - 1; {
	case more < 0:
		return nil
	case more > 0:
		refused[0] += fmt.Sprintf(" (so it is with %s)", plural(more, "other ring", "other rings"))
	}
	return errors.New(refused[0] + "; nothing was touched. Two writers spoil a ring: take another directory, or see --force")
}

// attended says whether a process has a ring open for writing. There may be
// nothing at the path, but no file that isn't a ring.
func attended(path string) (bool, error) {
	_, err := ringbuf.Peek(path)
	var permission *ringbuf.PermissionError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, ringbuf.ErrNotRing), errors.Is(err, ringbuf.ErrNotRegular), errors.As(err, &permission):
		return false, fmt.Errorf("%w; it is left as it is, and so are all others", err)
	case errors.Is(err, fs.ErrPermission):
		return false, place.Explain(place.Ring, path, err)
	}
	unattended, err := ringbuf.Unattended(path)
	if err != nil {
		return false, fmt.Errorf("ring %s: it can't be told whether an agent still writes to it: %s; "+
			"nothing was touched. Take another directory, or see --force", path, untold(err))
	}
	return !unattended, nil
}

// untold is why it can't be told whether a ring is open for writing.
func untold(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "only its owner or root can ask"
	}
	return "its file system doesn't say"
}

// holds says who holds a ring that is open for writing, empty if it may be
// taken over all the same: its agent is gone, and a consumer of this project
// follows an agent that restarts.
func holds(u *procs.Users) string {
	switch {
	case u == nil:
		return "a process has it open for writing"
	case len(u.Writers()) > 0:
		var list []string
		for _, p := range u.Writers() {
			list = append(list, fmt.Sprintf("process %d (%s)", p.PID, p.Command))
		}
		return strings.Join(list, " and ") + " has it open for writing"
	case u.Consumer == nil:
		return "a process that can't be seen from here, another user's or another container's, has it open for writing"
	case u.Deserted():
		return ""
	}
	return fmt.Sprintf("process %d (%s) consumes it, and an agent may write to it that can't be seen from here; "+
		"to find out stop that process, or run this as root and outside of any container", u.Consumer.PID, u.Consumer.Command)
}
