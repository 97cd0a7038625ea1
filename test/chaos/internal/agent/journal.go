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

	"github.com/nixl-otel/nixl-otel/internal/oracle"
	"github.com/nixl-otel/nixl-otel/test/chaos/internal/ledger"
)

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
	Events uint64 // number of events; modulo the capacity, it is the ring's write position
	ByName []ledger.Named
}

func createJournal(path string) (*journal, error) {
	f, err := os.Create(path)
	return &journal{file: f}, err
}

// note records the agent's events so far.
func (j *journal) note(events *oracle.Oracle) error {
	j.next.Number++
	j.next.Events, j.next.ByName = 0, ledger.Of(events)
	for _, n := range j.next.ByName {
		j.next.Events += n.Count
	}
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
