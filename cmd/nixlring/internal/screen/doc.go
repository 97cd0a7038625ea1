// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Package screen shows a [fleet.Board] in a terminal, with Bubble Tea: a table of agents, a
// page for a single agent, and a help page.
//
// It uses only the sixteen standard colors of the terminal, so it works on dark and light
// backgrounds. No information depends on color alone, so that NO_COLOR works.
package screen
