// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// helpText is in paragraphs; those with a tab are a term and what it means.
const helpText = `KEYS
↑ ↓ k j	select an agent; pgup, pgdn, home and end go further
enter	page of the agent: histories, distributions, slowest transfers; esc goes back
tab	next view of an agent's page, if the screen is too small for all of them
← → s	sort by another column; r reverses the order
/	show only agents whose names contain a text; esc shows all again
!	show only agents with a problem
space	pause and resume
q	quit

COLUMNS
OUT, IN	bytes of completed transfers that the agent initiated: written, read
P50, P99	transfer time, until the application saw it complete; includes the post time
POST50, POST99	post time, until the transfer was handed to the backend
TPUT10, TPUT50	throughput of single transfers, size divided by transfer time: a tenth, and half, of them are slower
MEMORY	registered minus deregistered; ? if a consumer took registrations before this view started
RING	most events in the ring since the last update; an agent whose ring is full loses events
LAST	time since the last event
READER	program that takes events from the ring; foreign is one without this project's lock: NIXL's telemetry_reader, pmdanixl, or a Collector in another PID namespace

NOTES
straggler	median and mean throughput are below half of those of the agents in the directory, the median also by three standard deviations; requires four agents
full 3×	the ring was full of new events: the agent has most likely lost some
torn	transfers of which the ring has lost events
dropped	events that the agent dropped before they reached the ring, by its own count
not all seen	this view missed events; the consumer has them

WHAT THIS VIEW CAN'T SHOW
This view takes no event from a ring. Totals lack what a consumer took before the view started, and rates lack what was in the ring by then. A ring that nobody reads fills up, and nothing more is known of its agent. An agent that exits leaves the list after five minutes.
`

// help is the page of help.
func (m *Model) help() string {
	const term = 16
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSpace(helpText), "\n") {
		name, text, ok := strings.Cut(line, "\t")
		switch {
		case ok:
			for i, part := range strings.Split(ansi.Wordwrap(text, max(20, m.width-term-3), ""), "\n") {
				if i > 0 {
					name = ""
				}
				lines = append(lines, "  "+note.in(fit(name, term, false))+part)
			}
		case line == strings.ToUpper(line) && line != "":
			lines = append(lines, " "+strong.in(line))
		default:
			for part := range strings.SplitSeq(ansi.Wordwrap(line, max(20, m.width-4), ""), "\n") {
				lines = append(lines, strings.TrimRight("  "+part, " "))
			}
		}
	}
	body := max(1, m.height-1)
	m.helpAt = max(0, min(m.helpAt, len(lines)-body))
	lines = lines[m.helpAt:]
	if len(lines) > body {
		lines = lines[:body]
	}
	var b strings.Builder
	b.WriteString(strings.Join(lines, "\n"))
	b.WriteString(strings.Repeat("\n", body-len(lines)+1))
	m.keys(&b, [][2]string{{"esc", "back"}, {"↑↓", "more"}, {"q", "quit"}})
	return b.String()
}
