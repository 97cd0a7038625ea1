// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package render writes events of rings as people and programs read them: the
// block that NIXL's own readers print, JSON lines, and the CSV of NIXL's
// plug-in guide.
package render
