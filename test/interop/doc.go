// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop tests ringbuf against programs of another language, which
// were written from the description of the ring alone. It has tests only.
//
// They need a C++20 compiler, $CXX or g++, and are skipped without one, unless
// INTEROP_EVENTS asks for them: it is the number of events to push through a
// ring of each layout, and 2,000,000 without.
package interop
