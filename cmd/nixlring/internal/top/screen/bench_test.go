// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/top"
)

func many(second uint64) []top.Reading {
	list := make([]top.Reading, 256)
	for i := range list {
		list[i] = agent(fmt.Sprintf("agent-%d", i), second, 100+uint64(i)+second%7)
	}
	return list
}

// BenchmarkRedraw is one update of the screen with 256 busy agents: what is
// computed of a new sample, and the text of the screen.
func BenchmarkRedraw(b *testing.B) {
	f := &fleet{make: many}
	m := New(Config{Directory: "/run/nixl", Window: top.DefaultWindow, Sample: f.sample})
	send(m, tea.WindowSizeMsg{Width: 200, Height: 60})
	samples := make([]top.Sample, 64)
	for i := range samples {
		samples[i] = f.sample()
	}
	for at := samples[0].At; b.Loop(); {
		s := &samples[0]
		samples = append(samples[1:], *s)
		at = at.Add(top.DefaultWindow / 5)
		s.At = at
		m.Update(sampleMsg(*s))
		_ = m.View()
	}
}

// told is a writer that says when it was written to.
type told chan struct{}

func (t told) Write(p []byte) (int, error) {
	select {
	case t <- struct{}{}:
	default:
	}
	return len(p), nil
}

// BenchmarkProgram is from a new sample to what reaches the terminal, with 256
// busy agents; most of it is the wait for the next of 120 frames per second.
func BenchmarkProgram(b *testing.B) {
	f := &fleet{make: many}
	m := New(Config{Directory: "/run/nixl", Window: top.DefaultWindow, Sample: f.sample})
	m.later = func(time.Duration) tea.Cmd { return nil } // the loop below is the clock
	out, in := make(told, 1), &silence{done: make(chan struct{})}
	p := tea.NewProgram(m, tea.WithOutput(out), tea.WithInput(in), tea.WithWindowSize(200, 60), tea.WithFPS(120),
		tea.WithColorProfile(colorprofile.ANSI), tea.WithoutSignals())
	ended := make(chan error, 1)
	go func() {
		_, err := p.Run()
		ended <- err
	}()
	<-out
	for b.Loop() {
		select {
		case <-out: // what was written late
		default:
		}
		p.Send(sampleMsg(f.sample()))
		<-out
	}
	p.Kill()
	close(in.done)
	if err := <-ended; !errors.Is(err, tea.ErrProgramKilled) {
		b.Error(err)
	}
}

// silence is a keyboard that nobody touches.
type silence struct{ done chan struct{} }

func (s *silence) Read([]byte) (int, error) {
	<-s.done
	return 0, io.EOF
}
