// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package interop tests ringbuf against C++ programs that were written only from
// the description of the ring. It has only tests.
//
// The tests need a C++20 compiler, $CXX or g++, and are skipped without one.
// INTEROP_EVENTS is the number of events to push through a ring of each layout;
// the default is 500,000. If it is set, a missing compiler fails the tests.
package interop
