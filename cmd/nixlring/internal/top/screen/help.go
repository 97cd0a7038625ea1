package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// helpText is in paragraphs; those with a tab are a term and what it means.
const helpText = `KEYS
↑ ↓ k j	select an agent; pgup, pgdn, home and end go further
enter	details of the agent: histories, histograms, what was lost; esc goes back
← → s	sort by another column; r reverses the order
/	show agents only whose names contain a text; esc shows all again
!	show agents only that have a problem
space	stand still, and go on
q	quit

COLUMNS
OUT, IN	bytes of completed transfers that the agent initiated: written, read
P50, P99	transfer time, until the application saw it complete; includes the post time
POST50, POST99	post time, until the transfer was handed to the backend
TPUT50	median throughput of the transfers: the bytes of each, divided by its transfer time
MEMORY	registered less deregistered; ? where a consumer took the registration before this view started
RING	most events that stood in the ring since the last look; full, the agent loses events
LAST	time since the last event was seen
READER	program that takes events from the ring; foreign is one without this project's lock: NIXL's telemetry_reader, pmdanixl, or a Collector in another PID namespace

NOTES
full 3×	a look found the ring full of new events: the agent has most likely lost some
torn	transfers of which the ring has lost events
dropped	events that the agent says it dropped before they reached the ring
not all seen	events went by this view unseen; the consumer has them

WHAT CAN'T BE SEEN
This view takes no event from a ring. What a consumer took before it started isn't in its totals, and what stood in the ring by then isn't in its rates. A ring that nobody reads fills up and stands still, whatever its agent does. An agent that ends leaves the list after five minutes.
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
