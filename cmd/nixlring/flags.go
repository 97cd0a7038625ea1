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

// flagError rewords the errors of pflag, which contain names of Go functions.
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

// unknownFlag adds a hint to the error if the flag is the name of an output format.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	flag := cmd.Flags().Lookup("output")
	if flag == nil {
		return err
	}
	format := err.GetSpecifiedName()
	if o, ok := flag.Value.(*output); ok && slices.Contains(o.formats, format) {
		return fmt.Errorf("%w (did you mean --output %s?)", err, format)
	}
	return err
}

// wanted describes the valid values of a flag.
func wanted(err *pflag.InvalidValueError) string {
	switch err.GetFlag().Value.Type() {
	case "uint64":
		return "must be an integer, 0 or more"
	case "int":
		return "must be an integer"
	case "float64":
		return "must be a number"
	case "duration":
		return "must be a duration, such as 500ms, 10s or 2m"
	case "bool":
		return "must be true or false"
	default:
		return errors.Unwrap(err).Error()
	}
}

// recursiveUsage describes the flag of commands that read a directory of rings.
const recursiveUsage = "include subdirectories, for agents whose names contain a slash"
