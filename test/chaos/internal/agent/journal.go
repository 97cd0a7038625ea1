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

	"github.com/nixl-otel/nixl-otel/internal/simulate"
)

// A journal has two places, written in turn, so that one of them is whole
// whenever its writer dies. What was handed to the kernel survives that.
const place = 16 << 10

type journal struct {
	file *os.File
	next entry
}

// entry is what an agent had written when it made it.
type entry struct {
	Number int
	Events uint64 // their number; modulo the capacity it is the ring's write position
	ByName []simulate.Named
}

func createJournal(path string) (*journal, error) {
	f, err := os.Create(path)
	return &journal{file: f}, err
}

// note writes down what the agent has written so far.
func (j *journal) note(a *simulate.Agent) error {
	written := a.Totals().Written
	j.next.Number++
	j.next.Events, j.next.ByName = written.Events.Events, written.ByName
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

// readJournal returns the newest entry; its number is 0 if there is none.
func readJournal(path string) (newest entry, err error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return entry{}, err
	}
	for len(text) > 0 {
		b := text[:min(place, len(text))]
		text = text[len(b):]
		var e entry
		// The place that was being written when the agent died may hold anything.
		if json.Unmarshal(bytes.TrimRight(b, "\x00"), &e) == nil && e.Number > newest.Number {
			newest = e
		}
	}
	return newest, nil
}
