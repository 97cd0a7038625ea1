// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package show reads rings and writes their events as text, as NIXL's example
// readers do, but for any layout, and without taking the events unless asked.
package show
