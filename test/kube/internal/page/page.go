// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package page defines the page that the OTLP sink of the cluster test serves.
package page

import "github.com/nixl-otel/nixl-otel/test/internal/otlpfile"

// Page is what a backend would show.
type Page struct {
	Resources []otlpfile.Resource
	Error     string // points that contradict each other
}
