// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package built

import (
	"encoding/json"
	"strings"

	"github.com/nixl-otel/nixl-otel/test/internal/proc"
)

// Entry is a line of a Collector's log in JSON.
type Entry struct {
	Level    string `json:"level"`
	Message  string `json:"msg"`
	Path     string `json:"path"`
	Error    string `json:"error"`
	Endpoint string `json:"endpoint"`

	Line string `json:"-"` // all of it
}

// Entries returns the lines of a Collector's log so far.
func Entries(collector *proc.Process) (list []Entry) {
	for _, line := range collector.Stderr.Lines() {
		e := Entry{Line: line}
		if json.Unmarshal([]byte(line), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

// Complaints returns the warnings and errors in a Collector's log, except that the test's directory
// is on a disk.
func Complaints(collector *proc.Process) (list []Entry) {
	for _, e := range Entries(collector) {
		if e.Level != "info" && e.Level != "debug" && !strings.Contains(e.Message, "rings are on a disk") {
			list = append(list, e)
		}
	}
	return list
}
