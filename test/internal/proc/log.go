// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Log is what a process has written, line by line. A process writes to it,
// and a test reads from it and waits for more.
type Log struct {
	mu      sync.Mutex
	lines   []string
	partial []byte
	more    chan struct{} // closed, and made anew, when something comes
	ended   bool
}

func newLog() *Log { return &Log{more: make(chan struct{})} }

// Write takes what a process writes.
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

// end says that nothing more comes.
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

// Lines are the whole lines so far.
func (l *Log) Lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// Text is the whole lines so far, as they were written.
func (l *Log) Text() string { return strings.Join(l.Lines(), "\n") }

// Count is the number of lines that match.
func (l *Log) Count(match func(line string) bool) (n int) {
	for _, line := range l.Lines() {
		if match(line) {
			n++
		}
	}
	return n
}

// wait returns the first line that matches, whether it is there or yet to come.
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
			return "", fmt.Errorf("the process ended without it")
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("it didn't come: %w", context.Cause(ctx))
		case <-more:
		}
	}
}
