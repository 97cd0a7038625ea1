// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nixl-otel/nixl-otel/internal/process"
)

// The exit codes. Scripts rely on them.
const (
	exitOK     = 0
	exitError  = 1
	exitUsage  = 2
	exitNoRing = 3 // there is nothing to examine: inspect, why
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// required explains the arguments that a command can require.
var required = map[string]string{
	"DIR":        "to create rings in; it doesn't default to " + process.EnvDir + ", because real agents may use that directory",
	"FILE":       "to create, such as bug.jsonl.zst, or - for standard output",
	"PATH":       "of a ring; nixlring ls lists rings",
	"PATH|AGENT": "of a ring, or the name of an agent; nixlring ls lists rings, and nixlring top agents",
}

// takes checks the number of arguments, whose names are in the usage line. Those in brackets are optional.
func takes(cmd *cobra.Command, args []string) error {
	names := strings.Fields(cmd.Use)[1:]
	if len(args) > len(names) {
		return fmt.Errorf("unexpected argument %q", args[len(names)])
	}
	for _, name := range names[len(args):] {
		if why := required[name]; why != "" {
			return fmt.Errorf("missing %s %s", name, why)
		}
	}
	return nil
}

// printedError is the exit code of a command that has already printed the reason.
type printedError int

func (printedError) Error() string { return "the reason was printed" }

// unseenError says why there is nothing to examine.
type unseenError struct{ error }

func (e unseenError) Unwrap() error { return e.error }

// exit prints err and returns the exit code. Errors before a command has started are about the command line.
func exit(w io.Writer, cmd *cobra.Command, started bool, err error) int {
	var code printedError
	var wrong usageError
	failed := exitError
	if errors.As(err, &unseenError{}) {
		failed = exitNoRing
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case !started || errors.As(err, &wrong):
		complain(w, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		return exitUsage
	case errors.Is(err, context.Canceled):
		complain(w, errors.New("interrupted"))
		return failed
	default:
		complain(w, err)
		return failed
	}
}

// visible is an output for people. It shows control characters as escape sequences, because errors and warnings contain
// the names of files, which others choose.
type visible struct{ io.Writer }

func (v visible) Write(b []byte) (int, error) {
	var text strings.Builder
	for _, r := range string(b) {
		if r == '\n' || strconv.IsPrint(r) {
			text.WriteRune(r)
		} else {
			text.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	_, err := io.WriteString(v.Writer, text.String())
	return len(b), err
}

// complain prints an error. Joined errors have several lines; each starts with the name
// of the program.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error() + "\n") {
		fmt.Fprintf(w, "nixlring: %s", line)
	}
}
