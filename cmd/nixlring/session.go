// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/patherr"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/picture"
	"github.com/nixl-otel/nixl-otel/internal/units"
)

func newSession(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "session",
		Short: "Analyze and recover sessions of split inference",
		Long: `Session reads the files that a split-inference pipeline writes through package
bridge/session: a CSV file with a row per work packet, and a JSON summary.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAnalyze(w), newRecover(w))
	return cmd
}

func newAnalyze(w world) *cobra.Command {
	var format *output
	var html string
	cmd := &cobra.Command{
		Use:   "analyze [FILE|DIR]",
		Short: "Report on a session",
		Long: fmt.Sprintf(`Analyze reports on the session of a CSV file, or on the newest one in a directory
(default: %s). The session may still be running, or have crashed. If its file
has rotated, run1.csv includes run1.1.csv, run1.2.csv and so on. Analyze also reads
sessions of the Python program with the same columns, even if a spreadsheet program
has saved the file. Invalid and incomplete rows are skipped and reported with their lines; a
file without valid rows is rejected.

In JSON, "summary" is computed from the CSV, which contains neither tokens,
contention events nor the names of experts: the first two are 0, and selections of
experts count by operation and layer. "written_summary" is the one that the session
wrote.

With --html, analyze draws the session instead: the timeline, time per layer, worker and
operation, failed and slow packets. The page is one file for any browser.`, session.DefaultDir),
		Example: `  nixlring session analyze
  nixlring session analyze telemetry/run1.csv
  nixlring session analyze telemetry/run1.csv --html run1.html
  nixlring session analyze --output json`,
		Args: takes,
		RunE: func(_ *cobra.Command, args []string) error {
			if html != "" {
				return runDraw(w, path(args), html)
			}
			return runAnalyze(w, path(args), format.value)
		},
	}
	cmd.Flags().SortFlags = false
	format = addOutput(cmd, "text", "json")
	cmd.Flags().StringVar(&html, "html", "", "write a page with pictures to `FILE`, which must not exist, or to standard output if it is -")
	cmd.MarkFlagsMutuallyExclusive("html", "output")
	return cmd
}

// path returns the path in the arguments, or "" for the default.
func path(args []string) string { return strings.Join(args, "") }

func newRecover(w world) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "recover [FILE|DIR]",
		Short: "Rebuild the summary of a session that crashed",
		Long: fmt.Sprintf(`Recover rebuilds the JSON summary of a session whose program crashed, from its CSV
file or from the newest one in a directory (default: %s). The summary is
written next to the CSV file, as the session would have done.

The CSV contains neither tokens, contention events nor the names of experts: the
first two are 0, and selections of experts count by operation and layer. The session
starts with its first packet and ends with its last. Invalid and incomplete rows are
skipped. A session that is still running is rejected.`, session.DefaultDir),
		Example: `  nixlring session recover
  nixlring session recover telemetry/run1.csv`,
		Args: takes,
		RunE: func(_ *cobra.Command, args []string) error {
			return runRecover(w, path(args), force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the summary if there is one")
	return cmd
}

func runAnalyze(w world, path, format string) error {
	r, err := session.Analyze(path)
	if err != nil {
		return explainSession(path, err)
	}
	if format == "text" {
		_, err := fmt.Fprint(w.out, r)
		return err
	}
	if r.Summary.TotalPackets == 0 { // the text report contains this warning
		fmt.Fprintf(w.err, "there are no packets in %s\n", units.Printable(r.Path))
	}
	return writeJSON(w.out, r)
}

// runDraw writes a page about a session.
func runDraw(w world, path, file string) error {
	r, err := session.Analyze(path)
	if err != nil {
		return explainSession(path, err)
	}
	if file == "-" {
		return picture.Write(w.out, r)
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("write the page to %s: the file exists; specify another file", units.Printable(file))
	case errors.Is(err, fs.ErrNotExist):
		return patherr.Explain(patherr.Parent, filepath.Dir(file), err)
	case err != nil:
		return patherr.Explain(patherr.Parent, file, err)
	}
	if err := errors.Join(picture.Write(out, r), out.Close()); err != nil {
		return errors.Join(err, os.Remove(file)) // a part of a page is useless
	}
	_, err = fmt.Fprintf(w.out, "%s: %s, %d failed\n", units.Printable(file), plural(int(r.Summary.TotalPackets), "packet", "packets"), r.Summary.FailedPackets)
	return err
}

// explainSession adds advice to an error of reading a session.
func explainSession(path string, err error) error {
	if errors.Is(err, session.ErrNoSession) {
		return fmt.Errorf("%w; specify the CSV of a session, or another directory", err)
	}
	return patherr.Explain(patherr.Session, cmp.Or(path, session.DefaultDir), err)
}

func runRecover(w world, path string, force bool) error {
	r, err := session.Recover(path, force)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w, or use --force to replace it with one without tokens", err)
	}
	if err != nil {
		return explainSession(path, err)
	}
	s := &r.Summary
	fmt.Fprintf(w.out, "%s: %s, %d failed; tokens and contention events are unknown\n", units.Printable(s.JSONSummary),
		plural(int(s.TotalPackets), "packet", "packets"), s.FailedPackets)
	for _, row := range r.Skipped {
		fmt.Fprintf(w.err, "line %d of %s was skipped: %s\n", row.Line, units.Printable(row.Path), row.Reason)
	}
	if n := r.SkippedRows - int64(len(r.Skipped)); n > 0 {
		fmt.Fprintln(w.err, plural(int(n), "more row was skipped", "more rows were skipped"))
	}
	return nil
}
