// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package errtype names the kind of an error, for the attribute error.type:
// one of few, and never the error's text.
package errtype

import (
	"errors"
	"reflect"
)

// Of is what err, or an error that it wraps, says its type is, by a method
// ErrorType() string, and else its Go type.
func Of(err error) string {
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		if name := named.ErrorType(); name != "" {
			return name
		}
	}
	return goType(err)
}

// goType looks through what fmt.Errorf wraps around an error, as that type
// says nothing about it.
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
