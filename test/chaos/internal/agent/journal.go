// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/nixl-otel/nixl-otel/internal/lab/oracle"
)

// Counts are the numbers of events, by the series that counts them: nixl.events{…}.
type Counts map[string]int64

// Add adds other counts.
func (c Counts) Add(o Counts) {
	for series, n := range o {
		c[series] += n
	}
}

// Sum returns the number of all events.
func (c Counts) Sum() (sum uint64) {
	for _, n := range c {
		sum += uint64(n)
	}
	return sum
}

func countsOf(events *oracle.Oracle) Counts {
	counts := make(Counts)
	for series, v := range events.Points() {
		if n, ok := v.(int64); ok && strings.HasPrefix(series, "nixl.events{") {
			counts[series] = n
		}
	}
	return counts
}

// A journal has two places that are written alternately, so one of them is always complete, even if
// the process is killed. Data that was passed to the kernel survives the process.
const place = 16 << 10

type journal struct {
	file *os.File
	next entry
}

// entry contains the totals of an agent.
type entry struct {
	Number int
	Counts Counts // their sum, modulo the capacity, is the ring's write position
}

func createJournal(path string) (*journal, error) {
	f, err := os.Create(path)
	return &journal{file: f}, err
}

// note records the agent's events so far.
func (j *journal) note(events *oracle.Oracle) error {
	j.next.Number++
	j.next.Counts = countsOf(events)
	text, err := json.Marshal(j.next)
	if err != nil {
		return err
	}
	if len(text) >= place {
		return fmt.Errorf("journal: an entry of %d bytes is too long", len(text))
	}
	b := make([]byte, place)
	copy(b, text)
	_, err = j.file.WriteAt(b, int64(j.next.Number%2)*place)
	return err
}

// readJournal returns the newest entry. Its number is 0 if there is none.
func readJournal(path string) (newest entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return entry{}, err
	}
	for len(text) > 0 {
		b := text[:min(place, len(text))]
		text = text[len(b):]
		var e entry
		// If the agent was killed while it wrote a place, the place may contain anything.
		if json.Unmarshal(bytes.TrimRight(b, "\x00"), &e) == nil && e.Number > newest.Number {
			newest = e
		}
	}
	return newest, nil
}
