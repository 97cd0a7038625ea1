// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with a flag in the words of this program: those
// of pflag name functions of Go.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return usageError{unknownFlag(cmd, unknown)}
	case errors.As(err, &wrong):
		return usagef("--%s %s: %s", wrong.GetFlag().Name, wrong.GetValue(), wanted(wrong))
	default:
		return usageError{err}
	}
}

// unknownFlag is the error with a hint where the flag is a format of --output.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return err
	}
	format := err.GetSpecifiedName()
	if o, ok := flag.Value.(*output); ok && slices.Contains(o.formats, format) {
		return fmt.Errorf("%w; did you mean --output %s?", err, format)
	}
	return err
}

// wanted is what a flag takes.
func wanted(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "uint64":
		return "it is a whole number, 0 or more"
	case "int":
		return "it is a whole number"
	case "float64":
		return "it is a number"
	case "duration":
		return "it is a duration, like 500ms, 10s or 2m"
	case "bool":
		return "it is true or false"
	default:
		return errors.Unwrap(err).Error()
	}
}

// recursiveUsage describes the flag of commands that look at a directory of rings.
const recursiveUsage = "include subfolders, for agents whose names contain a slash"
