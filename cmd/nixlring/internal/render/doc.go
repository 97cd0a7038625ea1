// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package render formats events of rings: as the blocks that NIXL's readers print, as
// lines, as JSON lines, and as the CSV of NIXL's plug-in guide.
package render
