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

// The exit codes, which scripts rely on.
const (
	exitOK     = 0
	exitError  = 1
	exitUsage  = 2
	exitNoRing = 3 // ls --require
)

const exitCodes = `Exit codes: 0 all is well, 1 something went wrong, 2 the command line is wrong.`

// usageError is an error in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errNoRing is the one outcome that has an exit code of its own. What there is
// to say about it has been said.
var errNoRing = errors.New("no ring")

// usage makes an error in the number of arguments a usageError.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// exit says what went wrong and gives the exit code.
func exit(w io.Writer, cmd *cobra.Command, err error) int {
	var wrong usageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errNoRing):
		return exitNoRing
	case errors.As(err, &wrong):
		complain(w, err)
		fmt.Fprintf(w, "Try: %s --help\n", cmd.CommandPath())
		return exitUsage
	default:
		complain(w, err)
		return exitError
	}
}

// complain writes an error, and whose it is on each line: several that were
// joined are lines.
func complain(w io.Writer, err error) {
	for line := range strings.Lines(err.Error() + "\n") {
		fmt.Fprintf(w, "nixlring: %s", line)
	}
}
