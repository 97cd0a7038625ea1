// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
)

// Log holds the output of a process, line by line. The process writes to it;
// the test reads lines and waits for more.
type Log struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	more    chan struct{} // closed and replaced when output arrives
	ended   bool
}

func newLog() *Log { return &Log{more: make(chan struct{})} }

// Write appends output of the process.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			break
		}
		l.lines = append(l.lines, string(line))
		l.partial = rest
	}
	l.wake()
	return len(p), nil
}

func (l *Log) wake() {
	close(l.more)
	l.more = make(chan struct{})
}

// end marks the end of the output.
func (l *Log) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.partial) > 0 {
		l.lines = append(l.lines, string(l.partial))
		l.partial = nil
	}
	l.ended = true
	l.wake()
}

// Lines returns the complete lines so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Text returns the complete lines so far, joined by newlines.
func (l *Log) Text() string { return strings.Join(l.Lines(), "\n") }

// Count returns the number of lines that match.
func (l *Log) Count(match func(line string) bool) (n int) {
	for _, line := range l.Lines() {
		if match(line) {
			n++
		}
	}
	return n
}

// wait returns the first line that matches. It waits for the line if it isn't
// there yet.
func (l *Log) wait(ctx context.Context, match func(line string) bool) (string, error) {
	for next := 0; ; {
		l.mu.Lock()
		lines, more, ended := l.lines[next:], l.more, l.ended
		next = len(l.lines)
		l.mu.Unlock()
		if i := slices.IndexFunc(lines, match); i >= 0 {
			return lines[i], nil
		}
		if ended {
			return "", errors.New("the process exited first")
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-more:
		}
	}
}
