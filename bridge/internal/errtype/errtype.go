// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package errtype returns low-cardinality names of errors for the attribute error.type.
// A name never contains the error's text.
package errtype

import (
	"cmp"
	"errors"
	"reflect"

	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// Of returns the result of the method ErrorType() string of err, or of an error that it
// wraps, or else the Go type of err. The name is valid UTF-8. err must not be nil.
func Of(err error) (name string) {
	defer func() {
		if recover() != nil { // for example, a method of a nil pointer
			name = goType(err)
		}
	}()
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		name = named.ErrorType()
	}
	return text.Valid(cmp.Or(name, goType(err)))
}

// goType returns the Go type of err. It unwraps the errors of fmt.Errorf and errors.Join,
// because their types say nothing about the cause. Of several errors, it takes the first.
func goType(err error) string {
	name := reflect.TypeOf(err).String()
	switch name {
	case "*fmt.wrapError":
		if inner := errors.Unwrap(err); inner != nil {
			return goType(inner)
		}
	case "*fmt.wrapErrors", "*errors.joinError":
		if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
			return goType(joined.Unwrap()[0])
		}
	}
	return name
}
