// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/recording"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

// lsFlags is the command line of nixlring ls.
type lsFlags struct {
	recursive bool
	anywhere  bool // neither the command line nor the environment has a directory
	output    *output
}

func newLs(w world) *cobra.Command {
	var f lsFlags
	cmd := &cobra.Command{
		Use:   "ls [DIR...]",
		Short: "List the rings and stores of a directory",
		Long: `Ls lists the telemetry rings in directories, the stores of NIXL's prometheus_mp
exporter, and those that can't be read. It doesn't consume events. Files that
are unrelated to telemetry are only counted.

PENDING is the number of events in the ring, and FILL its share of the capacity;
at 100% the agent loses events. IN USE shows whether an agent or a consumer has
the ring open for writing, or a process holds the lock on the store; ? means
that only the file's owner or root can find out, or that this file system doesn't
report it. OWNER is a uid; a consumer must run as this user or as root. AGE is
the time since the file system noted a change of the file; it can be too high,
because agents write through a memory mapping.

Without DIR, ls lists NIXL_TELEMETRY_DIR, else /tmp; or with
NIXL_TELEMETRY_EXPORTER=prometheus_mp, NIXL_TELEMETRY_MULTIPROC_DIR.`,
		Example: `  nixlring ls
  nixlring ls /run/nixl /tmp
  nixlring ls --output json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				set := cmp.Or(w.env.StoreDir(), w.ringDir())
				f.anywhere = set == ""
				args = []string{cmp.Or(set, w.dir, w.env.Dir())}
			}
			return f.run(cmd.Context(), w, args)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&f.recursive, "recursive", "r", false, "include subdirectories, for agents whose names contain a slash")
	f.output = addOutput(cmd, "text", "json")
	return cmd
}

func (f *lsFlags) run(ctx context.Context, w world, dirs []string) error {
	list := []*ringfile.Entry{} // never null in JSON
	var wrong []error
	hidden, found := 0, 0
	err := ringfile.List(ctx, dirs, f.recursive, os.Geteuid(), func(e *ringfile.Entry) {
		switch {
		case !e.Other:
			found++
		case e.Given:
			wrong = append(wrong, notRing(e))
		default:
			hidden++
			return
		}
		list = append(list, e)
	})
	if f.output.value == "json" {
		err = errors.Join(err, writeJSON(w.out, list), errors.Join(wrong...))
	} else {
		err = errors.Join(err, writeList(w.out, list, w.now()), errors.Join(wrong...))
		if hidden > 0 {
			fmt.Fprintf(w.err, "%s\n", plural(hidden, "other file is neither a ring nor a store", "other files are neither rings nor stores"))
		}
		if found == 0 && err == nil {
			fmt.Fprintf(w.err, "no ring in %s\n", strings.Join(dirs, ", "))
			switch {
			case f.anywhere:
				fmt.Fprintln(w.err, "To find the agents of all processes and containers: nixlring top")
			case !f.recursive && slices.ContainsFunc(dirs, hasSubdirectory):
				fmt.Fprintln(w.err, "To include subdirectories, where agents whose names contain a slash have their rings: nixlring ls -r")
			}
			fmt.Fprint(w.err, w.howToStart(dirs[0]))
		}
	}
	return err
}

func hasSubdirectory(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, fs.DirEntry.IsDir)
}

// howToStart explains how to get rings or, with the exporter of the environment, stores in a directory.
func (w world) howToStart(dir string) string {
	whole := dir
	if abs, err := filepath.Abs(dir); err == nil { // agents run elsewhere
		whole = units.Printable(abs)
	}
	if dir == w.env.StoreDir() {
		return fmt.Sprintf(startText, process.EnvEnable, process.EnvExporter, "prometheus_mp", process.EnvMultiprocDir, whole) + "The directory must exist.\n"
	}
	text := fmt.Sprintf(startText, process.EnvEnable, process.EnvExporter, "BUFFER", process.EnvDir, whole) +
		"The directory must exist. To try without an agent: nixlring simulate " + whole + "\n"
	if exporter := w.variable(process.EnvExporter); diagnose.Misspelled(exporter) != "" {
		text = diagnose.Misspelled(exporter) + ".\n" + text
	}
	return text
}

const startText = `Start agents with these environment variables:

  %s=y %s=%s %s=%s

`

// notRing returns the error for a file on the command line that isn't a ring.
func notRing(e *ringfile.Entry) error {
	if recording.Is(string(e.Path)) {
		return isRecording(string(e.Path))
	}
	return fmt.Errorf("%s: %s; specify rings or directories of rings", units.Printable(string(e.Path)), e.Problem)
}

func isRecording(path string) error {
	return fmt.Errorf("%s: is a recording; use nixlring why", units.Printable(path))
}

func writeList(w io.Writer, list []*ringfile.Entry, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	t := newTable("PATH", "LAYOUT", ">CAPACITY", ">PENDING", ">FILL", "IN USE", ">OWNER", ">AGE", "NOTES")
	for _, e := range list {
		capacity, pending, fill, use := "-", "-", "-", "-"
		if e.Ring {
			capacity, pending, fill = strconv.Itoa(e.Capacity), strconv.Itoa(*e.Pending), e.Percent()
		}
		if e.Layout != "" {
			use = e.InUse.String()
		}
		t.add(units.Printable(string(e.Path)), cmp.Or(e.Layout, "-"), capacity, pending, fill, use, fmt.Sprint(e.Owner),
			units.Age(now.Sub(e.Modified)), units.Printable(cmp.Or(e.Problem, strings.Join(e.Notes, "; "))))
	}
	return t.write(w)
}
