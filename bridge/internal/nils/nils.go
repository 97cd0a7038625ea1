// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package nils finds nil values in arguments that are interfaces. Without a check, the
// program would crash at their first use, long after they were passed.
package nils

import "reflect"

// Is reports whether v is nil, or holds a nil pointer or function.
func Is(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Func:
		return r.IsNil()
	default:
		return false
	}
}
