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

// BenchmarkRedraw measures an update of the screen with 256 busy agents: processing a
// sample and drawing the text.
func BenchmarkRedraw(b *testing.B) {
	f := &fleet{make: many}
	m := New(Config{Name: "/run/nixl", Window: top.DefaultWindow, Sample: f.sample})
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

// signalWriter signals when it was written to.
type signalWriter chan struct{}

func (t signalWriter) Write(p []byte) (int, error) {
	select {
	case t <- struct{}{}:
	default:
	}
	return len(p), nil
}

// BenchmarkProgram measures the time from a sample to the output on the terminal, with 256
// busy agents. Most of it is waiting for the next of 120 frames per second.
func BenchmarkProgram(b *testing.B) {
	f := &fleet{make: many}
	m := New(Config{Name: "/run/nixl", Window: top.DefaultWindow, Sample: f.sample})
	m.later = func(time.Duration) tea.Cmd { return nil } // the loop below sends the samples
	out, in := make(signalWriter, 1), &noInput{done: make(chan struct{})}
	p := tea.NewProgram(m, tea.WithOutput(out), tea.WithInput(in), tea.WithWindowSize(200, 60), tea.WithFPS(120),
		tea.WithColorProfile(colorprofile.ANSI), tea.WithoutSignals())
	exited := make(chan error, 1)
	go func() {
		_, err := p.Run()
		exited <- err
	}()
	<-out
	for b.Loop() {
		select {
		case <-out: // the rest of the previous output
		default:
		}
		p.Send(sampleMsg(f.sample()))
		<-out
	}
	p.Kill()
	close(in.done)
	if err := <-exited; !errors.Is(err, tea.ErrProgramKilled) {
		b.Error(err)
	}
}

// noInput is an input that blocks until done is closed.
type noInput struct{ done chan struct{} }

func (s *noInput) Read([]byte) (int, error) {
	<-s.done
	return 0, io.EOF
}
