// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package errtype returns low-cardinality names of errors for the attribute error.type.
// A name never contains the error's text.
package errtype

import (
	"errors"
	"reflect"
)

// Of returns the result of the method ErrorType() string of err, or of an error that it
// wraps, or else the Go type of err.
func Of(err error) string {
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		if name := named.ErrorType(); name != "" {
			return name
		}
	}
	return goType(err)
}

// goType returns the Go type of err. It unwraps errors of fmt.Errorf, because their type
// is always the same.
func goType(err error) string {
	for {
		name := reflect.TypeOf(err).String()
		inner := errors.Unwrap(err)
		if name != "*fmt.wrapError" || inner == nil {
			return name
		}
		err = inner
	}
}
