// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes. Scripts rely on them.
const (
	exitOK     = 0
	exitError  = 1
	exitUsage  = 2
	exitNoRing = 3 // ls --require, inspect; why if not enough is known to judge
)

const exitCodes = `Exit codes: 0 success, 1 error, 2 invalid command line.`

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNoRing selects exitNoRing. The command has already printed the reason.
var errNoRing = errors.New("no ring")

// exit prints err and returns the exit code. Errors before a command has started are about the command line.
func exit(w io.Writer, cmd *cobra.Command, started bool, err error) int {
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNoRing), errors.Is(err, errUnjudged):
		return exitNoRing
	case errors.Is(err, errProblems):
		return exitError
	case !started || errors.As(err, &wrong):
		complain(w, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
		return exitUsage
	default:
		complain(w, err)
		return exitError
	}
}

// complain prints an error. Joined errors have several lines; each starts with the name
// of the program.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error() + "\n") {
		fmt.Fprintf(w, "nixlring: %s", line)
	}
}
