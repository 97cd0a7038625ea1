// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen shows a [top.Board] in a terminal, with Bubble Tea: a table of
// agents, a page for one of them, and a page of help.
//
// Only the terminal's own sixteen colors are used, so that it looks right on a
// dark and on a light background, and nothing is told by color alone: it reads
// the same without, as NO_COLOR asks for.
package screen
