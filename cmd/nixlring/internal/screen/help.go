// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// helpText consists of lines. A line with a tab is a term and its definition.
const helpText = `KEYS
↑ ↓ k j	select an agent; also pgup, pgdn, home and end
enter	open the page of the agent: histories and slowest transfers; esc goes back
tab	show the next view of an agent's page, if the screen is too small for all
← → s	sort by another column; r reverses the order
/	filter agents by name; esc shows all
!	show only agents with problems
space	pause and resume
q	quit

COLUMNS
OUT, IN	bytes per second that the agent wrote and read in completed transfers that it initiated
P50, P99	transfer time, until the application saw the completion; includes the post time
POST50, POST99	post time, until the transfer was handed to the backend
TPUT10, TPUT50	throughput of single transfers, size divided by transfer time: a tenth, and half, of them are slower
SPEED	mean throughput: bytes divided by the sum of the transfer times
MEMORY	registered minus deregistered; ? if a consumer took registrations before top started
RING	peak fill of the ring since the last update; if it is full, the agent loses events
LAST	time since the last event
READER	program that takes events from the ring; foreign is a program that doesn't lock the ring: NIXL's telemetry_reader, pmdanixl, or a Collector in another PID namespace

NOTES
straggler	far slower than the agents in the directory with similar sizes, and its transfers take longer; requires four agents
no transfer	the agent completed no transfer for some time, although it did before
posting	posting takes more than half of the transfer time
unread	nothing takes events from the ring; when it is full, the agent loses events
events lost	how often the ring was full, and events that are missing in it or that the agent dropped
events taken	another program takes the events of this ring
missed events	top missed events; the consumer has them
+2	two more problems, which don't fit; the agent's page shows them

LIMITS
Top doesn't consume events. Totals lack what a consumer took before top started, and rates lack what was in the ring by then. A full ring without a consumer stops changing, so top doesn't see what its agent does. An agent that exits is removed from the list after five minutes.
`

// help draws the help page.
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
